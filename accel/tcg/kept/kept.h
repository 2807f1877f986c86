/*
 * Translated blocks that are kept for later processes
 *
 * A guest that goes on from the same state again and again executes much the
 * same code, and a short call spends most of its time with the translation of
 * it.  With "-accel tcg,blocks=FILE" blocks are movable (tcg/tcg-movable.h), and
 * the QMP command tcg-keep-blocks writes them to a file.  The next process reads
 * the file into its code buffer, and when it would translate, it looks there
 * for a block of the same guest code.
 *
 * A block is taken only for the same bytes in the guest's memory, the same
 * flags, and the same virtual address if its code depends on that; and a file
 * only by the same build of QEMU, on a host with the same CPU features, for a
 * CPU with the same properties.  So a translation would make the same block.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef ACCEL_TCG_KEPT_H
#define ACCEL_TCG_KEPT_H

#include "exec/translation-block.h"
#include "tcg/tcg-movable.h"

#ifdef CONFIG_USER_ONLY

static inline void tb_kept_init(int splitwx)
{
}

static inline TranslationBlock *tb_kept_take(CPUState *cpu, vaddr pc,
                                             tb_page_addr_t phys_pc,
                                             const void *host_pc,
                                             uint64_t cs_base, uint32_t flags,
                                             uint32_t cflags)
{
    return NULL;
}

static inline void tb_kept_forget(void)
{
}

#else

/**
 * tb_kept_add_property - add the property "blocks" to a class
 * @oc: the class of the accelerator
 */
void tb_kept_add_property(ObjectClass *oc);

/**
 * tb_kept_init - make code movable, if the property has been set
 * @splitwx: as of tcg_init(), which is called later
 *
 * Nothing is kept where code cannot be movable, which is on other hosts than
 * x86-64, and with split-wx=on; nor of other targets than x86 and Power, whose
 * translation may depend on more than the key of a block and tb_kept_identity()
 * have.
 */
void tb_kept_init(int splitwx);

/**
 * tb_kept_take - take a block instead of translating it
 * @cpu: the vCPU, whose thread has entered the context
 * @pc: the guest's address
 * @phys_pc: where that is in RAM
 * @host_pc: where that is in QEMU's memory
 * @cs_base, @flags, @cflags: as of tb_gen_code()
 *
 * Returns the block, which is linked as a new one would be, or NULL.
 */
TranslationBlock *tb_kept_take(CPUState *cpu, vaddr pc, tb_page_addr_t phys_pc,
                               const void *host_pc, uint64_t cs_base,
                               uint32_t flags, uint32_t cflags);

/**
 * tb_kept_forget - all blocks are going to be flushed, also those not taken
 *
 * To be called while no vCPU runs.  The next translation begins with the file
 * again.
 */
void tb_kept_forget(void);

#endif /* CONFIG_USER_ONLY */

#endif /* ACCEL_TCG_KEPT_H */
