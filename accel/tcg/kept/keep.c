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
#include "system/cpus.h"
#include "system/runstate.h"
#include "accel/tcg/internal-common.h"
#include "hw/pmu/compat.h"
#include "internal.h"

/* It pays to write a file for so many new blocks. */
#define MANY_NEW 500

/**
 * struct Draft - a file that is being made
 * @begin: where the new blocks begin, from the place of all
 * @image: a copy of them
 * @blocks: the blocks (of struct KeptBlock)
 * @code: their guest code
 * @nr_new: how many new blocks can be in the file
 * @last: the new block before the one that is seen next, or NULL
 */
typedef struct Draft {
    uint32_t begin;
    uint8_t *image;
    GArray *blocks;
    GByteArray *code;
    unsigned nr_new;
    TranslationBlock *last;
} Draft;

static gboolean reset_jumps(gpointer key, gpointer value, gpointer data)
{
    TranslationBlock *tb = value;

    for (int n = 0; n < 2; n++) {
        if (tb->jmp_reset_offset[n] != TB_JMP_OFFSET_INVALID) {
            tb_reset_jump(tb, n);
        }
    }
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

/* A block that is valid was translated from the code that is in RAM now. */
static void add_new(Draft *draft, const TranslationBlock *tb,
                    const uint8_t *end)
{
    vaddr pc = tb->cflags & CF_PCREL ? tb_page_addr0(tb) : tb->pc;
    TranslationBlock *copy;
    const uint8_t *code;
    KeptBlock b = {
        .tb = (uint8_t *)tb - tb_kept_place(),
        .size = end - (uint8_t *)tb,
        .code = draft->code->len,
    };

    if (!can_be_kept(tb)) {
        return;
    }
    code = qemu_map_ram_ptr(NULL, tb_page_addr0(tb));
    b.hash = tb_kept_hash(pc, tb->cs_base, tb->flags, tb->cflags, code,
                          tb->size < TB_KEPT_HASHED ? 1 : TB_KEPT_HASHED);
    g_byte_array_append(draft->code, code, tb->size);
    copy = (TranslationBlock *)(draft->image + b.tb - draft->begin);
    make_nobodys(copy);
    b.checksum = tb_kept_checksum(copy, b.size, code);
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

/* The caller frees the lists. */
static void make_lists(KeptBlocks *file)
{
    file->nr_lists = pow2ceil(MAX(file->nr_blocks, 1));
    file->lists = g_new0(uint32_t, file->nr_lists);
    for (uint32_t i = 0; i < file->nr_blocks; i++) {
        KeptBlock *b = &file->blocks[i];
        uint32_t *list = &file->lists[b->hash & (file->nr_lists - 1)];

        b->next = *list;
        *list = i + 1;
    }
}

static bool write_file(Draft *draft, size_t size, Error **errp)
{
    KeptBlocks new = { .size = draft->begin + size };
    bool is_written;

    tcg_tb_foreach(reset_jumps, NULL);
    memcpy(draft->image, tb_kept_place() + draft->begin, size);
    add_old(draft);
    tcg_tb_foreach(see_block, draft);
    add_new(draft, draft->last, tb_kept_place() + new.size);
    new.blocks = (KeptBlock *)draft->blocks->data;
    new.nr_blocks = draft->blocks->len;
    new.code = draft->code->data;
    new.code_size = draft->code->len;
    make_lists(&new);
    is_written = tb_kept_write(tb_kept.name, tb_kept.identity, &tb_kept.file,
                               draft->image, &new, errp);
    g_free(new.lists);
    return is_written;
}

/* The jumps from block to block are gone then, and come back after a flush. */
static bool make_file(Draft *draft, size_t size, Error **errp)
{
    bool is_written;

    draft->image = g_try_malloc(size);
    if (!draft->image) {
        error_setg(errp, "There is no memory for %zu bytes of blocks", size);
        return false;
    }
    draft->blocks = g_array_new(false, false, sizeof(KeptBlock));
    draft->code = g_byte_array_new();
    is_written = write_file(draft, size, errp);
    g_byte_array_unref(draft->code);
    g_array_unref(draft->blocks);
    g_free(draft->image);
    queue_tb_flush(first_cpu);
    return is_written;
}

static bool keep(Error **errp)
{
    Draft draft = { .begin = tb_kept_end(&tb_kept.file) };
    size_t size = tb_kept.ctx->code_gen_ptr - (void *)tb_kept_place()
                  - draft.begin;

    tcg_tb_foreach(count_block, &draft);
    if (draft.nr_new < MANY_NEW) {
        return false;
    }
    if (draft.begin + size <= TB_KEPT_MOST) {
        return make_file(&draft, size, errp);
    }
    if (size <= TB_KEPT_MOST / 2) {
        /* The next process begins a file, which has room for these. */
        unlink(tb_kept.name);
    }
    return false;
}

static TcgKeptBlocks *keep_while_paused(Error **errp)
{
    TcgKeptBlocks *result = g_new(TcgKeptBlocks, 1);

    *result = (TcgKeptBlocks) {
        .taken = tb_kept.nr_taken,
        .translated = tcg_nb_tbs() - tb_kept.nr_taken,
    };
    if (tb_kept.has_begun && !tb_kept.is_over
        && result->translated >= MANY_NEW) {
        result->written = keep(errp);
    }
    return result;
}

/* While blocks are looked at, no vCPU is in one, or changes RAM. */
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
    if (is_running) {
        pause_all_vcpus();
    }
    result = keep_while_paused(errp);
    if (is_running) {
        resume_all_vcpus();
    }
    if (*errp) {
        g_clear_pointer(&result, qapi_free_TcgKeptBlocks);
    }
    return result;
}
