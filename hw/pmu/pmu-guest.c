/*
 * Performance monitoring unit: what an architecture tells of a guest
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "exec/memory.h"
#include "exec/target_page.h"
#include "hw/core/sysemu-cpu-ops.h"
#include "system/replay.h"
#include "hw/pmu/pmu-guest.h"

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
 * Where a machine is recorded or replayed, vCPUs do not run while the main loop
 * does anything: to wait for one would be for ever.  So it would for one that
 * is being unplugged, which has been told so with the big lock held; what was
 * asked of it before is still done.
 */
bool pmu_guest_run(CPUState *cpu, run_on_cpu_func fn, void *opaque)
{
    if (replay_mode != REPLAY_MODE_NONE) {
        fn(cpu, RUN_ON_CPU_HOST_PTR(opaque));
        return true;
    }
    if (cpu->unplug) {
        return false;
    }
    run_on_cpu(cpu, fn, RUN_ON_CPU_HOST_PTR(opaque));
    return true;
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
    static const MemTxAttrs from_ram = { .memory = 1 };
    PmuGuestMemory *m = memory;

    return find_page(m, addr)
           && address_space_read(m->as, m->phys + (addr & ~TARGET_PAGE_MASK),
                                 from_ram, buf, size) == MEMTX_OK;
}
