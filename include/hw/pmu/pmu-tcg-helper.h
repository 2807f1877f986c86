/*
 * Performance monitoring unit: helpers for translated code
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

/* Neither reads nor writes the values that translated code has in registers. */
DEF_HELPER_FLAGS_1(pmu_see_branches, TCG_CALL_NO_RWG, void, env)
