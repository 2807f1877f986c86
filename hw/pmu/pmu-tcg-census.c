/*
 * Performance monitoring unit: how often each instruction was executed
 *
 * Each block has two cells: how often it was begun, and how often its last
 * instruction was left to be entered anew (x86's REP).  A vCPU has a pointer to
 * its cells for each mode, which leads to unread cells while no counter counts
 * in that mode.  What did not retire is rare, and is kept with the block; where
 * the code that finds out does not know the block, it is the last that began.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include <zlib.h>
#include "qemu/lockable.h"
#include "qapi/error.h"
#include "cpu.h"
#include "exec/translation-block.h"
#include "system/runstate.h"
#include "system/tcg.h"
#include "tcg/tcg-op-common.h"
#include "tcg/tcg-temp-internal.h"
#include "hw/pmu/pmu-tcg-census.h"
#include "hw/pmu/compat.h"
#include "pmu-tcg-translate-internal.h"

/* How many blocks there may be; memory is only used for those there are. */
#define MAX_BLOCKS (1u << 21)
#define NONE UINT32_MAX

enum { BEGUN, REPEATED, CELLS };

typedef int64_t BlockCells[CELLS];

/**
 * struct CensusBlock - a block, once it is translated
 * @pc: the address of its first instruction
 * @nr_insns: how many instructions it has; 0 if it was not finished
 * @offsets: of each instruction from @pc, and of the block's end
 * @page: the CRC-32 of the page with @pc, when the block was translated
 * @unfinished: how often it was left before each instruction, or NULL
 */
typedef struct CensusBlock {
    uint64_t pc;
    unsigned nr_insns;
    uint16_t *offsets;
    uint32_t page;
    int64_t *unfinished;
} CensusBlock;

/**
 * struct CensusCpu - what a vCPU counts
 * @cells: its cells, by the number of the block
 * @now: for each mode, the cells in which it counts now
 * @last: the block that it has begun last
 */
typedef struct CensusCpu {
    BlockCells *cells;
    BlockCells *now[PMU_MAX_MODES];
    uint32_t last;
} CensusCpu;

/**
 * struct Census - the census of a machine
 * @lock: protects all but the cells
 * @blocks: the blocks, by their number
 * @nr_blocks: how many numbers have been given
 * @is_full: there was no number for another block
 * @by_tb: the number of a block, by its struct TranslationBlock
 * @nr_cpus: how many vCPUs there are
 * @cpus: the vCPUs
 * @unread: cells for what does not count
 */
static struct Census {
    QemuMutex lock;
    CensusBlock *blocks;
    uint32_t nr_blocks;
    bool is_full;
    GHashTable *by_tb;
    unsigned nr_cpus;
    CensusCpu *cpus;
    BlockCells *unread;
} census;

bool pmu_census_on;

/**
 * struct Draft - the block that is being translated in this thread
 * @number: its number, or NONE
 * @offsets: of its instructions
 */
static __thread struct Draft {
    uint32_t number;
    uint16_t offsets[TCG_MAX_INSNS + 1];
} draft;

/*
 * Translation
 */

static uint32_t new_number(void)
{
    QEMU_LOCK_GUARD(&census.lock);

    if (census.nr_blocks == MAX_BLOCKS) {
        census.is_full = true;
        return NONE;
    }
    return census.nr_blocks++;
}

void pmu_census_insn_start(const DisasContextBase *db)
{
    if (db->num_insns == 1) {
        draft.number = tb_cflags(db->tb) & CF_PMU_INSNS ? new_number() : NONE;
    }
    draft.offsets[db->num_insns - 1] = db->pc_next - db->pc_first;
}

/* Returns the address of the vCPU that executes this. */
static TCGv_ptr gen_cpu(void)
{
    TCGv_i32 index = tcg_temp_ebb_new_i32();
    TCGv_ptr cpu = tcg_temp_ebb_new_ptr();

    tcg_gen_ld_i32(index, tcg_env, PMU_CPU_OFFSET(cpu_index));
    tcg_gen_muli_i32(index, index, sizeof(CensusCpu));
    tcg_gen_ext_i32_ptr(cpu, index);
    tcg_gen_add_ptr(cpu, cpu, tcg_constant_ptr(census.cpus));
    return cpu;
}

/* Add to a cell of the block. */
static void gen_add(const DisasContextBase *db, TCGv_ptr cpu, unsigned cell,
                    int by)
{
    unsigned mode = pmu_block_mode((DisasContextBase *)db);
    tcg_target_long offset = draft.number * sizeof(BlockCells)
                             + cell * sizeof(int64_t);
    TCGv_ptr cells = tcg_temp_ebb_new_ptr();
    TCGv_i64 value = tcg_temp_ebb_new_i64();

    tcg_gen_ld_ptr(cells, cpu, offsetof(CensusCpu, now[mode]));
    tcg_gen_ld_i64(value, cells, offset);
    tcg_gen_addi_i64(value, value, by);
    tcg_gen_st_i64(value, cells, offset);
}

/* Processes have different code at one address: this says whose it is. */
static uint32_t page_checksum(const DisasContextBase *db)
{
    const uint8_t *at = db->host_addr[0];

    return at ? crc32(0, at - (db->pc_first & ~TARGET_PAGE_MASK),
                      TARGET_PAGE_SIZE) : 0;
}

static void describe_block(CensusBlock *b, const DisasContextBase *db)
{
    unsigned n = db->num_insns;

    draft.offsets[n] = db->pc_next - db->pc_first;
    b->pc = db->pc_first;
    b->nr_insns = n;
    b->offsets = g_memdup2(draft.offsets, (n + 1) * sizeof(b->offsets[0]));
    b->page = page_checksum(db);
}

void pmu_census_gen(const DisasContextBase *db)
{
    TCGv_ptr cpu;

    if (draft.number == NONE) {
        return;
    }
    cpu = gen_cpu();
    gen_add(db, cpu, BEGUN, 1);
    tcg_gen_st_i32(tcg_constant_i32(draft.number), cpu,
                   offsetof(CensusCpu, last));
    QEMU_LOCK_GUARD(&census.lock);
    describe_block(&census.blocks[draft.number], db);
    g_hash_table_insert(census.by_tb, db->tb, GUINT_TO_POINTER(draft.number));
}

void pmu_census_gen_repeat(const DisasContextBase *db)
{
    if (draft.number != NONE) {
        gen_add(db, gen_cpu(), REPEATED, 1);
    }
}

/*
 * Execution
 */

static bool counts(CPUState *cpu, unsigned mode)
{
    return census.cpus[cpu->cpu_index].now[mode] != census.unread;
}

/* A block was left so many times before so many of its instructions. */
static void leave(CensusBlock *b, int insns, int times)
{
    if (!b->unfinished) {
        b->unfinished = g_new0(int64_t, b->nr_insns);
    }
    b->unfinished[b->nr_insns - insns] += times;
}

void pmu_census_give_back(CPUState *cpu, const TranslationBlock *tb,
                          unsigned mode, int insns)
{
    gpointer number;

    if (!counts(cpu, mode)) {
        return;
    }
    QEMU_LOCK_GUARD(&census.lock);
    if (g_hash_table_lookup_extended(census.by_tb, tb, NULL, &number)) {
        leave(&census.blocks[GPOINTER_TO_UINT(number)], insns, 1);
    }
}

void pmu_census_take_back(CPUState *cpu, unsigned mode, int times)
{
    CensusBlock *b = &census.blocks[census.cpus[cpu->cpu_index].last];

    if (!counts(cpu, mode)) {
        return;
    }
    QEMU_LOCK_GUARD(&census.lock);
    /* Once the census is full, blocks do not say that they begin. */
    if (b->nr_insns) {
        leave(b, 1, times);
    }
}

void pmu_census_plan(CPUState *cpu, const PmuShare *share)
{
    PmuModes modes = pmu_share_guest_modes(share, PMU_EVENT_INSNS);
    CensusCpu *c = &census.cpus[cpu->cpu_index];

    for (unsigned m = 0; m < PMU_MAX_MODES; m++) {
        c->now[m] = modes >> m & 1 ? c->cells : census.unread;
    }
}

/*
 * The monitor
 */

static void start_census(void)
{
    qemu_mutex_init(&census.lock);
    census.blocks = g_new0(CensusBlock, MAX_BLOCKS);
    census.by_tb = g_hash_table_new(NULL, NULL);
    /* CPUs can be plugged later. */
    census.nr_cpus = current_machine->smp.max_cpus;
    census.cpus = g_new0(CensusCpu, census.nr_cpus);
    census.unread = g_new0(BlockCells, MAX_BLOCKS);
    for (unsigned i = 0; i < census.nr_cpus; i++) {
        census.cpus[i].cells = g_new0(BlockCells, MAX_BLOCKS);
        for (unsigned m = 0; m < PMU_MAX_MODES; m++) {
            census.cpus[i].now[m] = census.unread;
        }
    }
    pmu_census_on = true;
}

void pmu_census_start(Error **errp)
{
    if (!tcg_enabled()) {
        error_setg(errp, "A census needs code that TCG translates");
        error_append_hint(errp, "Use -accel tcg.\n");
    } else if (pmu_census_on) {
        error_setg(errp, "The census has been started already");
    } else if (!runstate_check(RUN_STATE_INMIGRATE)
               && !runstate_check(RUN_STATE_PRELAUNCH)) {
        error_setg(errp, "A census is to be started before the machine runs");
        error_append_hint(errp, "Start QEMU with -S or -incoming.\n");
    } else {
        start_census();
    }
}

static int64_t sum_cells(uint32_t number, unsigned cell)
{
    int64_t sum = 0;

    for (unsigned i = 0; i < census.nr_cpus; i++) {
        sum += census.cpus[i].cells[number][cell];
    }
    return sum;
}

/* One line: where, of which page, and the length and count of each insn */
static void print_block(GString *text, uint32_t number)
{
    const CensusBlock *b = &census.blocks[number];
    int64_t count = sum_cells(number, BEGUN);

    if (!b->nr_insns || !count) {
        return;
    }
    g_string_append_printf(text, "%" PRIx64 " %08" PRIx32, b->pc, b->page);
    for (unsigned i = 0; i < b->nr_insns; i++) {
        count -= b->unfinished ? b->unfinished[i] : 0;
        if (i == b->nr_insns - 1) {
            count -= sum_cells(number, REPEATED);
        }
        g_string_append_printf(text, " %u:%" PRId64,
                               b->offsets[i + 1] - b->offsets[i], count);
    }
    g_string_append_c(text, '\n');
}

void pmu_census_save(const char *file, Error **errp)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GError) err = NULL;

    if (!pmu_census_on) {
        error_setg(errp, "There is no census");
        return;
    }
    QEMU_LOCK_GUARD(&census.lock);
    if (census.is_full) {
        error_setg(errp, "The guest has executed more code than a census can"
                         " count (%u blocks)", MAX_BLOCKS);
        return;
    }
    for (uint32_t number = 0; number < census.nr_blocks; number++) {
        print_block(text, number);
    }
    if (!g_file_set_contents(file, text->str, text->len, &err)) {
        error_setg(errp, "%s", err->message);
    }
}
