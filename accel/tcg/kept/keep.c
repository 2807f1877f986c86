/*
 * Translated blocks that are kept: the blocks of this process for later ones
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "cpu.h"
#include "exec/tb-flush.h"
#include "qapi/error.h"
#include "qapi/qapi-commands-tcg-blocks.h"
#include "system/runstate.h"
#include "hw/pmu/compat.h"
#include "internal.h"

/* It pays to write a file for so many new blocks, and that part of the old. */
#define MANY_NEW 500
#define PART_NEW 64

/**
 * struct Draft - a file that is being made
 * @begin: where the new blocks begin, from the place of all
 * @end: where those end for which there is room
 * @image: a copy of them, in whole parts
 * @blocks: the blocks (of struct KeptBlock)
 * @code: their guest code
 * @nr_new: how many new blocks can be in the file
 * @last: the new block before the one that is seen next, or NULL
 */
typedef struct Draft {
    uint32_t begin;
    uint32_t end;
    uint8_t *image;
    GArray *blocks;
    GByteArray *code;
    unsigned nr_new;
    TranslationBlock *last;
} Draft;

static gboolean reset_jumps(gpointer key, gpointer value, gpointer data)
{
    tb_kept_reset_jumps(value);
    return false;
}

/* Remove the addresses and lists of this process from a block in the copy. */
static void make_nobodys(TranslationBlock *tb)
{
    tb->tc.ptr = (void *)((uint8_t *)tb->tc.ptr - tb_kept_place());
    tb_set_page_addr0(tb, tb_page_addr0(tb) & ~TARGET_PAGE_MASK);
    memset(tb->page_next, 0, sizeof(tb->page_next));
    memset(&tb->jmp_lock, 0, sizeof(tb->jmp_lock));
    memset(tb->jmp_target_addr, 0, sizeof(tb->jmp_target_addr));
    memset(&tb->jmp_list_head, 0, sizeof(tb->jmp_list_head));
    memset(tb->jmp_list_next, 0, sizeof(tb->jmp_list_next));
    memset(tb->jmp_dest, 0, sizeof(tb->jmp_dest));
}

/* They are as they were read, also if they have been taken. */
static void add_old(Draft *draft)
{
    const KeptBlocks *old = &tb_kept.file;

    g_byte_array_append(draft->code, old->code, old->code_size);
    g_array_append_vals(draft->blocks, old->blocks, old->nr_blocks);
}

static bool can_be_kept(const TranslationBlock *tb)
{
    return tb_page_addr0(tb) != -1 && tb_page_addr1(tb) == -1
           && !(tb->cflags & TB_KEPT_NEVER);
}

/* Where a block's guest code is, or NULL if that RAM is gone. */
static const uint8_t *code_of(const TranslationBlock *tb)
{
    ram_addr_t at = tb_page_addr0(tb);
    RAMBlock *ram;

    RCU_READ_LOCK_GUARD();
    RAMBLOCK_FOREACH(ram) {
        if (at - ram->offset < ram->used_length) {
            return ram->host + (at - ram->offset);
        }
    }
    return NULL;
}

/* A block that is valid was translated from the code that is in RAM now. */
static void add_new(Draft *draft, const TranslationBlock *tb,
                    const uint8_t *end)
{
    vaddr pc = tb->cflags & CF_PCREL ? tb_page_addr0(tb) : tb->pc;
    const uint8_t *code = can_be_kept(tb) ? code_of(tb) : NULL;
    TranslationBlock *copy;
    KeptBlock b = {
        .tb = (uint8_t *)tb - tb_kept_place(),
        .size = end - (uint8_t *)tb,
        .code = draft->code->len,
    };

    if (!code || b.tb + b.size > draft->end) {
        return;
    }
    b.hash = tb_kept_hash(pc, tb->cs_base, tb->flags, tb->cflags, code,
                          pow2floor(MIN(tb->size, TB_KEPT_HASHED)));
    g_byte_array_append(draft->code, code, tb->size);
    copy = (TranslationBlock *)(draft->image + b.tb - draft->begin);
    make_nobodys(copy);
    g_array_append_val(draft->blocks, b);
}

static bool is_new(const Draft *draft, const TranslationBlock *tb)
{
    return (uint8_t *)tb >= tb_kept_place() + draft->begin;
}

/* Blocks are seen in the order in which they are in the buffer. */
static gboolean see_block(gpointer key, gpointer value, gpointer data)
{
    Draft *draft = data;
    TranslationBlock *tb = value;

    if (!is_new(draft, tb)) {
        return false;
    }
    if (draft->last) {
        add_new(draft, draft->last, (uint8_t *)tb);
    }
    draft->last = tb;
    return false;
}

static gboolean count_block(gpointer key, gpointer value, gpointer data)
{
    Draft *draft = data;

    draft->nr_new += is_new(draft, value) && can_be_kept(value);
    return false;
}

/*
 * The first blocks are first in their lists.  Those that would be too far to be
 * found are removed.  The caller frees the lists.
 */
static void make_lists(KeptBlocks *file)
{
    uint32_t nr_lists = pow2ceil(MAX(file->nr_blocks, 1));
    g_autofree uint32_t *last = g_new0(uint32_t, nr_lists);
    g_autofree uint8_t *length = g_new0(uint8_t, nr_lists);
    uint32_t n = 0;

    file->nr_lists = nr_lists;
    file->lists = g_new0(uint32_t, nr_lists);
    for (uint32_t i = 0; i < file->nr_blocks; i++) {
        KeptBlock *b = &file->blocks[n];
        uint32_t list = file->blocks[i].hash & (nr_lists - 1);

        if (length[list] == TB_KEPT_LONGEST) {
            continue;
        }
        length[list]++;
        *b = file->blocks[i];
        b->next = 0;
        n++;
        *(last[list] ? &file->blocks[last[list] - 1].next
                     : &file->lists[list]) = n;
        last[list] = n;
    }
    file->nr_blocks = n;
}

static bool write_file(Draft *draft, Error **errp)
{
    uint32_t size = draft->end - draft->begin;
    KeptBlocks new = { .size = ROUND_UP(draft->end, TB_KEPT_PART) };
    bool is_written;

    tcg_tb_foreach(reset_jumps, NULL);
    memcpy(draft->image, tb_kept_place() + draft->begin, size);
    add_old(draft);
    tcg_tb_foreach(see_block, draft);
    add_new(draft, draft->last, tb_kept.ctx->code_gen_ptr);
    new.blocks = (KeptBlock *)draft->blocks->data;
    new.nr_blocks = draft->blocks->len;
    new.code = draft->code->data;
    new.code_size = draft->code->len;
    make_lists(&new);
    is_written = new.nr_blocks >= tb_kept.file.nr_blocks + MANY_NEW
                 && tb_kept_write(tb_kept.name, tb_kept.identity,
                                  &tb_kept.file, draft->image, &new, errp);
    g_free(new.lists);
    return is_written;
}

/* The jumps from block to block are gone then, and come back after a flush. */
static bool make_file(Draft *draft, Error **errp)
{
    uint32_t size = draft->end - draft->begin;
    bool is_written;

    draft->image = g_try_malloc0(ROUND_UP(size, TB_KEPT_PART));
    if (!draft->image) {
        error_setg(errp, "There is no memory for %u bytes of blocks", size);
        return false;
    }
    draft->blocks = g_array_new(false, false, sizeof(KeptBlock));
    draft->code = g_byte_array_new();
    is_written = write_file(draft, errp);
    g_byte_array_unref(draft->code);
    g_array_unref(draft->blocks);
    g_free(draft->image);
    queue_tb_flush(first_cpu);
    return is_written;
}

/*
 * If there is no room for all, the first blocks are kept, of the guest that goes
 * on; but not after others, which may be of programs that have changed since.
 */
static bool keep(Error **errp)
{
    Draft draft = { .begin = tb_kept.file.size };
    size_t size = tb_kept.ctx->code_gen_ptr - (void *)tb_kept_place()
                  - draft.begin;

    tcg_tb_foreach(count_block, &draft);
    if (draft.nr_new < MANY_NEW || size < draft.begin / PART_NEW) {
        return false;
    }
    if (draft.begin && draft.begin + size > tb_kept_most()) {
        /* The next process begins a file. */
        unlink(tb_kept.name);
        return false;
    }
    draft.end = draft.begin + MIN(size, tb_kept_most());
    return make_file(&draft, errp);
}

static bool can_keep(void)
{
    return tb_kept.has_begun && !tb_kept.is_over
           && !tb_kept_is_instrumented(first_cpu);
}

/* A vCPU's thread may flush all blocks, also while the machine is stopped. */
static bool keep_if_possible(Error **errp)
{
    bool has_entered = tcg_enter_context();
    bool is_written = can_keep() && keep(errp);

    if (has_entered) {
        tcg_leave_context();
    }
    return is_written;
}

TcgKeptBlocks *qmp_tcg_keep_blocks(Error **errp)
{
    ERRP_GUARD();
    bool is_running = runstate_is_running();
    TcgKeptBlocks *result;

    if (!tb_kept.name) {
        error_setg(errp, "There is no file for translated blocks");
        error_append_hint(errp, "\"-accel tcg,blocks=FILE\" gives one.\n");
        return NULL;
    }
    /* No vCPU is in a block now, and no device changes RAM. */
    if (is_running) {
        vm_stop(RUN_STATE_PAUSED);
    }
    result = g_new(TcgKeptBlocks, 1);
    *result = (TcgKeptBlocks) {
        .taken = tb_kept.nr_taken,
        .translated = tb_kept.nr_translated,
        .written = keep_if_possible(errp),
    };
    if (is_running) {
        vm_start();
    }
    if (*errp) {
        g_clear_pointer(&result, qapi_free_TcgKeptBlocks);
    }
    return result;
}
