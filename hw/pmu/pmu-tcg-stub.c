/*
 * Performance monitoring unit: stubs for accel/tcg on targets without one
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qapi/error.h"
#include "hw/pmu/pmu-filter.h"
#include "hw/pmu/pmu-tcg.h"
#include "hw/pmu/pmu-tcg-census.h"
#include "hw/pmu/pmu-tcg-exec.h"
#include "hw/pmu/pmu-tcg-translate.h"

void pmu_tcg_give_insns_back(CPUState *cpu, const TranslationBlock *tb,
                             int insns)
{
}

void pmu_tcg_step_counting(CPUState *cpu, const TranslationBlock *tb)
{
}

bool pmu_tcg_block_expired(CPUState *cpu, const TranslationBlock *tb)
{
    return false;
}

bool pmu_tcg_has_prepared(const CPUState *cpu)
{
    return false;
}

bool pmu_tcg_fold_or_sample(CPUState *cpu)
{
    return false;
}

void pmu_tcg_note_time(CPUState *cpu, uintptr_t host_pc)
{
}

void pmu_tcg_note_halt(CPUState *cpu)
{
}

void pmu_tcg_note_wakeup(CPUState *cpu)
{
}

void pmu_tcg_note_entry(CPUState *cpu)
{
}

unsigned pmu_tcg_mode(CPUState *cpu)
{
    return 0;
}

bool pmu_tcg_is_exact(const CPUState *cpu, PmuEvent event)
{
    return false;
}

void pmu_tcg_core_accessed(CPUState *cpu, uint64_t address, unsigned bytes,
                           bool store)
{
}

void pmu_tcg_core_left(CPUState *cpu)
{
}

void pmu_gen_insns(DisasContextBase *db)
{
}

void pmu_gen_folds(DisasContextBase *db)
{
}

void pmu_translate_insn_start(DisasContextBase *db)
{
}

void pmu_translate_insn_end(DisasContextBase *db)
{
}

void pmu_census_start(Error **errp)
{
    error_setg(errp, "The PMU of this target cannot take a census");
}

void pmu_census_save(const char *file, Error **errp)
{
    error_setg(errp, "There is no census");
}

void pmu_filter_add_property(ObjectClass *accel)
{
}
