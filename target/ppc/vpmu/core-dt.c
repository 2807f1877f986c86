/*
 * Power virtual PMU: the caches of a modelled core, in device trees
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include <libfdt.h>
#include "cpu.h"
#include "hw/ppc/fdt.h"
#include "hw/pmu/pmu-core-model.h"
#include "vpmu.h"

static void set_cell(void *fdt, int offset, char which, const char *what,
                     uint32_t value)
{
    g_autofree char *name = g_strdup_printf("%c-cache-%s", which, what);

    _FDT(fdt_setprop_cell(fdt, offset, name, value));
}

/* Blocks stay as they are: dcbz and icbi are about these. */
static void set_cache(void *fdt, int offset, char which, const PmuCoreCache *c)
{
    set_cell(fdt, offset, which, "size", c->size);
    set_cell(fdt, offset, which, "line-size", c->line);
    set_cell(fdt, offset, which, "sets", pmu_core_sets(c));
}

void ppc_vpmu_core_dt(const PowerPCCPU *cpu, void *fdt, int offset)
{
    if (cpu->pmu_core_model) {
        set_cache(fdt, offset, 'd', &cpu->pmu_core_model->geometry.l1d);
        set_cache(fdt, offset, 'i', &cpu->pmu_core_model->geometry.l1i);
    }
}
