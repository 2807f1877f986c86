/*
 * `calls` for longer, for tests that need time in its middle
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#define N 40000000
#include "calls.S"
