/*
 * Performance monitoring unit: an architecture's description of its guests
 *
 * The monitor and profiles look at a guest from outside.  They need names for
 * its modes, numbers that distinguish its address spaces, and its callchains.
 * These are the operations of a CPU's class, returned by pmu_guest_ops(); they
 * hold for every CPU of an architecture, with a PMU or without.
 *
 * A guest's memory and registers are untrusted input.  They are read with
 * bounds; the read cannot fault and has no effect on the guest.  The worst that
 * a guest can do is to make the description of itself wrong.
 *
 * Threads: the vCPU's own, or any that holds the big lock while the vCPU is
 * stopped, unless a function says otherwise.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PMU_GUEST_H
#define HW_PMU_PMU_GUEST_H

#include "hw/core/cpu.h"
#include "hw/pmu/pmu.h"
#include "hw/pmu/profile/task.h"

/* The monitor's description of a PMU, see qapi/pmu-monitor.json */
struct PmuCpuInfo;

/**
 * struct PmuGuestSpace - one of the address spaces of a guest
 * @guest: 0, or the number of the nested guest that has it
 * @id: the number by which the CPU distinguishes it
 */
typedef struct PmuGuestSpace {
    uint64_t guest;
    uint64_t id;
} PmuGuestSpace;

/**
 * struct PmuGuestOps - operations of an architecture
 * @machine: its name, as uname -m prints it
 * @nr_modes: how many modes it distinguishes, 1 to PMU_MAX_MODES
 * @mode_names: their names in the schema (PmuMode)
 * @user_modes: the modes in which users' programs run
 * @nested_modes: the modes in which the guest's own guests run; 0 if only
 *                @space distinguishes these
 * @counted_by_host: the host's perf can count a guest that KVM executes
 * @kvm_mode: under KVM, the mode in which the vCPU resumes; NULL if QEMU cannot
 *            read the state that profiles need of a vCPU that KVM executes
 * @space: the address space in use
 * @space_name: its name, by the registers that say which it is; without blanks,
 *              as other programs read what perf script prints
 * @begins: whether the vCPU is at a program's first instruction; it need not
 *          be right where a kernel leaves no trace of that
 * @callchain: store the return addresses of the functions that are being
 *             executed, the innermost first, found by frame pointers.  Returns
 *             how many there are, up to a maximum.  Includes only functions in
 *             the present mode: calls of a program are not followed from the
 *             kernel.
 * @task: the task that runs, where the guest has said how to find it; false if
 *        that is not known, as in guests of the guest.  It is found in the
 *        kernel's memory, also while a program runs.
 * @raw_event: the event of a code, written rNNNN in perf; PMU_EVENT_NONE if the
 *             code counts nothing, or if the CPU has no PMU with such codes.
 *             In any thread.
 * @counter_name: the register that is a counter of the CPU's Pmu, as the
 *                architecture's manual calls it; in any thread
 * @describe: describe the CPU's PMU, its state, and the host's counts for it;
 *            the guest does not notice.  In the vCPU's thread, or while the
 *            vCPU does not run.  False with @errp set if it cannot be read.
 * @host_first: whether the perf events that QEMU itself opens on the host,
 *              which count under KVM, have priority over the guest's; NULL if
 *              guests have counters of their own
 *
 * The address space, the callchain and the task belong to the vCPU's state
 * between two instructions, as it is in QEMU: after cpu_synchronize_state(),
 * or in a fold.
 */
typedef struct PmuGuestOps {
    const char *machine;
    unsigned nr_modes;
    const char *const *mode_names;
    PmuModes user_modes;
    PmuModes nested_modes;
    bool counted_by_host;
    unsigned (*kvm_mode)(CPUState *cpu);
    PmuGuestSpace (*space)(CPUState *cpu);
    char *(*space_name)(const PmuGuestSpace *space);
    bool (*begins)(CPUState *cpu);
    unsigned (*callchain)(CPUState *cpu, uint64_t *callers, unsigned max);
    bool (*task)(CPUState *cpu, const PmuTaskLayout *layout, PmuTask *task);
    PmuEvent (*raw_event)(const CPUState *cpu, uint64_t code);
    const char *(*counter_name)(const CPUState *cpu, unsigned counter);
    bool (*describe)(CPUState *cpu, struct PmuCpuInfo *info, Error **errp);
    bool (*host_first)(const CPUState *cpu);
} PmuGuestOps;

/**
 * pmu_guest_ops - the operations of a vCPU's architecture
 * @cpu: the vCPU
 *
 * In any thread.
 *
 * Returns: NULL for architectures that do not describe their guests.
 */
const PmuGuestOps *pmu_guest_ops(const CPUState *cpu);

/**
 * pmu_guest_host_first - whether QEMU's perf events have priority over the
 *                        guest's
 * @cpu: the vCPU, configured, under KVM
 *
 * If so they must be pinned, and otherwise they must not be.  In any thread.
 */
bool pmu_guest_host_first(const CPUState *cpu);

/**
 * pmu_guest_run - call a function on a vCPU between two instructions, and wait
 * @cpu: the vCPU, which may be stopped
 * @fn: the function, called with the big lock held
 * @opaque: the pointer that it is given
 * @errp: that the vCPU is being unplugged; may be NULL
 *
 * As run_on_cpu(), also in commands of the monitor while a machine is recorded
 * or replayed.  In any thread that holds the big lock, which is released
 * meanwhile: the vCPU may be gone when this returns, and a caller that uses it
 * after that needs a reference.
 *
 * Returns: false if the vCPU is being unplugged.  It is gone then, and all that
 * belonged to it is released; @fn may have been called before.
 */
bool pmu_guest_run(CPUState *cpu, run_on_cpu_func fn, void *opaque,
                   Error **errp);

/**
 * struct PmuGuestMemory - the memory of a guest, as a vCPU sees it
 * @cpu: the vCPU
 *
 * The rest remembers the page that was read last; it is 0 at first.  To be used
 * for one state of the vCPU.
 */
typedef struct PmuGuestMemory {
    CPUState *cpu;
    vaddr page;
    hwaddr phys;
    AddressSpace *as;
} PmuGuestMemory;

/**
 * pmu_guest_read - read a guest's memory, as PmuReadFn
 * @memory: a struct PmuGuestMemory
 * @addr: a virtual address; a multiple of @size
 * @buf: set to the contents, in the guest's byte order
 * @size: 4 or 8
 *
 * Only RAM is read, also for the page tables that lead there, as reading from a
 * device could have an effect.  The guest does not notice: there are no faults,
 * and no page is marked as accessed.
 *
 * Returns: false if nothing is mapped there, or no RAM.
 */
bool pmu_guest_read(void *memory, uint64_t addr, void *buf, unsigned size);

#endif /* HW_PMU_PMU_GUEST_H */
