/*
 * Performance monitoring unit: what an architecture tells of a guest
 *
 * Whoever looks at a guest from outside (the monitor, a profile) wants names
 * for its modes, what tells its address spaces apart, and who called what.
 * These are the operations of a CPU's class, reached by pmu_guest_ops(); they
 * hold for every CPU of an architecture, with a PMU or without.
 *
 * What is read from a guest is data: it is read with bounds, cannot fault, has
 * no effect on the guest, and can at worst make what is said of it wrong.
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

/* What the monitor shows, see qapi/pmu-monitor.json */
struct PmuCpuInfo;

/**
 * struct PmuGuestSpace - one of the address spaces of a guest
 * @guest: 0, or which of the guest's own guests has it
 * @id: which of them, as the CPU tells them apart
 */
typedef struct PmuGuestSpace {
    uint64_t guest;
    uint64_t id;
} PmuGuestSpace;

/**
 * struct PmuGuestOps - what an architecture tells of a guest
 * @machine: its name, as uname -m has it
 * @nr_modes: how many modes it tells apart, 1 to PMU_MAX_MODES
 * @mode_names: their names in the schema (PmuMode)
 * @user_modes: those in which users' programs run
 * @nested_modes: those in which the guest's own guests run.  Where modes do not
 *                tell, @space does.
 * @counted_by_host: the host's perf can count what KVM executes of a guest
 * @kvm_mode: under KVM, the mode in which the vCPU goes on; NULL where QEMU
 *            does not read what profiles need of a vCPU that KVM executes
 * @space: the address space in use
 * @space_name: its name, by the registers that say which it is; without blanks,
 *              as other programs read what perf script prints
 * @callchain: to where the functions return that are under way, the innermost
 *             first, by frame pointers; as many as there are, up to a number.
 *             Only those in the present mode: what a program has called is
 *             not followed from the kernel.
 * @task: the task that runs, where the guest has said how to find it; false if
 *        that is not known, as in guests of the guest.  It is found in the
 *        kernel's memory, also while a program runs.
 * @raw_event: what a code counts, as perf's rNNNN has it; PMU_EVENT_NONE if
 *             nothing, or if the CPU has no PMU whose code it could be.  In any
 *             thread.
 * @counter_name: the register that is a counter of the CPU's Pmu, as the
 *                architecture's manual calls it; in any thread
 * @describe: fill in what the CPU has of a PMU, what that does, and what the
 *            host says of it; the guest does not notice.  In the vCPU's thread,
 *            or while that does not run.  False with @errp set if it cannot be
 *            read.
 * @host_first: whether perf events of QEMU's own on the host, which count under
 *              KVM, go before those of the guest; NULL where guests have
 *              counters of their own
 *
 * The address space, the callchain and the task are those of the vCPU's state
 * between two instructions, as it is in QEMU: behind cpu_synchronize_state(),
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
    unsigned (*callchain)(CPUState *cpu, uint64_t *callers, unsigned max);
    bool (*task)(CPUState *cpu, const PmuTaskLayout *layout, PmuTask *task);
    PmuEvent (*raw_event)(const CPUState *cpu, uint64_t code);
    const char *(*counter_name)(const CPUState *cpu, unsigned counter);
    bool (*describe)(CPUState *cpu, struct PmuCpuInfo *info, Error **errp);
    bool (*host_first)(const CPUState *cpu);
} PmuGuestOps;

/**
 * pmu_guest_ops - those of a vCPU's architecture
 * @cpu: the vCPU
 *
 * In any thread.
 *
 * Returns: NULL for architectures whose guests cannot be looked at.
 */
const PmuGuestOps *pmu_guest_ops(const CPUState *cpu);

/**
 * pmu_guest_host_first - whether QEMU's perf events go before the guest's
 * @cpu: the vCPU, configured, under KVM
 *
 * If so they are to be pinned, and otherwise they must not be.  In any thread.
 */
bool pmu_guest_host_first(const CPUState *cpu);

/**
 * pmu_guest_run - do something on a vCPU between two instructions, and wait
 * @cpu: the vCPU, which may be stopped
 * @fn: what to do, with the big lock held
 * @opaque: the pointer that it is given
 * @errp: that the vCPU is being unplugged; may be NULL
 *
 * As run_on_cpu(), also in commands of the monitor while a machine is recorded
 * or replayed.  In any thread that holds the big lock, which is given up
 * meanwhile: the vCPU may be gone when this returns, and whoever goes on to use
 * it needs a reference.
 *
 * Returns: false if the vCPU is being unplugged.  It is gone then, and what
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
 * @buf: is set to what is there, in the guest's byte order
 * @size: 4 or 8
 *
 * What is read is RAM, as are the tables of pages that lead there; to read from
 * a device could have an effect.  The guest sees nothing of it: there are no
 * faults, and no page is marked as accessed.
 *
 * Returns: false if nothing is mapped there, or no RAM.
 */
bool pmu_guest_read(void *memory, uint64_t addr, void *buf, unsigned size);

#endif /* HW_PMU_PMU_GUEST_H */
