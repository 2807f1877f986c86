/*
 * Unit test: recorder of the last branches, against a simple list
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "hw/pmu/pmu-recorder.h"

#define PROGRAMS 50
#define BRANCHES 200

/**
 * struct Reference - the branches that a recorder should hold
 * @list: branches, the newest first; unused entries are zero
 * @depth: the number of branches to keep
 * @wanted: by mode and kind, whether to record a branch
 * @call_stack: returns remove calls
 * @time: instructions since the list was last changed
 */
typedef struct Reference {
    PmuBranch list[PMU_RECORDER_MAX];
    unsigned depth;
    bool wanted[PMU_MAX_MODES][PMU_BRANCH__MAX];
    bool call_stack;
    uint64_t time;
} Reference;

static const PmuBranch none;

static void put_first(Reference *ref, const PmuBranch *branch)
{
    memmove(&ref->list[1], &ref->list[0],
            (ref->depth - 1) * sizeof(ref->list[0]));
    ref->list[0] = *branch;
}

static void take_first(Reference *ref)
{
    memmove(&ref->list[0], &ref->list[1],
            (ref->depth - 1) * sizeof(ref->list[0]));
    ref->list[ref->depth - 1] = none;
}

static void step(Reference *ref, unsigned mode, const PmuBranch *branch)
{
    bool returns = branch->kind == PMU_BRANCH_RETURN
                   || branch->kind == (PMU_BRANCH_RETURN
                                       | PMU_BRANCH_CONDITIONAL);

    if (!ref->wanted[mode][branch->kind]) {
        return;
    }
    if (ref->call_stack && returns) {
        take_first(ref);
    } else {
        put_first(ref, branch);
        ref->list[0].time = ref->time;
    }
    ref->time = 0;
}

static void assert_same(const PmuBranch *is, const PmuBranch *want)
{
    g_assert_cmphex(is->from, ==, want->from);
    g_assert_cmphex(is->to, ==, want->to);
    g_assert_cmpuint(is->kind, ==, want->kind);
    g_assert_cmpuint(is->time, ==, want->time);
    g_assert_cmpint(is->mispredicted, ==, want->mispredicted);
}

/* Also check that nothing follows the oldest branch. */
static void assert_remembers(const PmuRecorder *r, const Reference *ref)
{
    unsigned age;

    for (age = 0; age <= PMU_RECORDER_MAX; age++) {
        const PmuBranch branch = pmu_recorder_get(r, age);

        assert_same(&branch, age < ref->depth ? &ref->list[age] : &none);
    }
}

static PmuBranch some_branch(GRand *rand)
{
    return (PmuBranch) {
        .from = g_rand_int(rand),
        .to = g_rand_int(rand),
        .kind = g_rand_int_range(rand, 1, PMU_BRANCH__MAX),
        .mispredicted = g_rand_boolean(rand),
    };
}

/* All kinds, some kinds, or none, as when recording is frozen. */
static void choose_wanted(PmuRecorder *r, Reference *ref, GRand *rand)
{
    unsigned mode, kind;

    for (mode = 0; mode < PMU_MAX_MODES; mode++) {
        int quarters = g_rand_int_range(rand, 0, 5);

        r->wanted[mode] = 0;
        for (kind = 1; kind < PMU_BRANCH__MAX; kind++) {
            bool wanted = g_rand_int_range(rand, 0, 4) < quarters;

            ref->wanted[mode][kind] = wanted;
            r->wanted[mode] |= (PmuBranchKinds)wanted << kind;
        }
    }
    ref->call_stack = g_rand_boolean(rand);
    r->call_stack = ref->call_stack;
}

static void run_program(PmuRecorder *r, Reference *ref, GRand *rand)
{
    unsigned i;

    choose_wanted(r, ref, rand);
    for (i = 0; i < BRANCHES; i++) {
        unsigned mode = g_rand_int_range(rand, 0, PMU_MAX_MODES);
        const PmuBranch branch = some_branch(rand);
        unsigned insns = g_rand_int_range(rand, 1, 100);

        ref->time += insns;
        r->since += insns;
        step(ref, mode, &branch);
        pmu_recorder_note(r, mode, &branch);
        assert_remembers(r, ref);
    }
}

/* Changing the filter keeps the branches recorded so far. */
static void test_random(gconstpointer data)
{
    Reference ref = { .depth = GPOINTER_TO_UINT(data) };
    g_autoptr(GRand) rand = g_rand_new_with_seed(ref.depth);
    PmuRecorder r;
    unsigned i;

    pmu_recorder_init(&r, ref.depth);
    assert_remembers(&r, &ref);
    for (i = 0; i < PROGRAMS; i++) {
        run_program(&r, &ref, rand);
        if (g_rand_int_range(rand, 0, 4) == 0) {
            pmu_recorder_clear(&r);
            memset(ref.list, 0, sizeof(ref.list));
            ref.time = 0;
            assert_remembers(&r, &ref);
        }
    }
}

#define FAR_BRANCHES PMU_BRANCHES_OF(PMU_BRANCH_FAR)

/*
 * Observers of the host filter nothing; Power's BHRB filters only far branches,
 * which logs do not contain.
 */
static void want_all_logged(PmuRecorder *r, GRand *rand)
{
    PmuBranchKinds kinds = g_rand_boolean(rand) ? ~0u : ~FAR_BRANCHES;

    for (unsigned mode = 0; mode < PMU_MAX_MODES; mode++) {
        r->wanted[mode] = kinds;
    }
}

/* Distances that fit into a log, in both directions, and some that do not. */
#define FARTHEST ((1 << 23) - 1)

static const int64_t distances[] = {
    1, -1, 0x1234, -0x1234, FARTHEST, -FARTHEST - 1,
    0, FARTHEST + 1, -FARTHEST - 2, 1ll << 32, INT64_MAX, INT64_MIN,
};
#define NR_FITTING 6

static void test_fits(void)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(distances); i++) {
        g_assert_cmpint(pmu_logged_fits(distances[i]), ==, i < NR_FITTING);
    }
}

/*
 * A branch with one of the distances above, or a random one.  It is no far
 * branch: translated code leaves these to C.
 */
static PmuBranch some_logged(GRand *rand)
{
    unsigned i = g_rand_int_range(rand, 0, 2 * G_N_ELEMENTS(distances));
    PmuBranch branch;

    do {
        branch = some_branch(rand);
    } while (FAR_BRANCHES >> branch.kind & 1);
    if (i < G_N_ELEMENTS(distances)) {
        branch.from = branch.to - distances[i];
    }
    return branch;
}

/*
 * Log a branch as translated code does.  For a @direct branch, that stores the
 * distance instead of the address.
 */
static void put_in_log(PmuBranchLog *log, unsigned mode, int64_t left,
                       const PmuBranch *branch, bool direct)
{
    int64_t distance = branch->to - branch->from;
    bool known = direct && pmu_logged_fits(distance);

    log->room -= sizeof(log->branches[0]);
    log->branches[log->room / sizeof(log->branches[0])] = (PmuLoggedBranch) {
        .from = known ? 0xdead : branch->from, .to = branch->to,
        .what = pmu_logged_what(branch->kind, mode, known ? distance : 0)
                | (uint32_t)branch->mispredicted << PMU_LOGGED_WRONG,
        .left = left,
    };
}

static void assert_equal(const PmuRecorder *is, const PmuRecorder *want,
                         bool timed)
{
    for (unsigned age = 0; age < PMU_RECORDER_MAX; age++) {
        const PmuBranch branch = pmu_recorder_get(is, age);
        PmuBranch told = pmu_recorder_get(want, age);

        told.time = timed ? told.time : 0;
        assert_same(&branch, &told);
    }
    g_assert_cmpuint(is->next, ==, want->next);
    if (timed) {
        g_assert_cmpuint(is->since, ==, want->since);
    }
}

/* No branches, a few, or up to the size of the log. */
static int some_count(GRand *rand)
{
    switch (g_rand_int_range(rand, 0, 4)) {
    case 0:
        return g_rand_int_range(rand, 0, PMU_RECORDER_MAX + 1);
    case 1:
        return PMU_BRANCH_LOG_SIZE;
    default:
        return g_rand_int_range(rand, 0, PMU_BRANCH_LOG_SIZE + 1);
    }
}

/* Instructions are subtracted from their mode's @left. */
static void execute(PmuRecorder *told, int64_t *left, unsigned most,
                    GRand *rand)
{
    unsigned insns = g_rand_int_range(rand, 1, most);

    told->since += insns;
    *left -= insns;
}

/* A log stores only the lower bits of @left. */
static void choose_left(int64_t *left, GRand *rand)
{
    for (unsigned mode = 0; mode < PMU_MAX_MODES; mode++) {
        left[mode] = (uint64_t)g_rand_int(rand) << g_rand_int_range(rand, 0, 8);
    }
}

/* If instructions are counted, all branches of a log are of one mode. */
static void compare_log(PmuRecorder *seeing, PmuRecorder *told, bool timed,
                        GRand *rand)
{
    unsigned mode = g_rand_int_range(rand, 0, PMU_MAX_MODES);
    int64_t left[PMU_MAX_MODES], before;
    int count = some_count(rand);
    PmuBranchLog log;

    choose_left(left, rand);
    before = left[mode];
    pmu_branch_log_init(&log);
    while (count--) {
        const PmuBranch branch = some_logged(rand);

        if (!timed) {
            mode = g_rand_int_range(rand, 0, PMU_MAX_MODES);
        }
        execute(told, &left[mode], FARTHEST, rand);
        pmu_recorder_note(told, mode, &branch);
        put_in_log(&log, mode, left[mode], &branch, g_rand_boolean(rand));
    }
    execute(told, &left[mode], FARTHEST, rand);
    seeing->since += timed ? before - left[mode] : 0;
    pmu_recorder_see(seeing, &log, timed ? left : NULL);
    assert_equal(seeing, told, timed);
    pmu_branch_log_free(&log);
}

/* Reading a log has the same result as noting its branches one by one. */
static void test_log(gconstpointer data)
{
    unsigned depth = GPOINTER_TO_UINT(data);
    g_autoptr(GRand) rand = g_rand_new_with_seed(depth);

    for (int timed = 0; timed < 2; timed++) {
        PmuRecorder seeing, told;

        pmu_recorder_init(&seeing, depth);
        pmu_recorder_init(&told, depth);
        for (unsigned i = 0; i < PROGRAMS; i++) {
            Reference ref = { .depth = depth };

            choose_wanted(&seeing, &ref, rand);
            if (i % 4 == 0) {
                want_all_logged(&seeing, rand);
            }
            memcpy(told.wanted, seeing.wanted, sizeof(told.wanted));
            told.call_stack = seeing.call_stack;
            compare_log(&seeing, &told, timed, rand);
        }
    }
}

/* Pushing a branch ignores the filter. */
static void test_push(void)
{
    const PmuBranch branch = {
        .from = 1, .to = 2, .kind = PMU_BRANCH_FAR, .time = 3,
    };
    Reference ref = { .depth = 4 };
    PmuRecorder r;

    pmu_recorder_init(&r, ref.depth);
    pmu_recorder_push(&r, &branch);
    put_first(&ref, &branch);
    assert_remembers(&r, &ref);
}

/* A recorder that was not initialized never has branches. */
static void test_none(void)
{
    const PmuBranch branch = { .from = 1, .kind = PMU_BRANCH_CALL };
    const Reference ref = {};
    PmuRecorder r = {};

    pmu_recorder_note(&r, 0, &branch);
    assert_remembers(&r, &ref);
}

int main(int argc, char **argv)
{
    unsigned depth;

    g_test_init(&argc, &argv, NULL);
    for (depth = 1; depth <= PMU_RECORDER_MAX; depth *= 2) {
        g_autofree char *path = g_strdup_printf("/pmu/recorder/%u", depth);

        g_autofree char *log = g_strdup_printf("/pmu/recorder/log/%u", depth);

        g_test_add_data_func(path, GUINT_TO_POINTER(depth), test_random);
        g_test_add_data_func(log, GUINT_TO_POINTER(depth), test_log);
    }
    g_test_add_func("/pmu/recorder/log/fits", test_fits);
    g_test_add_func("/pmu/recorder/push", test_push);
    g_test_add_func("/pmu/recorder/none", test_none);
    return g_test_run();
}
