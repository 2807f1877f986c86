/*
 * `long`, for tests that need a shorter one: all its accesses are to one word,
 * too
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#define N 20000000

#include "long.S"
