/*
 * `calls` for longer, for what is to happen in its middle
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#define N 40000000
#include "calls.S"
