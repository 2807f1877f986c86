/*
 * Fuzzer of the virtual PMU: CPUs, their events, and their state
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "cpu.h"
#include "hw/pmu/pmu-cpu.h"
#include "hw/pmu/pmu-tcg.h"
#include "hw/pmu/pmu-tcg-internal.h"
#include "io/channel-buffer.h"
#include "migration/qemu-file.h"
#include "migration/vmstate.h"
#include "hw/pmu/compat.h"
#include "fuzz.h"

/* The most events of one operation */
#define MAX_EVENTS 0xfff

/* Parts of a state that can be changed */
#define MAX_SECTIONS 16

#define CF_PMU (CF_PMU_INSNS | CF_PMU_BRANCHES | CF_PMU_ACCESSES \
                | CF_PMU_ADDRESSES)

CPUState *fuzz_cpu;

static CPUState *cpus[2];

/* The saved state, which may have been changed; empty if nothing was saved */
static GByteArray *saved;
static bool changed;

/* This thread does the work of the CPU's own thread. */
static void become(CPUState *cpu)
{
    fuzz_cpu = cpu;
    current_cpu = cpu;
}

/* Check names: one that no state contains would never be changed. */
static bool has_subsection(const VMStateDescription *vmsd, const char *name)
{
    for (const VMStateDescription *const *sub = vmsd->subsections;
         sub && *sub; sub++) {
        if (g_str_equal((*sub)->name, name) || has_subsection(*sub, name)) {
            return true;
        }
    }
    return false;
}

static void check_sections(void)
{
    const char *const *name = fuzz_target.sections;

    for (; *name; name++) {
        g_assert(has_subsection(fuzz_target.vmsd, *name));
    }
    g_assert(name - fuzz_target.sections < MAX_SECTIONS);
}

void fuzz_machine_start(void)
{
    check_sections();
    for (int i = 0; i < ARRAY_SIZE(cpus); i++) {
        cpus[i] = qemu_get_cpu(i);
        g_assert(cpus[i]);
        qemu_thread_get_self(cpus[i]->thread);
        cpus[i]->thread_kicked = true;
        /* As if it were in its execution loop */
        cpus[i]->running = true;
        /* The memory map has changed since the CPU was made. */
        process_queued_cpu_work(cpus[i]);
    }
    saved = g_byte_array_new();
    become(cpus[0]);
}

/*
 * Translated blocks count for a while after the last reader has gone, and so
 * parts of cycles go by.  Earlier programs must not influence that.
 */
static void forget_blocks(void)
{
    for (int i = 0; i < ARRAY_SIZE(cpus); i++) {
        cpus[i]->tcg_cflags &= ~CF_PMU;
        if (pmu_tcg_core_of(cpus[i])) {
            cpus[i]->tcg_cflags |= CF_PMU_INSNS;
        }
    }
}

void fuzz_machine_begin(void)
{
    g_byte_array_set_size(saved, 0);
    become(cpus[0]);
    fuzz_target.begin();
    forget_blocks();
}

/*
 * Events
 */

/* Translated code counts as its flags say, even if there is no reader left. */
static bool is_counted(PmuTally tally)
{
    switch (tally) {
    case PMU_TALLY_INSNS:
        return fuzz_cpu->tcg_cflags & CF_PMU_INSNS;
    case PMU_TALLY_COND_TAKEN ... PMU_TALLY_FAR_BRANCHES:
        return fuzz_cpu->tcg_cflags & CF_PMU_BRANCHES;
    case PMU_TALLY_LOADS:
    case PMU_TALLY_STORES:
    case PMU_TALLY_FAILED_STORES:
        return fuzz_cpu->tcg_cflags & CF_PMU_ACCESSES;
    default:
        return true;
    }
}

static int64_t *fuzz_cell(PmuTally tally, unsigned mode)
{
    return &cpu_env(fuzz_cpu)->pmu_cells.left[tally - PMU_TCG_FIRST][mode];
}

static PmuTallies counted_of(PmuTallies events)
{
    PmuTallies counted = 0;

    for (unsigned t = 0; fuzz_cpu->pmu && t < PMU_TALLY__MAX; t++) {
        if ((events >> t & 1) && is_counted(t)) {
            counted |= PMU_TALLY_BIT(t);
        }
    }
    return counted;
}

/* If a cell is used up, the execution loop folds after the instruction. */
static void happen(PmuTallies counted, unsigned mode)
{
    bool used_up = false;

    for (unsigned t = PMU_TCG_FIRST; t < PMU_TALLY__MAX; t++) {
        if (counted >> t & 1) {
            used_up |= --*fuzz_cell(t, mode) <= 0;
        }
    }
    if (used_up) {
        pmu_fold(fuzz_cpu->pmu->pmu);
    }
}

/*
 * Branches
 */

/* Read the log when the mode changes, as QEMU does. */
static void enter_mode(unsigned mode)
{
    const PmuBranchLog *log = &cpu_env(fuzz_cpu)->pmu_cells.log;
    unsigned newest = log->room / sizeof(log->branches[0]);

    if (fuzz_cpu->pmu && newest < PMU_BRANCH_LOG_SIZE
        && pmu_logged_mode(&log->branches[newest]) != mode) {
        pmu_tcg_see_branches(fuzz_cpu);
    }
}

/*
 * With a core, each record has its place in the log of the core.  Branches of
 * steps have no records, so that the core would take them for this one.
 */
static void set_place(PmuLoggedBranch *b, unsigned mode)
{
    const PmuTcgCells *cells = &cpu_env(fuzz_cpu)->pmu_cells;
    PmuTcgCore *core = pmu_tcg_core_of(fuzz_cpu);

    if (core) {
        pmu_tcg_core_make_room(core, mode);
        b->accesses = (uintptr_t)cells->core_next;
        b->branches = (uintptr_t)cells->core_limit[mode];
    }
}

/* Log a branch as translated code does. */
static void log_branch(const PmuBranch *branch, unsigned mode)
{
    PmuBranchLog *log = &cpu_env(fuzz_cpu)->pmu_cells.log;
    int64_t distance = branch->to - branch->from;
    bool direct = pmu_logged_fits(distance);
    bool timed = fuzz_cpu->tcg_cflags & CF_PMU_INSNS;
    PmuLoggedBranch b = {
        .from = direct ? 0xdead : branch->from, .to = branch->to,
        .what = pmu_logged_what(branch->kind, mode, direct ? distance : 0),
    };

    enter_mode(mode);
    set_place(&b, mode);
    b.left = timed ? *fuzz_cell(PMU_TALLY_INSNS, mode) : 0xdead;
    log->room -= sizeof(log->branches[0]);
    log->branches[log->room / sizeof(log->branches[0])] = b;
    if (!log->room) {
        pmu_tcg_see_branches(fuzz_cpu);
    }
}

/* Record a branch as pmu_tcg_far_branch() does. */
static void note_far_branch(const PmuBranch *branch, unsigned mode)
{
    pmu_tcg_see_branches(fuzz_cpu);
    pmu_recorder_note(&fuzz_cpu->pmu->recorder, mode, branch);
}

void fuzz_take_branch(const PmuBranch *branch, unsigned mode)
{
    if (!(fuzz_cpu->tcg_cflags & CF_PMU_RECORD)) {
        return;
    }
    if (PMU_BRANCHES_OF(PMU_BRANCH_FAR) >> branch->kind & 1) {
        note_far_branch(branch, mode);
    } else {
        log_branch(branch, mode);
    }
}

uint64_t fuzz_target_of(FuzzRandom *r, uint64_t from)
{
    return fuzz_below(r, 2) ? fuzz_random(r)
                            : from + sextract32(fuzz_random(r), 0, 24);
}

/*
 * Other events
 */

/* Events without an instruction have no address. */
static void note_place(PmuTallies events, unsigned mode)
{
    cpu_env(fuzz_cpu)->pmu_cells.site_known = false;
    if (fuzz_target.note_insn && events & BIT(PMU_TALLY_INSNS)) {
        fuzz_target.note_insn(events, mode);
    }
}

/* With a core, misses of TLBs are its own. */
static PmuTallies without_core(PmuTallies events)
{
    return pmu_tcg_core_of(fuzz_cpu) ? events & ~PMU_TCG_TLB_TALLIES : events;
}

/* Instructions that are not counted do not begin a cycle either. */
static void let_happen(PmuTallies events, const uint64_t *arg)
{
    const PmuTallies insns = BIT(PMU_TALLY_INSNS);
    unsigned mode = arg[0] % fuzz_target.nr_modes;

    events = without_core(events);
    for (uint64_t n = arg[1] & MAX_EVENTS; n > 0; n--) {
        PmuTallies counted = counted_of(events);

        enter_mode(mode);
        fuzz_target.happen((events & ~insns) | (counted & insns), mode);
        note_place(events, mode);
        happen(counted, mode);
    }
    note_place(0, mode);
    fuzz_target.check_interrupts();
}

void fuzz_make_insns(FuzzRandom *r, uint64_t *arg)
{
    arg[0] = fuzz_below(r, fuzz_target.nr_modes);
    arg[1] = 1 + fuzz_below(r, 1 << fuzz_below(r, 8));
}

void fuzz_run_insns(const uint64_t *arg)
{
    let_happen(BIT(PMU_TALLY_INSNS), arg);
}

void fuzz_make_retire(FuzzRandom *r, uint64_t *arg)
{
    fuzz_make_insns(r, arg);
    arg[2] = fuzz_below(r, fuzz_target.nr_retired);
}

void fuzz_run_retire(const uint64_t *arg)
{
    PmuTally kind = fuzz_target.retired[arg[2] % fuzz_target.nr_retired];

    let_happen(BIT(PMU_TALLY_INSNS) | BIT(kind), arg);
}

void fuzz_make_other(FuzzRandom *r, uint64_t *arg)
{
    fuzz_make_insns(r, arg);
    arg[2] = fuzz_below(r, fuzz_target.nr_other);
}

void fuzz_run_other(const uint64_t *arg)
{
    let_happen(BIT(fuzz_target.other[arg[2] % fuzz_target.nr_other]), arg);
}

/*
 * A modelled core
 */

/* The kinds of branches, and what an instruction of each kind counts */
static const PmuTally tally_of_branch[] = {
    [PMU_CORE_NOT_TAKEN] = PMU_TALLY_COND_NOT_TAKEN,
    [PMU_CORE_TAKEN] = PMU_TALLY_COND_TAKEN,
    [PMU_CORE_INDIRECT] = PMU_TALLY_INDIRECT_JUMPS,
    [PMU_CORE_RETURN] = PMU_TALLY_RETURNS,
    [PMU_CORE_CALL] = PMU_TALLY_CALLS,
};

/* An instruction's entries: a fetch, an access, and a branch */
#define MOST_ENTRIES 3

/*
 * Enter a block of one instruction as the execution loop does.
 *
 * Returns: whether it may reach a deadline, so that a fold has to follow.
 */
static bool enter_block(PmuTcgCore *core, unsigned mode)
{
    const PmuTcgCells *cells = &cpu_env(fuzz_cpu)->pmu_cells;

    if (cells->core_next + MOST_ENTRIES <= cells->core_limit[mode]) {
        return false;
    }
    pmu_tcg_core_make_room(core, mode);
    return pmu_tcg_core_room(core) < MOST_ENTRIES;
}

/* Write to the log what translated code writes. */
static void log_insn(const FuzzInsn *insn, unsigned mode)
{
    PmuTcgCells *cells = &cpu_env(fuzz_cpu)->pmu_cells;

    *cells->core_next++ = (PmuCoreEntry) {
        .address = insn->pc,
        .what = pmu_core_what(PMU_CORE_FETCH, FUZZ_INSN_BYTES, 1),
    };
    if (insn->access) {
        *cells->core_next++ = (PmuCoreEntry) {
            .address = insn->data,
            .what = pmu_core_what(insn->access, FUZZ_DATA_BYTES, 1),
        };
    }
    if (insn->branch) {
        PmuCoreEntry *limit = --cells->core_limit[mode];

        limit[PMU_TCG_CORE_BRANCHES] = (PmuCoreEntry) {
            .address = insn->to,
            .what = pmu_core_what(insn->branch, 0, 0),
            .from = insn->pc,
        };
    }
}

static PmuTallies events_of(const FuzzInsn *insn)
{
    bool loads = insn->access == PMU_CORE_LOAD
                 || insn->access == PMU_CORE_MODIFY;
    bool stores = insn->access && insn->access != PMU_CORE_LOAD;

    return BIT(PMU_TALLY_INSNS) | (loads ? BIT(PMU_TALLY_LOADS) : 0)
           | (stores ? BIT(PMU_TALLY_STORES) : 0)
           | (insn->branch ? BIT(tally_of_branch[insn->branch]) : 0);
}

static void step(PmuTcgCore *core, const FuzzInsn *insn, unsigned mode)
{
    PmuTallies events = events_of(insn);
    bool alone;

    enter_mode(mode);
    alone = enter_block(core, mode);
    fuzz_target.step(insn, events, mode);
    log_insn(insn, mode);
    if (fuzz_target.note_step) {
        fuzz_target.note_step(insn, mode);
    }
    happen(counted_of(events), mode);
    if (alone) {
        pmu_fold(fuzz_cpu->pmu->pmu);
    }
    note_place(0, mode);
    fuzz_target.check_interrupts();
}

/* Few modes, as a core with private state has a part for each kind. */
void fuzz_make_step(FuzzRandom *r, uint64_t *arg)
{
    arg[0] = fuzz_chance(r, 4) ? fuzz_below(r, fuzz_target.nr_modes)
                               : fuzz_below(r, 2);
    arg[0] |= fuzz_below(r, 4) << 8 | fuzz_below(r, 6) << 16;
    arg[1] = fuzz_random(r);
    arg[2] = fuzz_random(r);
}

/*
 * Some lines in some pages; an access may reach into the next of either.  How
 * an instruction accesses memory follows from its address, as in a program:
 * the address of the last access belongs to an instruction's address.
 */
void fuzz_run_step(const uint64_t *arg)
{
    PmuTcgCore *core = pmu_tcg_core_of(fuzz_cpu);
    unsigned branch = (arg[0] >> 16 & 0xff) % 6;
    PmuCoreKind access = (arg[0] >> 8 & 0xff) % 4;
    const FuzzInsn insn = {
        .pc = 0x400000 + arg[1] % 3 * 4096 + (arg[1] >> 8) % 512 / 4 * 4
              + access,
        .access = access,
        .data = 0x7f0000 + arg[2] % 5 * 4096 + (arg[2] >> 8) % 1024,
        .branch = branch ? PMU_CORE_NOT_TAKEN + branch - 1 : PMU_CORE_FETCH,
        .to = 0x400000 + (arg[1] >> 32) % 3 * 64,
    };

    if (core) {
        step(core, &insn, (arg[0] & 0xff) % fuzz_target.nr_modes);
    }
}

void fuzz_align_cycles(void)
{
    fuzz_target.begin_cycle();
    for (unsigned m = 0; fuzz_cpu->pmu && m < fuzz_target.nr_modes; m++) {
        uint64_t insns = pmu_tcg_ops.tally(fuzz_cpu->pmu->tcg,
                                           PMU_TALLY_INSNS, m);

        *fuzz_cell(PMU_TALLY_INSNS, m) -= insns & 1;
    }
}

/* While an instruction reads a register, it is not yet counted. */

void fuzz_begin_read(void)
{
    pmu_tcg_after_insn(fuzz_cpu);
}

void fuzz_end_read(void)
{
    pmu_tcg_before_insn(fuzz_cpu);
}

/*
 * State
 */

/* Padding: in a stream, data follows, in which QEMU looks for subsections. */
static const uint8_t what_follows[512];

static void save(void)
{
    QIOChannelBuffer *buffer = qio_channel_buffer_new(1 << 15);
    QEMUFile *f = qemu_file_new_output(QIO_CHANNEL(buffer));

    if (fuzz_target.before_save) {
        fuzz_target.before_save();
    }
    g_assert(save_vmstate(f, fuzz_target.vmsd, fuzz_cpu) == 0);
    g_assert(qemu_fflush(f) == 0);
    changed = false;
    g_byte_array_set_size(saved, 0);
    g_byte_array_append(saved, buffer->data, buffer->usage);
    g_byte_array_append(saved, what_follows, sizeof(what_follows));
    qemu_fclose(f);
    object_unref(OBJECT(buffer));
}

/* Load over the CPU's state that it has from earlier events and programs. */
static bool load(CPUState *cpu)
{
    QIOChannelBuffer *buffer = qio_channel_buffer_new(saved->len);
    QEMUFile *f;
    int ret;

    memcpy(buffer->data, saved->data, saved->len);
    buffer->usage = saved->len;
    f = qemu_file_new_input(QIO_CHANNEL(buffer));
    become(cpu);
    if (fuzz_target.before_load) {
        fuzz_target.before_load();
    }
    ret = load_vmstate(f, fuzz_target.vmsd, cpu, fuzz_target.vmsd->version_id)
          ?: qemu_file_get_error(f);
    qemu_fclose(f);
    object_unref(OBJECT(buffer));
    return ret == 0;
}

static CPUState *other_cpu(void)
{
    return cpus[fuzz_cpu == cpus[0]];
}

static void load_own(CPUState *cpu)
{
    if (!load(cpu)) {
        fprintf(stderr, "a CPU does not load what its like has saved\n");
        abort();
    }
    fuzz_target.moved();
    fuzz_target.check();
}

static void run_move(const uint64_t *arg)
{
    save();
    fuzz_target.remember();
    load_own(other_cpu());
}

static void run_savevm(const uint64_t *arg)
{
    save();
    fuzz_target.remember();
}

static void make_loadvm(FuzzRandom *r, uint64_t *arg)
{
    arg[0] = fuzz_below(r, 2);
}

static void run_loadvm(const uint64_t *arg)
{
    if (saved->len && !changed) {
        fuzz_target.recall();
        load_own(arg[0] & 1 ? other_cpu() : fuzz_cpu);
    }
}

static void run_check(const uint64_t *arg)
{
    fuzz_target.check();
}

const FuzzVerb fuzz_verbs[] = {
    { "move", 0, 2, NULL, run_move },
    { "savevm", 0, 1, NULL, run_savevm },
    { "loadvm", 1, 1, make_loadvm, run_loadvm },
    { "check", 0, 6, NULL, run_check },
    { }
};

/*
 * Changed streams
 */

uint64_t fuzz_streams_loaded, fuzz_streams_refused, fuzz_pokes_missed;

typedef struct Section {
    uint8_t *at;
    size_t size;
} Section;

/* Find a section by its name, with which it begins. */
static Section find_section(const char *name)
{
    uint8_t *at = memmem(saved->data, saved->len, name, strlen(name));

    return (Section) { at, at ? saved->data + saved->len - at : 0 };
}

/* Find the sections that this state has; returns how many. */
static unsigned find_sections(Section *found)
{
    unsigned n = 0;

    if (!saved->len) {
        return 0;
    }
    for (const char *const *name = fuzz_target.sections; *name; name++) {
        found[n] = find_section(*name);
        n += found[n].at != NULL;
    }
    if (fuzz_target.fixed_size) {
        found[n++] = (Section) { saved->data + fuzz_target.fixed_section,
                                 fuzz_target.fixed_size };
    }
    return n;
}

/* Mostly change bytes near a section's beginning, where registers are. */
static void make_poke(FuzzRandom *r, uint64_t *arg)
{
    arg[0] = fuzz_below(r, 8);
    arg[1] = fuzz_chance(r, 4) ? fuzz_random(r) >> 32 : fuzz_below(r, 400);
    arg[2] = fuzz_chance(r, 2) ? fuzz_number(r) & 0xff : 1 << fuzz_below(r, 8);
}

static void run_poke(const uint64_t *arg)
{
    Section found[MAX_SECTIONS];
    unsigned nr = find_sections(found);

    if (nr) {
        const Section *section = &found[arg[0] % nr];

        section->at[arg[1] % section->size] ^= arg[2];
        changed = true;
    } else {
        fuzz_pokes_missed++;
    }
}

static void run_load(const uint64_t *arg)
{
    if (!saved->len) {
        return;
    }
    fuzz_expecting = false;
    if (load(other_cpu())) {
        fuzz_streams_loaded++;
        fuzz_target.moved();
        fuzz_target.check_legal();
    } else {
        fuzz_streams_refused++;
        fuzz_target.begin();
    }
}

const FuzzVerb fuzz_stream_verbs[] = {
    { "save", 0, 0, NULL, run_savevm },
    { "poke", 3, 0, make_poke, run_poke },
    { "load", 0, 0, NULL, run_load },
    { }
};
