/*
 * Performance monitoring unit: helpers for code that shows a core what it does
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

/* Neither reads nor writes the values that translated code has in registers. */
DEF_HELPER_FLAGS_3(pmu_core_fetched, TCG_CALL_NO_RWG, void, env, i64, i32)
DEF_HELPER_FLAGS_2(pmu_core_enter, TCG_CALL_NO_RWG, void, env, i32)
DEF_HELPER_FLAGS_1(pmu_core_flush, TCG_CALL_NO_RWG, void, env)
DEF_HELPER_FLAGS_3(pmu_core_repeat, TCG_CALL_NO_RWG, void, env, i64, i32)
