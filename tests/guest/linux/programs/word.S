/*
 * `long`, for what needs less of it: all its accesses are of one word, too
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#define N 20000000

#include "long.S"
