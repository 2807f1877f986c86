/*
 * Performance monitoring unit: the model of a vCPU's core, and its log
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "migration/qemu-file-types.h"
#include "migration/vmstate.h"
#include "hw/pmu/pmu-guest.h"
#include "tcg/tcg.h"
#include "pmu-tcg-internal.h"

/*
 * How many programs are remembered.  A guest may have any number of address
 * spaces; the one that was used longest ago is forgotten.
 */
#define MAX_PROGRAMS 16

/* The log is of no mode until the next block is entered. */
#define MODE_OF_NEXT PMU_MAX_MODES

/* Accesses, and branches, even if the latter are of a block without a limit. */
#define ALL_OF_LOG (PMU_TCG_CORE_BRANCHES + PMU_TCG_CORE_LOG)

/*
 * A program may not yet have changed its registers when it is interrupted among
 * its first instructions.
 */
#define FIRST_INSNS 16

/*
 * An instruction can be as much as this share of a budget of cycles; the rest
 * is for misses.
 */
#define INSN_SHARE 16

/* The number of no line and of no page */
#define NO_NUMBER UINT64_MAX

/**
 * struct Program - a core for one address space
 * @space: the address space
 * @core: its core; NULL if it was never used
 * @used: when it was entered last, in the order of such times
 * @insns: how many instructions the core has seen since it was empty
 */
typedef struct Program {
    PmuGuestSpace space;
    PmuCore *core;
    uint64_t used;
    uint64_t insns;
} Program;

/**
 * struct PmuTcgCore - the cores of a vCPU
 * @cpu: the vCPU
 * @model: what they are like
 * @misses: the cycles that misses cost
 * @stalls: the same by their cause
 * @log: the log: accesses, and, from PMU_TCG_CORE_BRANCHES on, branches
 * @seen: how many accesses it had when it was read last, which are still there
 * @begin_limit: the limit of @mode while there were no branches
 * @pages: the pages that were fetched from last, or NO_NUMBER; PmuTcgCells has
 *         the lines
 * @lines: for each of these, a set of the places that may have lines of it
 * @mode: the mode of all entries in the log, or MODE_OF_NEXT
 * @core: the core that is in use
 * @program: whose it is, or NULL
 * @system: the core of all that is not a program, or of everything
 * @programs: those of programs
 * @uses: how often a program was entered
 * @tallies: the counts of all cores, in each mode
 * @wanted: the tallies that have deadlines
 * @deadlines: where they are
 */
struct PmuTcgCore {
    CPUState *cpu;
    PmuCoreModel model;
    PmuCoreWeights misses;
    PmuCoreWeights stalls[PMU_CORE_STALLS];
    PmuCoreEntry log[ALL_OF_LOG];
    size_t seen;
    PmuCoreEntry *begin_limit;
    uint64_t pages[PMU_TCG_CORE_RECENT];
    uint64_t lines[PMU_TCG_CORE_RECENT];
    unsigned mode;
    PmuCore *core;
    Program *program;
    PmuCore *system;
    Program programs[MAX_PROGRAMS];
    uint64_t uses;
    uint64_t tallies[PMU_MAX_MODES][PMU_CORE_TALLIES];
    PmuTallies wanted;
    PmuBudgets deadlines;
};

/*
 * Tallies of the engine: a sum of a core's
 */

#define OF(tally) (1u << PMU_CORE_##tally)
#define OF_ALL(misses) \
    (OF(FETCH_##misses) | OF(LOAD_##misses) | OF(STORE_##misses) \
     | OF(MODIFY_##misses))
#define OF_READS(misses) (OF(LOAD_##misses) | OF(MODIFY_##misses))
#define OF_DATA(misses) (OF_READS(misses) | OF(STORE_##misses))

/* Sums of additions and of subtractions: no entry adds more than 1. */
typedef struct Sum {
    uint32_t plus;
    uint32_t minus;
} Sum;

static const Sum sums[PMU_TALLY__MAX] = {
    [PMU_TALLY_DTLB_LOAD_MISSES]  = { OF_READS(TLB_MISSES) },
    [PMU_TALLY_DTLB_STORE_MISSES] = { OF(STORE_TLB_MISSES) },
    [PMU_TALLY_ITLB_MISSES]       = { OF(FETCH_TLB_MISSES) },
    [PMU_TALLY_L1D_MISSES]        = { OF_DATA(L1_MISSES) },
    [PMU_TALLY_L1D_LOAD_MISSES]   = { OF_READS(L1_MISSES) },
    [PMU_TALLY_L1D_STORE_MISSES]  = { OF(STORE_L1_MISSES) },
    [PMU_TALLY_L1D_LOAD_HITS]     = { OF(LOADS) | OF(MODIFIES),
                                      OF_READS(L1_MISSES) },
    [PMU_TALLY_L1I_MISSES]        = { OF(FETCH_L1_MISSES) },
    [PMU_TALLY_LLC_REFS]          = { OF_ALL(L1_MISSES) },
    [PMU_TALLY_LLC_MISSES]        = { OF_ALL(LAST_MISSES) },
    [PMU_TALLY_LLC_LOAD_HITS]     = { OF_READS(L1_MISSES),
                                      OF_READS(LAST_MISSES) },
    [PMU_TALLY_LLC_LOAD_MISSES]   = { OF_READS(LAST_MISSES) },
    [PMU_TALLY_LLC_STORE_MISSES]  = { OF(STORE_LAST_MISSES) },
    [PMU_TALLY_LLC_FETCH_MISSES]  = { OF(FETCH_LAST_MISSES) },
    [PMU_TALLY_BRANCH_MISSES]     = { OF(NOT_TAKEN_MISSES) | OF(TAKEN_MISSES)
                                      | OF(INDIRECT_MISSES)
                                      | OF(RETURN_MISSES) },
    [PMU_TALLY_COND_MISSES]       = { OF(NOT_TAKEN_MISSES)
                                      | OF(TAKEN_MISSES) },
    [PMU_TALLY_INDIRECT_MISSES]   = { OF(INDIRECT_MISSES) },
    [PMU_TALLY_RETURN_MISSES]     = { OF(RETURN_MISSES) },
};

static uint64_t sum_of(const uint64_t *tallies, uint32_t of)
{
    uint64_t sum = 0;

    for (; of; of &= of - 1) {
        sum += tallies[ctz32(of)];
    }
    return sum;
}

static bool is_cycles(PmuTally tally)
{
    return tally == PMU_TALLY_CYCLES || tally == PMU_TALLY_REF_CYCLES;
}

/* Returns: NULL for a sum of tallies that all count alike. */
static const PmuCoreWeights *weights_of(const PmuTcgCore *c, PmuTally tally)
{
    switch (tally) {
    case PMU_TALLY_CYCLES:
    case PMU_TALLY_REF_CYCLES:
        return &c->misses;
    case PMU_TALLY_SPECULATION_CYCLES:
    case PMU_TALLY_FRONTEND_CYCLES:
    case PMU_TALLY_BACKEND_CYCLES:
        return &c->stalls[tally - PMU_TALLY_SPECULATION_CYCLES];
    default:
        return NULL;
    }
}

/* As far as the log has been read */
static uint64_t counted(const PmuTcgCore *c, PmuTally tally, unsigned mode)
{
    const uint64_t *tallies = c->tallies[mode];
    const PmuCoreWeights *weights = weights_of(c, tally);

    return weights ? pmu_core_weigh(weights, tallies)
           : sum_of(tallies, sums[tally].plus)
             - sum_of(tallies, sums[tally].minus);
}

uint64_t pmu_tcg_core_tally(PmuTcgCore *c, PmuTally tally, unsigned mode)
{
    pmu_tcg_core_see(c);
    return counted(c, tally, mode);
}

void pmu_tcg_core_sum(PmuTcgCore *c, uint64_t *tallies)
{
    pmu_tcg_core_see(c);
    memset(tallies, 0, sizeof(c->tallies[0]));
    for (unsigned m = 0; m < PMU_MAX_MODES; m++) {
        for (unsigned t = 0; t < PMU_CORE_TALLIES; t++) {
            tallies[t] += c->tallies[m][t];
        }
    }
}

/*
 * Whose core
 */

static bool is_same(const PmuGuestSpace *a, const PmuGuestSpace *b)
{
    return a->guest == b->guest && a->id == b->id;
}

/* The program's own place, or else the place that was used longest ago */
static Program *place_for(PmuTcgCore *c, const PmuGuestSpace *space)
{
    Program *oldest = c->programs;

    for (unsigned i = 0; i < MAX_PROGRAMS; i++) {
        Program *p = &c->programs[i];

        if (p->core && is_same(&p->space, space)) {
            return p;
        }
        if (p->used < oldest->used) {
            oldest = p;
        }
    }
    if (oldest->core) {
        pmu_core_reset(oldest->core);
    } else {
        oldest->core = pmu_core_new(&c->model.geometry);
    }
    oldest->space = *space;
    oldest->insns = 0;
    return oldest;
}

static Program *find_program(PmuTcgCore *c)
{
    PmuGuestSpace space = pmu_guest_ops(c->cpu)->space(c->cpu);
    Program *program = place_for(c, &space);

    /* Another program may have had these page tables before. */
    if (program->insns > FIRST_INSNS
        && pmu_guest_ops(c->cpu)->begins(c->cpu)) {
        pmu_core_reset(program->core);
        program->insns = 0;
    }
    program->used = ++c->uses;
    return program;
}

static void choose_core(PmuTcgCore *c)
{
    bool is_program = pmu_guest_ops(c->cpu)->user_modes >> c->mode & 1;

    c->program = is_program && !c->model.is_shared ? find_program(c) : NULL;
    c->core = c->program ? c->program->core : c->system;
}

/*
 * The log
 */

static PmuTcgCells *cells_of(const PmuTcgCore *c)
{
    return pmu_tcg_cells(c->cpu);
}

/* The most entries that cannot make a tally reach its deadline */
static uint64_t entries_before(const PmuTcgCore *c, PmuTally tally)
{
    uint64_t deadline = c->deadlines[tally][c->mode];
    uint64_t now = counted(c, tally, c->mode);
    uint64_t left = deadline > now ? deadline - now : 0;
    const PmuCoreWeights *weights = weights_of(c, tally);

    if (deadline == PMU_NO_DEADLINE) {
        return PMU_TCG_CORE_LOG;
    }
    return weights ? pmu_core_safe_entries(weights, 0, left)
           : MAX(left, 1) - 1;
}

unsigned pmu_tcg_core_room(const PmuTcgCore *c)
{
    uint64_t room = PMU_TCG_CORE_LOG;

    for (PmuTallies rest = c->wanted; rest; rest &= rest - 1) {
        room = MIN(room, entries_before(c, ctz64(rest)));
    }
    return room;
}

static void set_limit(PmuTcgCore *c)
{
    if (c->mode != MODE_OF_NEXT) {
        c->begin_limit = c->log + pmu_tcg_core_room(c);
        cells_of(c)->core_limit[c->mode] = c->begin_limit;
    }
}

/*
 * Fetches
 *
 * A line is recent if it is the one that its set used last, and if its page is
 * the one that the TLB's set used last: a fetch from it would have no effect.
 * So places are shared by all lines, or pages, of a set.
 */

uint64_t pmu_tcg_core_line(const PmuTcgCore *c, uint64_t address)
{
    return address / c->model.geometry.l1i.line;
}

static unsigned place_of(uint64_t number, uint64_t sets)
{
    return number & (MIN(sets, PMU_TCG_CORE_RECENT) - 1);
}

unsigned pmu_tcg_core_place(const PmuTcgCore *c, uint64_t line)
{
    const PmuCoreCache *l1i = &c->model.geometry.l1i;

    return place_of(line, pmu_core_sets(l1i));
}

static unsigned line_bits_of_page(const PmuTcgCore *c)
{
    return ctz32(c->model.geometry.page / c->model.geometry.l1i.line);
}

static void forget_recent(PmuTcgCore *c)
{
    memset(cells_of(c)->core_lines, 0xff, sizeof(cells_of(c)->core_lines));
    memset(c->pages, 0xff, sizeof(c->pages));
    memset(c->lines, 0, sizeof(c->lines));
}

static void forget_lines(PmuTcgCore *c, uint64_t places)
{
    for (; places; places &= places - 1) {
        cells_of(c)->core_lines[ctz64(places)] = NO_NUMBER;
    }
}

static void note_line(PmuTcgCore *c, uint64_t line)
{
    const PmuCoreTlb *tlb = &c->model.geometry.itlb;
    uint64_t page = line >> line_bits_of_page(c);
    unsigned of_page = place_of(page, tlb->entries / tlb->ways);
    unsigned of_line = pmu_tcg_core_place(c, line);

    if (c->pages[of_page] != page) {
        forget_lines(c, c->lines[of_page]);
        c->pages[of_page] = page;
        c->lines[of_page] = 0;
    }
    c->lines[of_page] |= 1ull << of_line;
    cells_of(c)->core_lines[of_line] = line;
}

static size_t nr_accesses(const PmuTcgCore *c)
{
    return cells_of(c)->core_next - c->log;
}

static size_t nr_branches(const PmuTcgCore *c)
{
    return c->mode == MODE_OF_NEXT ? 0
           : c->begin_limit - cells_of(c)->core_limit[c->mode];
}

static bool is_empty(const PmuTcgCore *c)
{
    return !nr_accesses(c) && !nr_branches(c);
}

static void enter(PmuTcgCore *c, unsigned mode)
{
    c->mode = mode;
    choose_core(c);
    forget_recent(c);
    set_limit(c);
}

static void see_accesses(PmuTcgCore *c)
{
    uint64_t *tallies = c->tallies[c->mode];
    uint64_t insns = tallies[PMU_CORE_FETCHES];

    c->seen = nr_accesses(c);
    pmu_core_see(c->core, c->log, c->seen, tallies);
    if (c->program) {
        c->program->insns += tallies[PMU_CORE_FETCHES] - insns;
    }
    cells_of(c)->core_next = c->log;
}

/*
 * Records of branches
 *
 * Each has its place in the log, with what came before it.
 */

/* The newest, which the core did not read yet; @end is after the last. */
static PmuLoggedBranch *new_records(const PmuTcgCore *c, PmuLoggedBranch **end)
{
    const PmuBranchLog *log = &cells_of(c)->log;
    PmuLoggedBranch *newest = pmu_branch_log_newest(log);

    for (*end = newest; *end < log->branches + PMU_BRANCH_LOG_SIZE
                        && (*end)->branches != PMU_LOGGED_PRICED; ++*end) {
        continue;
    }
    return newest;
}

/* How many entries of the log are between two ends, of one the lower half */
static size_t distance(uint32_t low, uint32_t high)
{
    return (high - low) / sizeof(PmuCoreEntry);
}

static uint32_t lower_half(const PmuCoreEntry *end)
{
    return (uintptr_t)end;
}

/* Set whether a taken branch in some entries was predicted wrong. */
static void tell_outcome(PmuLoggedBranch *b, const PmuCoreEntry *entry,
                         const PmuCoreEntry *end)
{
    for (; entry < end; entry++) {
        PmuCoreKind kind = pmu_core_kind_of(entry);

        if (kind != PMU_CORE_NOT_TAKEN && kind != PMU_CORE_CALL
            && entry->from & PMU_CORE_MISPREDICTED) {
            b->what |= 1u << PMU_LOGGED_WRONG;
        }
    }
}

static uint64_t cost(const PmuTcgCore *c, const PmuCoreEntry *entry,
                     const PmuCoreEntry *end)
{
    uint64_t sum = 0;

    for (; entry < end; entry++) {
        sum += pmu_core_cost(&c->model.penalties, entry);
    }
    return sum;
}

/*
 * From the oldest record to the newest.  @cycles: of all misses before the log;
 * @branch: the first one there
 */
static void price_records(PmuTcgCore *c, PmuLoggedBranch *newest,
                          PmuLoggedBranch *end, uint64_t cycles,
                          const PmuCoreEntry *branch)
{
    const PmuCoreEntry *const first = branch, *access = c->log;

    for (PmuLoggedBranch *b = end - 1; b >= newest; b--) {
        const PmuCoreEntry *accesses_end =
            c->log + distance(lower_half(c->log), b->accesses);
        const PmuCoreEntry *branches_end =
            first + distance(b->branches, lower_half(c->begin_limit));

        cycles += cost(c, access, accesses_end)
                  + cost(c, branch, branches_end);
        tell_outcome(b, branch, branches_end);
        b->accesses = cycles;
        b->branches = PMU_LOGGED_PRICED;
        access = accesses_end;
        branch = branches_end;
    }
}

/*
 * A core wants to see the first one first.
 *
 * Returns: the first one.
 */
static const PmuCoreEntry *see_branches(PmuTcgCore *c)
{
    size_t count = nr_branches(c);
    PmuCoreEntry *first = c->begin_limit - count + PMU_TCG_CORE_BRANCHES;

    for (size_t i = 0; i < count / 2; i++) {
        PmuCoreEntry other = first[i];

        first[i] = first[count - 1 - i];
        first[count - 1 - i] = other;
    }
    pmu_core_see(c->core, first, count, c->tallies[c->mode]);
    return first;
}

void pmu_tcg_core_see(PmuTcgCore *c)
{
    PmuLoggedBranch *end, *records = new_records(c, &end);
    const PmuCoreEntry *branches;
    uint64_t cycles;

    if (is_empty(c) && records == end) {
        return;
    }
    if (c->mode == MODE_OF_NEXT) {
        enter(c, pmu_tcg_mode(c->cpu));
    }
    cycles = counted(c, PMU_TALLY_CYCLES, c->mode);
    see_accesses(c);
    branches = see_branches(c);
    price_records(c, records, end, cycles, branches);
    set_limit(c);
}

void pmu_tcg_core_flush(PmuTcgCore *c)
{
    pmu_tcg_core_see(c);
    pmu_core_flush(c->system);
    for (unsigned i = 0; i < MAX_PROGRAMS; i++) {
        if (c->programs[i].core) {
            pmu_core_flush(c->programs[i].core);
        }
    }
    forget_recent(c);
}

void pmu_tcg_core_leave(PmuTcgCore *c)
{
    pmu_tcg_core_see(c);
    if (c->mode != MODE_OF_NEXT) {
        cells_of(c)->core_limit[c->mode] = c->log;
        c->mode = MODE_OF_NEXT;
    }
}

/* The last fetch may come after the accesses, as others did before it. */
const PmuCoreEntry *pmu_tcg_core_entry(const PmuTcgCore *c, uint64_t address)
{
    size_t least = c->seen - MIN(c->seen, PMU_TCG_CORE_BLOCK);

    for (size_t i = c->seen; i > least; i--) {
        const PmuCoreEntry *entry = &c->log[i - 1];

        if (entry->address == address
            && pmu_core_kind_of(entry) != PMU_CORE_FETCH) {
            return entry;
        }
    }
    return NULL;
}

bool pmu_tcg_core_make_room(PmuTcgCore *c, unsigned mode)
{
    bool changes = c->mode != mode || !is_empty(c);

    if (c->mode != mode && c->mode != MODE_OF_NEXT) {
        pmu_tcg_core_leave(c);
    }
    if (c->mode == MODE_OF_NEXT) {
        enter(c, mode);
    }
    pmu_tcg_core_see(c);
    return changes;
}

bool pmu_tcg_core_is_due(const PmuTcgCore *c)
{
    for (PmuTallies rest = c->wanted; rest; rest &= rest - 1) {
        unsigned t = ctz64(rest);

        if (c->mode != MODE_OF_NEXT
            && counted(c, t, c->mode) >= c->deadlines[t][c->mode]) {
            return true;
        }
    }
    return false;
}

void pmu_tcg_core_note_fetch(PmuTcgCore *c, uint64_t address, uint32_t what)
{
    unsigned bytes = what >> PMU_CORE_SIZE & PMU_CORE_MOST_BYTES;
    uint64_t last = pmu_tcg_core_line(c, address + bytes - 1);

    *cells_of(c)->core_next++ = (PmuCoreEntry) {
        .address = address,
        .what = what,
    };
    for (uint64_t l = pmu_tcg_core_line(c, address); l <= last; l++) {
        note_line(c, l);
    }
}

/* The limit of entries of no mode is not known yet. */
bool pmu_tcg_core_is_past_limit(const PmuTcgCore *c)
{
    const PmuTcgCells *cells = cells_of(c);

    return c->wanted && (c->mode == MODE_OF_NEXT
                         || cells->core_next > cells->core_limit[c->mode]);
}

void pmu_tcg_core_note(PmuTcgCore *c, PmuCoreKind kind, uint64_t address,
                       unsigned bytes)
{
    PmuTcgCells *cells = cells_of(c);

    if (cells->core_next >= c->log + PMU_TCG_CORE_LOG) {
        pmu_tcg_core_see(c);
    }
    *cells->core_next++ = (PmuCoreEntry) {
        .address = address,
        .what = pmu_core_what(kind, bytes, 1),
    };
}

/*
 * Deadlines
 */

uint64_t pmu_tcg_core_insns(const PmuTcgCore *c, uint64_t cycles)
{
    if (cycles == PMU_NO_DEADLINE) {
        return PMU_NO_DEADLINE;
    }
    return MAX(1, cycles / INSN_SHARE / MAX(1, c->model.penalties.insn));
}

/* The part of a budget that is not for the instructions' own cycles */
static uint64_t budget_of_core(const PmuTcgCore *c, PmuTally tally,
                               uint64_t budget)
{
    uint64_t insns;

    if (!is_cycles(tally) || budget == PMU_NO_DEADLINE) {
        return budget;
    }
    insns = pmu_tcg_core_insns(c, budget) * c->model.penalties.insn;
    return budget > insns ? budget - insns : 0;
}

void pmu_tcg_core_plan(PmuTcgCore *c, PmuTallies wanted,
                       const PmuBudgets budgets)
{
    pmu_tcg_core_see(c);
    c->wanted = wanted;
    for (PmuTallies rest = wanted; rest; rest &= rest - 1) {
        unsigned t = ctz64(rest);

        for (unsigned m = 0; m < PMU_MAX_MODES; m++) {
            uint64_t now = counted(c, t, m);
            uint64_t budget = budget_of_core(c, t, budgets[t][m]);

            c->deadlines[t][m] = budget < PMU_NO_DEADLINE - now
                                 ? now + budget : PMU_NO_DEADLINE;
        }
    }
    set_limit(c);
}

uint64_t pmu_tcg_core_most(const PmuTcgCore *c)
{
    const PmuCorePenalties *p = &c->model.penalties;

    return 64ull * MAX(p->l1 + p->last + p->tlb, p->branch)
           + TCG_MAX_INSNS * (uint64_t)p->insn;
}

/*
 * Life
 */

const PmuCoreModel *pmu_tcg_core_model(const PmuTcgCore *c)
{
    return &c->model;
}

PmuTcgCore *pmu_tcg_core_new(CPUState *cpu, const PmuCoreModel *model)
{
    PmuTcgCore *c = g_new0(PmuTcgCore, 1);

    c->cpu = cpu;
    c->model = *model;
    c->misses = pmu_core_cycles(&model->penalties);
    c->misses.of[PMU_CORE_FETCHES] = 0;
    for (unsigned i = 0; i < PMU_CORE_STALLS; i++) {
        c->stalls[i] = pmu_core_stalled_cycles(&model->penalties, i);
    }
    c->mode = MODE_OF_NEXT;
    c->system = pmu_core_new(&model->geometry);
    cells_of(c)->core_next = c->log;
    for (unsigned m = 0; m < PMU_MAX_MODES; m++) {
        cells_of(c)->core_limit[m] = c->log;
    }
    return c;
}

void pmu_tcg_core_free(PmuTcgCore *c)
{
    if (c) {
        memset(cells_of(c)->core_limit, 0, sizeof(cells_of(c)->core_limit));
        cells_of(c)->core_next = NULL;
        for (unsigned i = 0; i < MAX_PROGRAMS; i++) {
            pmu_core_free(c->programs[i].core);
        }
        pmu_core_free(c->system);
        g_free(c);
    }
}

static void forget(PmuTcgCore *c)
{
    pmu_core_reset(c->system);
    for (unsigned i = 0; i < MAX_PROGRAMS; i++) {
        pmu_core_free(c->programs[i].core);
        c->programs[i] = (Program) { };
    }
    c->uses = 0;
}

void pmu_tcg_core_reset(PmuTcgCore *c)
{
    pmu_tcg_core_leave(c);
    forget(c);
}

/*
 * Migration
 */

/* No core counts that far. */
#define MAX_TALLY (1ull << 48)

static void put_core(QEMUFile *f, const PmuCore *core)
{
    size_t size = pmu_core_state_size(core);
    g_autofree uint8_t *state = g_malloc(size);

    pmu_core_save(core, state);
    qemu_put_buffer(f, state, size);
}

static bool get_core(QEMUFile *f, PmuCore *core)
{
    size_t size = pmu_core_state_size(core);
    g_autofree uint8_t *state = g_malloc(size);

    return qemu_get_buffer(f, state, size) == size
           && pmu_core_load(core, state, size);
}

static int put_contents(QEMUFile *f, void *opaque, size_t unused,
                        const VMStateField *field, JSONWriter *vmdesc)
{
    const PmuTcgCore *c = opaque;

    put_core(f, c->system);
    for (unsigned i = 0; i < MAX_PROGRAMS; i++) {
        const Program *p = &c->programs[i];

        qemu_put_byte(f, p->core != NULL);
        if (p->core) {
            qemu_put_be64(f, p->space.guest);
            qemu_put_be64(f, p->space.id);
            qemu_put_be64(f, p->used);
            qemu_put_be64(f, p->insns);
            put_core(f, p->core);
        }
    }
    return 0;
}

static bool get_program(QEMUFile *f, PmuTcgCore *c, Program *p)
{
    if (!qemu_get_byte(f)) {
        return true;
    }
    p->space.guest = qemu_get_be64(f);
    p->space.id = qemu_get_be64(f);
    p->used = qemu_get_be64(f);
    p->insns = qemu_get_be64(f);
    p->core = pmu_core_new(&c->model.geometry);
    return get_core(f, p->core);
}

static int get_contents(QEMUFile *f, void *opaque, size_t unused,
                        const VMStateField *field)
{
    PmuTcgCore *c = opaque;

    forget(c);
    if (!get_core(f, c->system)) {
        return -EINVAL;
    }
    for (unsigned i = 0; i < MAX_PROGRAMS; i++) {
        if (!get_program(f, c, &c->programs[i])) {
            return -EINVAL;
        }
        c->uses = MAX(c->uses, c->programs[i].used);
    }
    return 0;
}

static const VMStateInfo contents_info = {
    .name = "pmu-core-contents",
    .put = put_contents,
    .get = get_contents,
};

/*
 * The log belongs to the state that is saved; when another is loaded, to that
 * which is replaced.
 */
static int pmu_tcg_core_see_log(void *opaque)
{
    pmu_tcg_core_leave(opaque);
    return 0;
}

static int get_tally(QEMUFile *f, void *pv, size_t size,
                     const VMStateField *field)
{
    return pmu_tcg_get_count(f, pv, 0, MAX_TALLY);
}

static const VMStateInfo tally_info = {
    .name = "pmu-core-tally",
    .get = get_tally,
    .put = pmu_tcg_put_count,
};

/*
 * The contents depend on the sizes, and cycles on all that they have been
 * computed of.
 */
#define OTHER_MODEL "Both sides need the same pmu-core."
#define SAME_WIDE(field) \
    VMSTATE_UINT64_EQUAL(model.field, PmuTcgCore, OTHER_MODEL)
#define SAME(field) \
    VMSTATE_UINT32_EQUAL(model.field, PmuTcgCore, OTHER_MODEL)

static const VMStateDescription vmstate_model = {
    .name = "pmu-core",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        SAME_WIDE(geometry.l1i.size),
        SAME(geometry.l1i.ways),
        SAME(geometry.l1i.line),
        SAME_WIDE(geometry.l1d.size),
        SAME(geometry.l1d.ways),
        SAME(geometry.l1d.line),
        SAME_WIDE(geometry.last.size),
        SAME(geometry.last.ways),
        SAME(geometry.last.line),
        SAME(geometry.itlb.entries),
        SAME(geometry.itlb.ways),
        SAME(geometry.dtlb.entries),
        SAME(geometry.dtlb.ways),
        SAME(geometry.page),
        SAME(geometry.history),
        SAME(geometry.places),
        SAME(geometry.targets),
        SAME(geometry.returns),
        SAME(geometry.align),
        SAME(penalties.insn),
        SAME(penalties.l1),
        SAME(penalties.last),
        SAME(penalties.tlb),
        SAME(penalties.branch),
        VMSTATE_END_OF_LIST()
    }
};

const VMStateDescription vmstate_pmu_tcg_core = {
    .name = "pmu-tcg-core",
    .version_id = 2,
    .minimum_version_id = 2,
    .pre_save = pmu_tcg_core_see_log,
    .pre_load = pmu_tcg_core_see_log,
    .fields = (const VMStateField[]) {
        {
            .name = "model",
            .vmsd = &vmstate_model,
            .flags = VMS_STRUCT,
        },
        VMSTATE_2DARRAY(tallies, PmuTcgCore, PMU_MAX_MODES, PMU_CORE_TALLIES,
                        0, tally_info, uint64_t),
        {
            .name = "contents",
            .info = &contents_info,
            .flags = VMS_SINGLE,
        },
        VMSTATE_END_OF_LIST()
    }
};
