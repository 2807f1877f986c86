/*
 * Performance monitoring unit: which kernel a guest runs
 *
 * A profile's addresses in a kernel have a meaning only if the kernel is known.
 * A Linux guest names it in VMCOREINFO, a note in its memory that it reports to
 * -device vmcoreinfo.  For other guests, the user names it.
 *
 * The guest may write any note.  Its size is limited, and at worst it names
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
 * @release: as uname -r prints it; empty if it is not known
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
 * pmu_guest_kernel_set_build_id - set a build id that is written in hexadecimal
 * @kernel: the kernel; unchanged if @text is not valid
 * @text: the build id; need not end with a NUL
 * @length: of @text
 *
 * Returns: whether @text is valid: 1 to %PMU_KERNEL_MAX_BUILD_ID bytes that are
 * not all 0.
 */
bool pmu_guest_kernel_set_build_id(PmuGuestKernel *kernel, const char *text,
                                   size_t length);

/**
 * pmu_guest_kernel_parse - read VMCOREINFO
 * @kernel: set to the kernel; fields that the note does not give are 0
 * @note: the ELF note that a guest offers, with its header
 * @size: of @note, in bytes; any
 *
 * Returns: whether it names a kernel, at least by the address of its text.
 */
bool pmu_guest_kernel_parse(PmuGuestKernel *kernel, const void *note,
                            size_t size);

/**
 * pmu_guest_kernel_can_be_told - find -device vmcoreinfo
 *
 * With the big lock held, when the machine has all its devices that cannot be
 * plugged in.
 *
 * Returns: whether the machine has that device.
 */
bool pmu_guest_kernel_can_be_told(void);

/**
 * pmu_guest_kernel_find - find the kernel that runs now, as the guest reports
 * @kernel: is set to it
 *
 * With the big lock held.  Only RAM is read.
 *
 * Returns: false if pmu_guest_kernel_can_be_told() was not called or has found
 * no device, if the guest has reported nothing since the machine's reset (Linux
 * does when its driver qemu_fw_cfg is loaded), or if its note names no kernel.
 */
bool pmu_guest_kernel_find(PmuGuestKernel *kernel);

#endif /* HW_PMU_PROFILE_GUEST_KERNEL_H */
