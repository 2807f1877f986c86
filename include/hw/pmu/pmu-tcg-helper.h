/*
 * Performance monitoring unit: what translated code calls
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

/* Neither reads nor writes what translated code keeps in registers. */
DEF_HELPER_FLAGS_1(pmu_see_branches, TCG_CALL_NO_RWG, void, env)
