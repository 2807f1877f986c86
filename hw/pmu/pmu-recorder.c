/*
 * Performance monitoring unit: the last branches that were taken
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "hw/pmu/pmu-recorder.h"

#define SLOT sizeof(uint64_t)

/* The number of combinations of kind and mode */
#define NR_SORTS (PMU_MAX_MODES << PMU_LOGGED_MODE)

/* Far branches are noted in C: a log does not contain any. */
#define LOGGED_KINDS (~PMU_BRANCHES_OF(PMU_BRANCH_FAR))

QEMU_BUILD_BUG_ON(PMU_BRANCH__MAX > 1 << PMU_LOGGED_MODE);
QEMU_BUILD_BUG_ON(NR_SORTS > 1 << PMU_LOGGED_WRONG);
QEMU_BUILD_BUG_ON(PMU_LOGGED_WRONG >= PMU_LOGGED_DISTANCE);

static void set_slot(PmuRecorder *r, unsigned slot, const PmuBranch *branch)
{
    r->from[slot] = branch->from;
    r->to[slot] = branch->to;
    r->kind[slot] = branch->kind;
    r->time[slot] = branch->time;
    r->mispredicted &= ~(1u << slot);
    r->mispredicted |= (uint32_t)branch->mispredicted << slot;
}

void pmu_recorder_clear(PmuRecorder *r)
{
    const PmuBranch none = {};
    unsigned slot;

    for (slot = 0; slot < PMU_RECORDER_MAX; slot++) {
        set_slot(r, slot, &none);
    }
    r->next = 0;
    r->since = 0;
}

void pmu_recorder_init(PmuRecorder *r, unsigned depth)
{
    assert(depth && depth <= PMU_RECORDER_MAX && !(depth & (depth - 1)));
    pmu_recorder_clear(r);
    r->last = (depth - 1) * SLOT;
    memset(r->wanted, 0, sizeof(r->wanted));
    r->call_stack = false;
}

unsigned pmu_recorder_depth(const PmuRecorder *r)
{
    return r->last / SLOT + 1;
}

void pmu_recorder_push(PmuRecorder *r, const PmuBranch *branch)
{
    set_slot(r, r->next / SLOT, branch);
    r->next = (r->next + SLOT) & r->last;
}

static void pop(PmuRecorder *r)
{
    const PmuBranch none = {};

    r->next = (r->next - SLOT) & r->last;
    set_slot(r, r->next / SLOT, &none);
}

static bool is_return(PmuBranchKind kind)
{
    return PMU_BRANCHES_OF(PMU_BRANCH_RETURN) >> kind & 1;
}

/* A branch that is wanted */
static void remember(PmuRecorder *r, const PmuBranch *branch)
{
    if (r->call_stack && is_return(branch->kind)) {
        pop(r);
    } else {
        pmu_recorder_push(r, branch);
    }
}

void pmu_recorder_note(PmuRecorder *r, unsigned mode, const PmuBranch *branch)
{
    PmuBranch record = *branch;

    if (r->wanted[mode] >> branch->kind & 1) {
        record.time = r->since;
        r->since = 0;
        remember(r, &record);
    }
}

/*
 * Reading a log
 */

void pmu_branch_log_init(PmuBranchLog *log)
{
    log->branches = g_new(PmuLoggedBranch, PMU_BRANCH_LOG_SIZE);
    pmu_branch_log_clear(log);
}

void pmu_branch_log_free(PmuBranchLog *log)
{
    g_clear_pointer(&log->branches, g_free);
}

void pmu_branch_log_clear(PmuBranchLog *log)
{
    log->room = PMU_BRANCH_LOG_SIZE * sizeof(log->branches[0]);
}

/* Kind and mode in one number */
static unsigned sort_of(const PmuLoggedBranch *branch)
{
    return branch->what & (NR_SORTS - 1);
}

static PmuBranchKind kind_of(unsigned sort)
{
    return sort & (PMU_BRANCH__MAX - 1);
}

static uint64_t from_of(const PmuLoggedBranch *branch)
{
    int32_t distance = sextract32(branch->what, PMU_LOGGED_DISTANCE,
                                  32 - PMU_LOGGED_DISTANCE);

    return distance ? branch->to - distance : branch->from;
}

static unsigned mode_of(unsigned sort)
{
    return sort >> PMU_LOGGED_MODE;
}

/* The value that PmuRecorder.since had at a branch */
static uint64_t since_of(const PmuRecorder *r, const PmuLoggedBranch *branch,
                         const int64_t *left)
{
    uint32_t now = left[mode_of(sort_of(branch))];

    return r->since - (branch->left - now);
}

static bool wants_sort(const PmuRecorder *r, unsigned sort)
{
    return r->wanted[mode_of(sort)] >> kind_of(sort) & 1;
}

static bool wants(const PmuRecorder *r, const PmuLoggedBranch *branch)
{
    return wants_sort(r, sort_of(branch));
}

static bool wants_any(const PmuRecorder *r)
{
    PmuBranchKinds kinds = 0;

    for (unsigned mode = 0; mode < PMU_MAX_MODES; mode++) {
        kinds |= r->wanted[mode];
    }
    return kinds;
}

/*
 * The number of wanted branches, from @b to the oldest of a log.  Most of a
 * log is counted here.  If all kinds are wanted in the log's mode, no branch
 * need be read; otherwise a table of answers pays.
 */
static unsigned count_wanted(const PmuRecorder *r, const PmuLoggedBranch *b,
                             const PmuLoggedBranch *end)
{
    uint8_t answers[NR_SORTS];
    unsigned count = 0;

    if (!(LOGGED_KINDS & ~r->wanted[mode_of(sort_of(b))])) {
        return end - b;
    }
    for (unsigned sort = 0; sort < NR_SORTS; sort++) {
        answers[sort] = wants_sort(r, sort);
    }
    for (; b < end; b++) {
        count += answers[sort_of(b)];
    }
    return count;
}

/*
 * The oldest branch of a log that will still be remembered at its end, if
 * nothing removes branches, and how much time there was before it.
 * Older branches only move the ring.
 */
static const PmuLoggedBranch *skip_forgotten(PmuRecorder *r,
                                             const PmuBranchLog *log,
                                             const int64_t *left,
                                             uint64_t *since)
{
    const PmuLoggedBranch *end = &log->branches[PMU_BRANCH_LOG_SIZE], *b;
    const PmuLoggedBranch *oldest = end - 1;
    unsigned depth = pmu_recorder_depth(r), wanted = 0;

    for (b = pmu_branch_log_newest(log); b < end && wanted < depth; b++) {
        if (wants(r, b)) {
            wanted++;
            oldest = b;
        }
    }
    while (b < end && !wants(r, b)) {
        b++;
    }
    if (b < end) {
        *since = left ? since_of(r, b, left) : 0;
        r->next = (r->next + count_wanted(r, b, end) * SLOT) & r->last;
    }
    return oldest;
}

void pmu_recorder_see(PmuRecorder *r, const PmuBranchLog *log,
                      const int64_t *left)
{
    const PmuLoggedBranch *newest = pmu_branch_log_newest(log);
    const PmuLoggedBranch *b = &log->branches[PMU_BRANCH_LOG_SIZE - 1];
    uint64_t since = 0;

    if (!wants_any(r)) {
        return;
    }
    if (!r->call_stack) {
        b = skip_forgotten(r, log, left, &since);
    }
    for (; b >= newest; b--) {
        if (wants(r, b)) {
            uint64_t until = left ? since_of(r, b, left) : 0;
            const PmuBranch branch = {
                .from = from_of(b), .to = b->to, .kind = kind_of(sort_of(b)),
                .time = until - since,
                .mispredicted = b->what >> PMU_LOGGED_WRONG & 1,
            };

            remember(r, &branch);
            since = until;
        }
    }
    r->since -= since;
}

PmuBranch pmu_recorder_get(const PmuRecorder *r, unsigned age)
{
    unsigned slot = ((r->next - (age + 1) * SLOT) & r->last) / SLOT;

    if (age >= pmu_recorder_depth(r)) {
        return (PmuBranch) {};
    }
    return (PmuBranch) {
        .from = r->from[slot], .to = r->to[slot], .kind = r->kind[slot],
        .time = r->time[slot],
        .mispredicted = r->mispredicted >> slot & 1,
    };
}
