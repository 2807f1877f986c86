/*
 * Translated code that does not depend on where it is, or where QEMU is
 *
 * Code refers to other code by distances, but it calls functions of QEMU, and
 * how far these are differs from process to process.  Movable code calls them
 * through a table at the beginning of the code buffer, so the whole buffer can
 * be at another address in another process, after that process has filled the
 * table with its own addresses of the same functions.
 *
 * So that the buffer has no parts of different threads, all vCPUs' threads have
 * one context if code is movable, and translate one after the other.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef TCG_MOVABLE_H
#define TCG_MOVABLE_H

#include "tcg/tcg.h"

/**
 * tcg_movable - whether code is to be movable
 *
 * Set before tcg_init().
 */
#ifdef CONFIG_USER_ONLY
#define tcg_movable false
#else
extern bool tcg_movable;
#endif

/**
 * tcg_enter_context - wait until no other thread translates movable code
 *
 * Not to be called with the BQL while vCPUs run, as a thread that translates
 * may take it.
 *
 * Returns whether to call tcg_leave_context(), which is not so if the caller
 * has entered before, or if code is not movable.
 */
bool tcg_enter_context(void);

/**
 * tcg_leave_context - let other threads translate, if this one has entered
 */
void tcg_leave_context(void);

/**
 * tcg_owns_context - whether tcg_ctx is of this thread alone
 *
 * If it is not, then what it has may be of another thread.
 */
bool tcg_owns_context(void);

/**
 * TCG_CALLS - how many functions movable code can call
 */
#define TCG_CALLS 2048

/**
 * tcg_init_movable - reserve room for the table
 * @s: the context of all threads, after the prologue
 */
void tcg_init_movable(TCGContext *s);

/**
 * tcg_add_call - give a function the next place in the table
 * @function: the function, which has no place yet
 *
 * Returns the place, or NULL if the table is full.
 */
const void *tcg_add_call(const void *function);

/**
 * tcg_call_slot - the place in the table with a function's address
 * @function: the function
 *
 * Returns NULL if the table is full, after which code is not movable.
 */
const void *tcg_call_slot(const void *function);

/**
 * tcg_calls - the functions in the table, in the order of their places
 * @nr: where to store how many
 *
 * Returns NULL if the table was too small.
 */
const void *const *tcg_calls(unsigned *nr);

#endif /* TCG_MOVABLE_H */
