/*
 * Performance monitoring unit: what an architecture tells of a guest
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "hw/core/sysemu-cpu-ops.h"
#include "system/replay.h"
#include "hw/pmu/pmu-guest.h"

const PmuGuestOps *pmu_guest_ops(const CPUState *cpu)
{
    return cpu->cc->sysemu_ops->pmu_guest;
}

/*
 * Whoever holds the lock of record and replay keeps vCPUs from running: to wait
 * for one would be for ever.
 */
void pmu_guest_run(CPUState *cpu, run_on_cpu_func fn, void *opaque)
{
    if (replay_mutex_locked()) {
        fn(cpu, RUN_ON_CPU_HOST_PTR(opaque));
    } else {
        run_on_cpu(cpu, fn, RUN_ON_CPU_HOST_PTR(opaque));
    }
}
