/*
 * x86 virtual PMU: AMD's registers in a subsection of QEMU without this PMU
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "amd-stock.h"

/* The last element in which QEMU 11.0 saves a counter */
static unsigned last_shifted(unsigned nr)
{
    return 2 * nr - 1;
}

void amd_stock_mark(CPUX86State *env, unsigned nr)
{
    env->msr_gp_counters[last_shifted(nr)] = X86_VPMU_MARK;
    env->msr_gp_counters[X86_VPMU_MARKED] = X86_VPMU_MARK;
}

static bool remove_mark(CPUX86State *env, unsigned i)
{
    bool found = env->msr_gp_counters[i] == X86_VPMU_MARK;

    if (found) {
        env->msr_gp_counters[i] = 0;
    }
    return found;
}

/* QEMU 11.0 leaves every second element as it was. */
static bool may_be_shifted(const CPUX86State *env)
{
    uint64_t others = 0;

    for (unsigned i = 0; i < MAX_GP_COUNTERS; i++) {
        others |= i & 1 ? env->msr_gp_evtsel[i] : env->msr_gp_counters[i];
    }
    return !others;
}

static bool may_be_straight(const CPUX86State *env, unsigned nr)
{
    uint64_t others = 0;

    for (unsigned i = nr; i < MAX_GP_COUNTERS; i++) {
        others |= env->msr_gp_counters[i] | env->msr_gp_evtsel[i];
    }
    return !others;
}

/*
 * Arrays that may be both: straight, all counters with an event would be 0.
 * That can be believed if they are shifted, too, but for the first counter's
 * event alone, which is then in the same element.
 */
static bool is_surely_shifted(const CPUX86State *env)
{
    uint64_t selected = 0, counted = 0;
    bool both = false;

    for (unsigned i = 0; i + 1 < MAX_GP_COUNTERS; i += 2) {
        selected |= i ? env->msr_gp_evtsel[i] : 0;
        counted |= env->msr_gp_counters[i + 1];
        both |= env->msr_gp_evtsel[i] && env->msr_gp_counters[i + 1];
    }
    selected |= counted ? env->msr_gp_evtsel[0] : 0;
    return both || !selected;
}

static void shift_back(CPUX86State *env)
{
    const unsigned half = MAX_GP_COUNTERS / 2;

    for (unsigned i = 0; i < half; i++) {
        env->msr_gp_evtsel[i] = env->msr_gp_evtsel[2 * i];
        env->msr_gp_counters[i] = env->msr_gp_counters[2 * i + 1];
    }
    memset(env->msr_gp_evtsel + half, 0, half * sizeof(uint64_t));
    memset(env->msr_gp_counters + half, 0, half * sizeof(uint64_t));
}

bool amd_stock_straighten(CPUX86State *env, unsigned nr, bool core)
{
    bool straight = remove_mark(env, last_shifted(nr));
    bool shifted = remove_mark(env, X86_VPMU_MARKED) && !straight;

    if (!core || straight) {
        return true;
    }
    if (!shifted && !may_be_shifted(env)) {
        return may_be_straight(env, nr);
    }
    if (!shifted && may_be_straight(env, nr) && !is_surely_shifted(env)) {
        return false;
    }
    shift_back(env);
    return true;
}
