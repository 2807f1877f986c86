/*
 * Translated blocks that are kept: what its files share
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef ACCEL_TCG_KEPT_INTERNAL_H
#define ACCEL_TCG_KEPT_INTERNAL_H

#include "kept.h"
#include "qemu/units.h"
#include "tcg/tcg.h"

/**
 * struct KeptBlock - a block in a file
 * @tb: where its TranslationBlock is, from the beginning of the blocks
 * @size: the bytes from there to the end of the block's data
 * @code: where its guest code is, among that of all
 * @hash: tb_kept_hash(), by which it is found
 * @next: the next one in its list, from 1, or 0
 */
typedef struct KeptBlock {
    uint32_t tb;
    uint32_t size;
    uint32_t code;
    uint32_t hash;
    uint32_t next;
} KeptBlock;

/**
 * TB_KEPT_PART - the size of the parts in which host code is read and checked
 *
 * A part is read when a block of it is needed.  A mapping would be slower: it
 * takes faults for each page, and code in it has no huge pages.
 */
#define TB_KEPT_PART (64 * KiB)

/**
 * struct KeptBlocks - the contents of a file
 * @fd: the open file
 * @size: the bytes of the host code, in whole parts
 * @parts: which parts of the host code have been read
 * @damaged: which cannot be
 * @sums: zlib's CRC-32 of each part
 * @index: where the rest is mapped, or NULL
 * @index_size: the bytes of that
 * @lists: the first block that can be taken for each hash, from 1, or 0
 * @nr_lists: how many, a power of 2
 * @blocks: the blocks, in the order of @tb
 * @nr_blocks: how many
 * @code: their guest code
 * @code_size: its bytes
 */
typedef struct KeptBlocks {
    int fd;
    uint32_t size;
    unsigned long *parts;
    unsigned long *damaged;
    const uint32_t *sums;
    void *index;
    size_t index_size;
    uint32_t *lists;
    uint32_t nr_lists;
    KeptBlock *blocks;
    uint32_t nr_blocks;
    uint8_t *code;
    uint32_t code_size;
} KeptBlocks;

/**
 * TB_KEPT_MOST - how many bytes of host code a file may have
 */
#define TB_KEPT_MOST (256 * MiB)

/**
 * TB_KEPT_LONGEST - how many blocks a list may have
 */
#define TB_KEPT_LONGEST 32

/**
 * TB_KEPT_NEVER - the cflags of blocks that are for once: of a debugger, or
 *                 where a counter is about to overflow
 */
#define TB_KEPT_NEVER \
    (CF_INVALID | CF_COUNT_MASK | CF_SINGLE_STEP | CF_BP_PAGE)

/**
 * TB_KEPT_IDENTITY - the bytes of tb_kept_identity()
 */
#define TB_KEPT_IDENTITY 32

/**
 * struct TbKept - the blocks of this process
 * @name: the file's name, or NULL
 * @has_begun: the file has been looked for, since the last flush
 * @is_over: until the next one, nothing is taken or written any more
 * @identity: tb_kept_identity()
 * @ctx: the context of all threads
 * @file: the contents of the file
 * @next: the block after the one that was taken last, from 1, or more than there
 *        are
 * @nr_taken: how many blocks were taken
 * @nr_translated: how many were not, and had to be translated
 */
extern struct TbKept {
    char *name;
    bool has_begun;
    bool is_over;
    uint8_t identity[TB_KEPT_IDENTITY];
    TCGContext *ctx;
    KeptBlocks file;
    uint32_t next;
    uint64_t nr_taken;
    uint64_t nr_translated;
} tb_kept;

/**
 * tb_kept_place - where the blocks of the file are, and then the others
 */
static inline uint8_t *tb_kept_place(void)
{
    return tb_kept.ctx->code_gen_buffer;
}

/**
 * tb_kept_most - how many bytes of host code a file may have in this process
 */
static inline size_t tb_kept_most(void)
{
    return MIN(TB_KEPT_MOST,
               ROUND_DOWN(tb_kept.ctx->code_gen_buffer_size / 2, TB_KEPT_PART));
}

/**
 * tb_kept_identity - what blocks depend on besides their guest code
 * @cpu: the vCPU
 * @identity: where to store a digest of it
 *
 * Returns false if this QEMU has no build ID, so that nothing can be kept.
 */
bool tb_kept_identity(CPUState *cpu, uint8_t identity[TB_KEPT_IDENTITY]);

/**
 * tb_kept_is_instrumented - whether code is made for a plugin, or a census
 * @cpu: the vCPU
 */
bool tb_kept_is_instrumented(CPUState *cpu);

/**
 * tb_kept_functions - where the functions of this QEMU are
 * @start, @end: where to store the bounds
 */
void tb_kept_functions(uintptr_t *start, uintptr_t *end);

/**
 * TB_KEPT_HASHED - how many bytes of guest code may be in a hash
 */
#define TB_KEPT_HASHED 32

/**
 * tb_kept_reset_jumps - let a block jump to no other one
 * @tb: the block
 */
void tb_kept_reset_jumps(TranslationBlock *tb);

/**
 * tb_kept_hash - the hash of a block
 * @pc: the guest's address
 * @cs_base, @flags, @cflags: as of tb_gen_code()
 * @code: the guest code there
 * @size: how many bytes of it the hash depends on: the greatest power of 2 that
 *        is neither more than there are, nor than TB_KEPT_HASHED
 */
uint32_t tb_kept_hash(vaddr pc, uint64_t cs_base, uint32_t flags,
                      uint32_t cflags, const uint8_t *code, unsigned size);

/**
 * tb_kept_read - read a file, but for its host code
 * @name: its name
 * @identity: which file can be used
 * @room: how many bytes of host code it may have
 * @file: where to store its contents, which tb_kept_close() forgets
 *
 * The file must not be written to later, but it may be replaced.
 *
 * Returns false, and changes nothing, if there is no such file, or none that can
 * be used.
 */
bool tb_kept_read(const char *name, const uint8_t identity[TB_KEPT_IDENTITY],
                  size_t room, KeptBlocks *file);

/**
 * tb_kept_fetch - read a part of the host code of a file, once
 * @file: the file
 * @at, @size: which bytes of its host code; there are so many, and one at least
 * @place: where its host code is to be
 *
 * Returns false if it cannot be read, or is damaged.
 */
bool tb_kept_fetch(KeptBlocks *file, uint32_t at, uint32_t size,
                   uint8_t *place);

/**
 * tb_kept_write - write a file, which replaces one of that name
 * @name: its name
 * @identity: who can use it
 * @old: the file that was read, which has the first blocks, or an empty one
 * @blocks: the translated blocks after those, in whole parts
 * @new: all of it, but for the file itself and the sums
 *
 * Returns false, with an error, if that is not possible, or if another process is
 * writing it; then nothing has changed.
 */
bool tb_kept_write(const char *name, const uint8_t identity[TB_KEPT_IDENTITY],
                   const KeptBlocks *old, const uint8_t *blocks,
                   const KeptBlocks *new, Error **errp);

/**
 * tb_kept_close - forget all that was read but the host code, and read no more
 * @file: the file, which is empty then; also one that is empty now
 */
void tb_kept_close(KeptBlocks *file);

#endif /* ACCEL_TCG_KEPT_INTERNAL_H */
