/*
 * Performance monitoring unit: which kernel a guest runs
 *
 * Addresses of a profile mean something only together with the kernel that they
 * are of.  A Linux guest says which that is in VMCOREINFO, a note in its memory
 * that it tells -device vmcoreinfo of; for others, the user says it.
 *
 * What is read from a guest is data: it is bounded, and can at worst name
 * another kernel.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PROFILE_GUEST_KERNEL_H
#define HW_PMU_PROFILE_GUEST_KERNEL_H

#define PMU_KERNEL_MAX_RELEASE  64
#define PMU_KERNEL_MAX_BUILD_ID 20

/**
 * struct PmuGuestKernel - which kernel a guest runs
 * @release: as uname -r has it; empty if it is not known
 * @text: where the kernel's symbol _stext is in the running guest, whatever its
 *        file says; 0 if it is not known
 * @build_id: its build id
 * @build_id_size: the bytes of that; 0 if it is not known
 */
typedef struct PmuGuestKernel {
    char release[PMU_KERNEL_MAX_RELEASE + 1];
    uint64_t text;
    uint8_t build_id[PMU_KERNEL_MAX_BUILD_ID];
    unsigned build_id_size;
} PmuGuestKernel;

/**
 * pmu_guest_kernel_set_build_id - take one that is written in hexadecimal
 * @kernel: the kernel; unchanged if it is none
 * @text: the build id; need not end with a NUL
 * @length: of @text
 *
 * Returns: whether it is one: 1 to %PMU_KERNEL_MAX_BUILD_ID bytes, not all 0.
 */
bool pmu_guest_kernel_set_build_id(PmuGuestKernel *kernel, const char *text,
                                   size_t length);

/**
 * pmu_guest_kernel_parse - read VMCOREINFO
 * @kernel: is set to what is found; else 0
 * @note: the ELF note that a guest offers, with its header
 * @size: of @note, in bytes; any
 *
 * Returns: whether it names a kernel: at least where its text is.
 */
bool pmu_guest_kernel_parse(PmuGuestKernel *kernel, const void *note,
                            size_t size);

/**
 * pmu_guest_kernel_can_be_told - whether there is -device vmcoreinfo
 *
 * With the big lock held, when the machine has all its devices that cannot be
 * plugged in.
 */
bool pmu_guest_kernel_can_be_told(void);

/**
 * pmu_guest_kernel_find - which kernel runs now, as the guest says
 * @kernel: is set to it
 *
 * With the big lock held.  Only RAM is read.
 *
 * Returns: false if nobody has found that it can be told
 * (pmu_guest_kernel_can_be_told()), if the guest has not told since the
 * machine's reset (Linux does when its driver is loaded, which is qemu_fw_cfg),
 * or if what it offers names no kernel.
 */
bool pmu_guest_kernel_find(PmuGuestKernel *kernel);

#endif /* HW_PMU_PROFILE_GUEST_KERNEL_H */
