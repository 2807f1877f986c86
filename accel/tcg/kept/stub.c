/*
 * Translated blocks that are kept: hosts whose code cannot be movable, and other
 * targets than x86 and Power
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "cpu.h"
#include "qapi/qapi-commands-tcg-blocks.h"
#include "qom/object.h"
#include "kept.h"

static void set_name(Object *obj, const char *value, Error **errp)
{
}

void tb_kept_add_property(ObjectClass *oc)
{
    object_class_property_add_str(oc, "blocks", NULL, set_name);
}

void tb_kept_init(int splitwx)
{
}

TranslationBlock *tb_kept_take(CPUState *cpu, vaddr pc, tb_page_addr_t phys_pc,
                               const void *host_pc, uint64_t cs_base,
                               uint32_t flags, uint32_t cflags)
{
    return NULL;
}

void tb_kept_forget(void)
{
}

TcgKeptBlocks *qmp_tcg_keep_blocks(Error **errp)
{
    return g_new0(TcgKeptBlocks, 1);
}
