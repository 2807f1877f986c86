/*
 * Translated blocks that are kept for later processes
 *
 * The blocks of a file are for the beginning of the code buffer, and new ones are
 * after them, so that all can be written as they are.  One that is not taken is in
 * no list, tree or hash table of QEMU's.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "cpu.h"
#include "hw/pmu/pmu-tcg-census.h"
#include "qemu/xxhash.h"
#include "qom/object.h"
#include "tcg/tcg-movable.h"
#include "accel/tcg/internal-common.h"
#include "accel/tcg/tb-internal.h"
#include "hw/pmu/compat.h"
#include "internal.h"

struct TbKept tb_kept;

/*
 * Beginning
 */

static char *get_name(Object *obj, Error **errp)
{
    return g_strdup(tb_kept.name);
}

static void set_name(Object *obj, const char *value, Error **errp)
{
    g_free(tb_kept.name);
    tb_kept.name = g_strdup(value);
}

void tb_kept_add_property(ObjectClass *oc)
{
    object_class_property_add_str(oc, "blocks", get_name, set_name);
    object_class_property_set_description(oc, "blocks",
        "File with translated blocks of earlier processes");
}

void tb_kept_init(int splitwx)
{
    tcg_movable = tb_kept.name && !splitwx;
}

static void read_file(void)
{
    if (tb_kept_read(tb_kept.name, tb_kept.identity, tb_kept_most(),
                     &tb_kept.file)) {
        qatomic_set(&tb_kept.ctx->code_gen_ptr,
                    (void *)(tb_kept_place() + tb_kept.file.size));
    }
}

bool tb_kept_is_instrumented(CPUState *cpu)
{
#ifdef CONFIG_PLUGIN
    if (cpu->plugin_state
        && !bitmap_empty(cpu->plugin_state->event_mask, QEMU_PLUGIN_EV_MAX)) {
        return true;
    }
#endif
    return pmu_census_on;
}

/* Blocks that are not in RAM may have been first. */
static bool has_translated(void)
{
    return tcg_ctx->code_gen_ptr != tcg_ctx->code_gen_buffer;
}

static void begin(void)
{
    tb_kept.has_begun = true;
    tb_kept.ctx = tcg_ctx;
    tb_kept.is_over = has_translated()
                      || !tb_kept_identity(first_cpu, tb_kept.identity);
    if (!tb_kept.is_over) {
        read_file();
    }
}

/*
 * Taking
 */

uint32_t tb_kept_hash(vaddr pc, uint64_t cs_base, uint32_t flags,
                      uint32_t cflags, const uint8_t *code, unsigned size)
{
    uint64_t words[TB_KEPT_HASHED / sizeof(uint64_t)] = { };

    memcpy(words, code, size);
    return qemu_xxhash8(cflags & CF_PCREL ? pc & ~TARGET_PAGE_MASK : pc,
                        qemu_xxhash64_4(words[0], words[1], words[2], words[3]),
                        cs_base, flags, cflags);
}

static TranslationBlock *tb_of(const KeptBlock *b)
{
    return (TranslationBlock *)(tb_kept_place() + b->tb);
}

/* A file may be damaged: whether it has all of a block, which is read then. */
static bool has_all(KeptBlocks *file, const KeptBlock *b)
{
    return b->size >= sizeof(TranslationBlock) && b->size <= file->size
           && b->tb <= file->size - b->size && b->code <= file->code_size
           && tb_kept_fetch(file, b->tb, b->size, tb_kept_place())
           && tb_of(b)->size <= file->code_size - b->code;
}

/**
 * struct Wanted - a block that would be translated
 * @pc, @phys_pc, @host_pc: the guest's address, and where that is
 * @cs_base, @flags, @cflags: as of tb_gen_code()
 * @size: the bytes up to the end of the page
 */
typedef struct Wanted {
    vaddr pc;
    tb_page_addr_t phys_pc;
    const void *host_pc;
    uint64_t cs_base;
    uint32_t flags;
    uint32_t cflags;
    unsigned size;
} Wanted;

/* Whether RAM has the guest code of a block. */
static bool has_code(const KeptBlock *b, const Wanted *w)
{
    const TranslationBlock *tb = tb_of(b);

    return tb->size <= w->size
           && !memcmp(tb_kept.file.code + b->code, w->host_pc, tb->size);
}

/* Code that does not depend on the address may depend on that in the page. */
static bool is_wanted(const KeptBlock *b, const Wanted *w)
{
    const TranslationBlock *tb = tb_of(b);

    return has_all(&tb_kept.file, b)
           && (w->cflags & CF_PCREL || tb->pc == w->pc)
           && !((tb_page_addr0(tb) ^ w->phys_pc) & ~TARGET_PAGE_MASK)
           && tb->cs_base == w->cs_base && tb->flags == w->flags
           && tb->cflags == w->cflags && has_code(b, w);
}

/* The block of that number in a list, or NULL if it is the end. */
static KeptBlock *block_of(uint32_t number)
{
    return number - 1 < tb_kept.file.nr_blocks ?
           &tb_kept.file.blocks[number - 1] : NULL;
}

static uint32_t *list_of(uint32_t hash)
{
    return &tb_kept.file.lists[hash & (tb_kept.file.nr_lists - 1)];
}

/* Take a block from its list.  A list of a damaged file may be endless. */
static bool unlink_block(const KeptBlock *b)
{
    uint32_t *link = list_of(b->hash);
    unsigned steps = 0;
    KeptBlock *other;

    while ((other = block_of(*link)) && steps++ < TB_KEPT_LONGEST) {
        if (other == b) {
            *link = b->next;
            return true;
        }
        link = &other->next;
    }
    return false;
}

/* A guest that goes on from the same state needs most in the same order. */
static KeptBlock *find_next(const Wanted *w)
{
    KeptBlock *b = block_of(tb_kept.next);

    return b && is_wanted(b, w) && unlink_block(b) ? b : NULL;
}

/* Find a block by so many bytes of its code. */
static KeptBlock *find_by(const Wanted *w, unsigned hashed)
{
    uint32_t hash = tb_kept_hash(w->pc, w->cs_base, w->flags, w->cflags,
                                 w->host_pc, hashed);
    KeptBlock *b = block_of(*list_of(hash));
    unsigned steps = 0;

    for (; b && steps < TB_KEPT_LONGEST; b = block_of(b->next), steps++) {
        if (b->hash == hash && is_wanted(b, w)) {
            return unlink_block(b) ? b : NULL;
        }
    }
    return NULL;
}

/* How long a block is will be known when it is found. */
static KeptBlock *find(const Wanted *w)
{
    unsigned hashed = pow2floor(MIN(w->size, TB_KEPT_HASHED));
    KeptBlock *b = find_next(w);

    for (; hashed && !b; hashed /= 2) {
        b = find_by(w, hashed);
    }
    if (b) {
        tb_kept.next = b - tb_kept.file.blocks + 2;
    }
    return b;
}

void tb_kept_reset_jumps(TranslationBlock *tb)
{
    for (int n = 0; n < 2; n++) {
        if (tb->jmp_reset_offset[n] != TB_JMP_OFFSET_INVALID) {
            tb_reset_jump(tb, n);
        }
    }
}

static void prepare(TranslationBlock *tb, tb_page_addr_t phys_pc)
{
    tb->tc.ptr = tb_kept_place() + (uintptr_t)tb->tc.ptr;
    tb_set_page_addr0(tb, phys_pc);
    qemu_spin_init(&tb->jmp_lock);
    tb_kept_reset_jumps(tb);
}

/*
 * The page is protected before its code is compared for the last time, so that
 * the block is invalidated by all that is written later.
 */
static TranslationBlock *link_block(const KeptBlock *b, const Wanted *w)
{
    TranslationBlock *tb = tb_of(b);
    TranslationBlock *existing;

    prepare(tb, w->phys_pc);
    tb_lock_page0(w->phys_pc);
    if (!has_code(b, w)) {
        tb_unlock_pages(tb);
        return NULL;
    }
    tcg_tb_insert(tb);
    existing = tb_link_page(tb);
    if (existing != tb) {
        /* Another thread was first. */
        tcg_tb_remove(tb);
    }
    return existing;
}

TranslationBlock *tb_kept_take(CPUState *cpu, vaddr pc, tb_page_addr_t phys_pc,
                               const void *host_pc, uint64_t cs_base,
                               uint32_t flags, uint32_t cflags)
{
    Wanted w = {
        .pc = pc, .phys_pc = phys_pc, .host_pc = host_pc, .cs_base = cs_base,
        .flags = flags, .cflags = cflags,
        .size = TARGET_PAGE_SIZE - (phys_pc & ~TARGET_PAGE_MASK),
    };
    TranslationBlock *tb;
    KeptBlock *b = NULL;

    if (!tb_kept.has_begun) {
        begin();
    }
    if (tb_kept_is_instrumented(cpu)) {
        tb_kept.is_over = true;
    }
    if (tb_kept.file.index && !tb_kept.is_over && !(cflags & TB_KEPT_NEVER)) {
        b = find(&w);
    }
    tb = b ? link_block(b, &w) : NULL;
    *(tb ? &tb_kept.nr_taken : &tb_kept.nr_translated) += 1;
    return tb;
}

void tb_kept_forget(void)
{
    tb_kept_close(&tb_kept.file);
    tb_kept.has_begun = false;
}
