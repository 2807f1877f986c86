/*
 * Performance monitoring unit: an architecture's description of its guests
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/main-loop.h"
#include "qapi/error.h"
#include "exec/target_page.h"
#include "hw/core/sysemu-cpu-ops.h"
#include "system/replay.h"
#include "system/tcg.h"
#include "hw/pmu/pmu-guest.h"
#include "hw/pmu/compat.h"

const PmuGuestOps *pmu_guest_ops(const CPUState *cpu)
{
    return cpu->cc->sysemu_ops->pmu_guest;
}

bool pmu_guest_host_first(const CPUState *cpu)
{
    const PmuGuestOps *ops = pmu_guest_ops(cpu);

    return ops->host_first && ops->host_first(cpu);
}

/*
 * The code that unplugs a vCPU waits for its thread without the big lock, and
 * then releases all that belonged to the vCPU.
 */
#define UNPLUG_US 1000

static void await_unplugging(CPUState *cpu)
{
    while (!DEVICE(cpu)->pending_deleted_event) {
        bql_unlock();
        g_usleep(UNPLUG_US);
        bql_lock();
    }
}

/*
 * While TCG's vCPUs are stopped, the thread that holds the big lock may use
 * them.  When a replay has ended, their thread may wait for a lock that is
 * never released, because QEMU is about to end.
 */
static bool is_at_rest(const CPUState *cpu)
{
    return tcg_enabled() && cpu->stopped;
}

/* Does not wait for a thread that has to end, as that would never return. */
static bool run_and_wait(CPUState *cpu, run_on_cpu_func fn, void *opaque)
{
    if (!cpu->unplug && is_at_rest(cpu)) {
        fn(cpu, RUN_ON_CPU_HOST_PTR(opaque));
    } else if (!cpu->unplug) {
        run_on_cpu(cpu, fn, RUN_ON_CPU_HOST_PTR(opaque));
    }
    if (cpu->unplug) {
        await_unplugging(cpu);
        return false;
    }
    return true;
}

/*
 * While a machine is recorded or replayed, vCPUs do not run as long as the main
 * loop is busy: waiting for one here would never end either.
 */
bool pmu_guest_run(CPUState *cpu, run_on_cpu_func fn, void *opaque,
                   Error **errp)
{
    /* A vCPU that is gone has no index any more. */
    int index = cpu->cpu_index;
    bool there;

    if (replay_mode != REPLAY_MODE_NONE) {
        fn(cpu, RUN_ON_CPU_HOST_PTR(opaque));
        return true;
    }
    object_ref(OBJECT(cpu));
    there = run_and_wait(cpu, fn, opaque);
    object_unref(OBJECT(cpu));
    if (!there) {
        error_setg(errp, "vCPU %d is being unplugged", index);
    }
    return there;
}

/* Returns: whether anything is mapped there; the memory has its page then */
static bool find_page(PmuGuestMemory *m, vaddr addr)
{
    vaddr page = addr & TARGET_PAGE_MASK;
    MemTxAttrs attrs = {};

    if (m->as && m->page == page) {
        return true;
    }
    m->page = page;
    m->phys = cpu_get_phys_page_attrs_debug(m->cpu, page, &attrs);
    m->as = m->phys == -1 ? NULL :
            cpu_get_address_space(m->cpu, cpu_asidx_from_attrs(m->cpu, attrs));
    return m->as;
}

bool pmu_guest_read(void *memory, uint64_t addr, void *buf, unsigned size)
{
    PmuGuestMemory *m = memory;

    return find_page(m, addr)
           && address_space_read_ram(m->as,
                                     m->phys + (addr & ~TARGET_PAGE_MASK),
                                     MEMTXATTRS_UNSPECIFIED, buf, size);
}
