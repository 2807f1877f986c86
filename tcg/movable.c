/*
 * Translated code that does not depend on where it is, or where QEMU is
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/thread.h"
#include "tcg/tcg-movable.h"
#include "tcg-internal.h"

#ifndef CONFIG_USER_ONLY
bool tcg_movable;
#endif

static QemuMutex translation;
static __thread bool has_entered;

/* The table, in the code buffer, and the place of each function in it. */
static const void **calls;
static unsigned nr_calls;
static GHashTable *slots;
static bool is_too_small;

void tcg_init_movable(TCGContext *s)
{
    calls = (const void **)ROUND_UP((uintptr_t)s->code_ptr, sizeof(void *));
    slots = g_hash_table_new(NULL, NULL);
    s->code_ptr = (tcg_insn_unit *)(calls + TCG_CALLS);
    qemu_mutex_init(&translation);
    tcg_ctxs[0] = s;
    tcg_cur_ctxs = 1;
}

bool tcg_enter_context(void)
{
    if (!tcg_movable || has_entered) {
        return false;
    }
    qemu_mutex_lock(&translation);
    has_entered = true;
    return true;
}

void tcg_leave_context(void)
{
    if (has_entered) {
        has_entered = false;
        qemu_mutex_unlock(&translation);
    }
}

bool tcg_owns_context(void)
{
    return !tcg_movable || has_entered;
}

const void *tcg_add_call(const void *function)
{
    const void **slot = &calls[nr_calls];

    if (nr_calls == TCG_CALLS) {
        is_too_small = true;
        return NULL;
    }
    nr_calls++;
    *slot = function;
    g_hash_table_insert(slots, (void *)function, slot);
    return slot;
}

const void *tcg_call_slot(const void *function)
{
    return g_hash_table_lookup(slots, function) ?: tcg_add_call(function);
}

const void *const *tcg_calls(unsigned *nr)
{
    *nr = nr_calls;
    return is_too_small ? NULL : calls;
}
