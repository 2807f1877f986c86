/*
 * Performance monitoring unit: reports of faces and helpers
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "exec/replay-core.h"
#include "hw/pmu/pmu-tcg-census.h"
#include "hw/pmu/compat.h"
#include "pmu-tcg-internal.h"

/*
 * Where a vCPU is
 */

unsigned pmu_tcg_mode(CPUState *cpu)
{
    return pmu_tcg_mode_of(cpu, state_of_block(cpu).flags);
}

uint64_t pmu_tcg_address(CPUState *cpu)
{
    return state_of_block(cpu).pc;
}

bool pmu_tcg_site(CPUState *cpu, uint64_t *pc, unsigned *mode)
{
    const PmuTcgCells *cells = pmu_tcg_cells(cpu);

    *pc = cells->site_pc;
    *mode = cells->site_mode;
    return cells->site_known;
}

/* Other events in the block do not belong to that instruction. */
bool pmu_tcg_is_late(const CPUState *cpu)
{
    const PmuTcg *e = pmu_tcg_engine(cpu);

    return e && e->late && e->late_pc != PMU_TCG_NO_INSN
           && pmu_share_is_calling(e->share, &e->due);
}

void pmu_tcg_where(CPUState *cpu, uint64_t *pc, unsigned *mode)
{
    const PmuTcg *e = pmu_tcg_engine(cpu);

    if (pmu_tcg_is_late(cpu)) {
        *pc = e->late_pc;
        *mode = e->late_mode;
    } else if (!pmu_tcg_site(cpu, pc, mode)) {
        *pc = pmu_tcg_address(cpu);
        *mode = pmu_tcg_mode(cpu);
    }
}

/* Whether it is an event of instructions, other than their execution */
static bool is_of_instructions(PmuEvent event)
{
    return (event >= PMU_EVENT_BRANCHES && event <= PMU_EVENT_ACCESSES)
           || event == PMU_EVENT_FAILED_STORES;
}

bool pmu_tcg_is_exact(const CPUState *cpu, PmuEvent event)
{
    const PmuTcg *e = pmu_tcg_engine(cpu);

    switch (event) {
    case PMU_EVENT_INSNS:
        return true;
    case PMU_EVENT_CYCLES:
    case PMU_EVENT_REF_CYCLES:
        return !e || !e->model.from_clock;
    default:
        return (is_of_instructions(event) || pmu_event_needs_core(event))
               && !(cpu->tcg_cflags & CF_PCREL);
    }
}

/*
 * Instructions
 */

/* Whether blocks of a mode count a tally */
static bool is_counted(CPUState *cpu, PmuTally tally, unsigned mode)
{
    return tcg_cflags_has(cpu, pmu_tcg_flags_for(PMU_TALLY_BIT(tally)))
           && !(cpu->pmu_uncounted >> mode & 1);
}

static void take_back(CPUState *cpu, PmuTally tally, unsigned mode, int events)
{
    if (pmu_tcg_engine(cpu) && is_counted(cpu, tally, mode)) {
        *pmu_tcg_cell(cpu, tally, mode) += events;
        if (unlikely(pmu_census_on) && tally == PMU_TALLY_INSNS) {
            pmu_census_take_back(cpu, mode, events);
        }
    }
}

void pmu_tcg_take_back(CPUState *cpu, PmuTally tally)
{
    take_back(cpu, tally, pmu_tcg_mode(cpu), 1);
}

void pmu_tcg_before_insn(CPUState *cpu)
{
    PmuTcg *e = pmu_tcg_engine(cpu);

    take_back(cpu, PMU_TALLY_INSNS, pmu_tcg_mode(cpu), 1);
    if (e) {
        pmu_tcg_look_early(e);
    }
}

void pmu_tcg_after_insn(CPUState *cpu)
{
    pmu_tcg_retire(cpu, pmu_tcg_mode(cpu));
}

void pmu_tcg_retire(CPUState *cpu, unsigned mode)
{
    take_back(cpu, PMU_TALLY_INSNS, mode, -1);
}

/*
 * Other events
 */

/*
 * A replay misses its TLB at other times than its recording: its size follows
 * the host's clock, and translation, too, goes through it.
 */
static bool is_reproducible(PmuTally tally)
{
    return !(PMU_TCG_TLB_TALLIES & PMU_TALLY_BIT(tally))
           || replay_mode == REPLAY_MODE_NONE;
}

/* The tallies that are counted here */
static PmuTallies wanted_tallies(const PmuTcg *e)
{
    return e->wanted & ~(e->core ? PMU_TCG_CORE_TALLIES : 0);
}

void pmu_tcg_count(CPUState *cpu, PmuTally tally)
{
    const PmuTcg *e = pmu_tcg_engine(cpu);

    if (e && (wanted_tallies(e) & PMU_TALLY_BIT(tally))
        && is_reproducible(tally)
        && --*pmu_tcg_cell(cpu, tally, pmu_tcg_mode(cpu)) <= 0) {
        pmu_tcg_request_fold(cpu);
    }
}

void pmu_tcg_count_tlb_miss(CPUState *cpu, MMUAccessType access)
{
    static const PmuTally tallies[] = {
        [MMU_DATA_LOAD] = PMU_TALLY_DTLB_LOAD_MISSES,
        [MMU_DATA_STORE] = PMU_TALLY_DTLB_STORE_MISSES,
        [MMU_INST_FETCH] = PMU_TALLY_ITLB_MISSES,
    };

    pmu_tcg_count(cpu, tallies[access]);
}

/*
 * Data
 */

void pmu_tcg_note_addresses(PmuTcg *engine, bool note)
{
    assert(pmu_share_in_transaction(engine->share));
    engine->note_addresses = note;
}

void pmu_tcg_note_addresses_outside(PmuTcg *engine, bool note)
{
    engine->note_outside = note;
    pmu_tcg_adapt_flags(engine);
}

/* With CF_PCREL, only an instruction's offset in its page is known. */
bool pmu_tcg_can_note_addresses(const CPUState *cpu)
{
    return !(cpu->tcg_cflags & CF_PCREL);
}

bool pmu_tcg_data_address(CPUState *cpu, uint64_t pc, uint64_t *address)
{
    const PmuTcgAccess *access = &pmu_tcg_cells(cpu)->access;

    *address = access->address;
    return tcg_cflags_has(cpu, CF_PMU_ADDRESSES) && access->pc == pc;
}

const PmuCoreEntry *pmu_tcg_data_entry(const CPUState *cpu)
{
    PmuTcgCore *core = pmu_tcg_core_of(cpu);

    if (!core) {
        return NULL;
    }
    /* The tally that has overflowed may be none of the core's. */
    pmu_tcg_core_see(core);
    return pmu_tcg_core_entry(core, pmu_tcg_cells(cpu)->access.address);
}

/*
 * The model of a core
 */

PmuTcgCore *pmu_tcg_core_of(const CPUState *cpu)
{
    const PmuTcg *e = pmu_tcg_engine(cpu);

    return e ? e->core : NULL;
}

void pmu_tcg_core_left(CPUState *cpu)
{
    PmuTcgCore *c = pmu_tcg_core_of(cpu);

    if (c) {
        pmu_tcg_core_leave(c);
    }
}

/*
 * The delivery of an interrupt may reach a deadline.  The overflow may be what
 * a replay is waiting for before it enters the next block.
 */
void pmu_tcg_core_accessed(CPUState *cpu, uint64_t address, unsigned bytes,
                           bool store)
{
    PmuTcgCore *c = pmu_tcg_core_of(cpu);

    pmu_tcg_core_note(c, store ? PMU_CORE_STORE : PMU_CORE_LOAD, address,
                      bytes);
    if (pmu_tcg_core_is_past_limit(c)) {
        pmu_tcg_request_fold(cpu);
    }
}

void pmu_tcg_core_fetched(CPUState *cpu, uint64_t address, uint32_t what)
{
    pmu_tcg_core_note_fetch(pmu_tcg_core_of(cpu), address, what);
}

void pmu_tcg_core_enter(CPUState *cpu, unsigned mode)
{
    pmu_tcg_core_make_room(pmu_tcg_core_of(cpu), mode);
}

/* The instructions before this one could not reach a deadline. */
void pmu_tcg_core_repeat(CPUState *cpu, uint64_t pc, unsigned mode)
{
    PmuTcgCore *c = pmu_tcg_core_of(cpu);
    PmuTcgCells *cells = pmu_tcg_cells(cpu);

    pmu_tcg_core_see(c);
    if (pmu_tcg_core_is_due(c)) {
        cells->site_pc = pc;
        cells->site_mode = mode;
        cells->site_known = true;
        pmu_tcg_request_fold(cpu);
    }
}
