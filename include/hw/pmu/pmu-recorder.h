/*
 * Performance monitoring unit: the last branches that were taken
 *
 * A ring of the last branches that pass a filter.  The faces decide how
 * registers show it, and when branches are recorded.
 *
 * Translated code knows nothing of filters: it writes each branch that it
 * executes to a log (hw/pmu/pmu-tcg-translate.c).  Recorders read the log when
 * it is full, or when their records are needed (pmu_tcg_see_branches()).  Most
 * of a log is older than the oldest branch of a ring, and costs little.
 *
 * Threads: the vCPU's own thread, or any while the vCPU is stopped.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PMU_RECORDER_H
#define HW_PMU_PMU_RECORDER_H

#include "qemu/bitops.h"
#include "hw/pmu/pmu-engine.h"

/**
 * PMU_RECORDER_MAX - the most branches that can be remembered
 *
 * Also the number of branches in the migration stream of x86: to change it, add
 * a version of that.
 */
#define PMU_RECORDER_MAX 32

/**
 * enum PmuBranchKind - the kinds of branches
 *
 * Calls leave a return address somewhere, returns take it from there.
 * The others are jumps.
 *
 * @PMU_BRANCH_NONE: no branch
 * @PMU_BRANCH_FAR: may change more than the address: an interrupt, an
 *                  exception, a return from one
 * @PMU_BRANCH_CALL_NEXT: a call of the next instruction, by which code finds
 *                        its own address; it does not return
 * @PMU_BRANCH_CONDITIONAL: is added to the kind of a branch that tests
 *                          a condition, and has been taken
 */
typedef enum PmuBranchKind {
    PMU_BRANCH_NONE,
    PMU_BRANCH_JUMP,
    PMU_BRANCH_INDIRECT_JUMP,
    PMU_BRANCH_CALL,
    PMU_BRANCH_INDIRECT_CALL,
    PMU_BRANCH_RETURN,
    PMU_BRANCH_FAR,
    PMU_BRANCH_CALL_NEXT,
    PMU_BRANCH_CONDITIONAL = 8,
    PMU_BRANCH__MAX = 16,
} PmuBranchKind;

/**
 * typedef PmuBranchKinds - a set of kinds: bit n is kind n
 */
typedef uint32_t PmuBranchKinds;

/**
 * PMU_BRANCHES_CONDITIONAL - the kinds that test a condition
 */
#define PMU_BRANCHES_CONDITIONAL 0xff00u

/**
 * PMU_BRANCHES_OF - branches of a kind, whether or not they test a condition
 * @kind: without PMU_BRANCH_CONDITIONAL
 */
#define PMU_BRANCHES_OF(kind) \
    ((1u << (kind)) | (1u << ((kind) | PMU_BRANCH_CONDITIONAL)))

/**
 * struct PmuBranch - a branch that was taken
 * @from: its address
 * @to: where it went
 * @kind: its kind
 * @time: as in PmuRecorder
 * @mispredicted: whether a model of the core has predicted it wrong
 */
typedef struct PmuBranch {
    uint64_t from;
    uint64_t to;
    PmuBranchKind kind;
    uint64_t time;
    bool mispredicted;
} PmuBranch;

/**
 * struct PmuRecorder - the branches of a vCPU
 * @from: of each slot of the ring, PmuBranch.from
 * @to: PmuBranch.to
 * @kind: PmuBranch.kind; a PmuBranchKind, as translated code stores it
 * @time: how long it took from the record before to this one, which ends that
 *        time; even if that record is gone.  In instructions, or, with a model
 *        of the core, in cycles.
 * @since: how long ago the last record was, if that is measured
 *         (pmu_tcg_record()); 0 otherwise.  The time before a branch in a log
 *         is added when the log is read.
 * @next: the slot that the next branch goes to, in bytes from the first
 * @last: the last slot, likewise; also the mask of an index
 * @wanted: which kinds are recorded, for each mode that a branch ends in; empty
 *          while the recording is frozen
 * @call_stack: a return that is wanted is not recorded, but removes the newest
 *              branch, its call
 * @mispredicted: bit n is PmuBranch.mispredicted of slot n
 *
 * Before pmu_recorder_init() there is no ring, and nothing is recorded.
 */
typedef struct PmuRecorder {
    uint64_t from[PMU_RECORDER_MAX];
    uint64_t to[PMU_RECORDER_MAX];
    uint64_t kind[PMU_RECORDER_MAX];
    uint64_t time[PMU_RECORDER_MAX];
    uint64_t since;
    uint32_t next;
    uint32_t last;
    PmuBranchKinds wanted[PMU_MAX_MODES];
    uint32_t call_stack;
    uint32_t mispredicted;
} PmuRecorder;

/**
 * PMU_BRANCH_LOG_SIZE - how many branches a log takes before it is full
 *
 * Many times the size of a ring, so that few need to be copied.
 */
#define PMU_BRANCH_LOG_SIZE 512

/**
 * PMU_LOGGED_MODE, PMU_LOGGED_WRONG, PMU_LOGGED_DISTANCE - the first bits of
 * the mode, of PmuBranch.mispredicted and of the distance in
 * PmuLoggedBranch.what; the distance has all higher bits
 */
#define PMU_LOGGED_MODE     4
#define PMU_LOGGED_WRONG    7
#define PMU_LOGGED_DISTANCE 8

/**
 * PMU_LOGGED_PRICED - no place in a log: a core has seen the branch already
 */
#define PMU_LOGGED_PRICED 1

/**
 * struct PmuLoggedBranch - a branch that has been taken, wanted or not
 * @to: where it went
 * @from: its address, if @what has no distance; otherwise not written
 * @what: its PmuBranchKind, the mode it ended in, and @to less its address, if
 *        that is known at translation, and fits.  A model of the core adds
 *        later whether the prediction was wrong.
 * @left: the budget left of the instructions of that mode (PmuTcgRow), after
 *        the branch, if time is measured.  The lower half suffices for a full
 *        log of branches that are 2^23 instructions apart.  A model of the core
 *        replaces it by a number that falls with each cycle, before recorders
 *        read it.
 * @accesses: with a model of the core, where accesses went on in its log after
 *            the branch, the lower half of PmuTcgCells.core_next; when the
 *            model has read that log, the lower half of the cycles of all
 *            misses up to there
 * @branches: the same for branches, of PmuTcgCells.core_limit; then
 *            PMU_LOGGED_PRICED
 */
typedef struct PmuLoggedBranch {
    uint64_t to;
    uint64_t from;
    uint32_t what;
    uint32_t left;
    uint32_t accesses;
    uint32_t branches;
} PmuLoggedBranch;

/**
 * pmu_logged_fits - whether PmuLoggedBranch.what can hold a distance
 * @distance: from a branch to its target; 0 stands for "no distance"
 */
static inline bool pmu_logged_fits(int64_t distance)
{
    return distance
           && distance == sextract64(distance, 0, 32 - PMU_LOGGED_DISTANCE);
}

/**
 * pmu_logged_what - compose PmuLoggedBranch.what
 * @kind: the kind of the branch
 * @mode: the mode in which it ends
 * @distance: one that fits, or 0
 */
static inline uint32_t pmu_logged_what(PmuBranchKind kind, unsigned mode,
                                       int32_t distance)
{
    return kind | mode << PMU_LOGGED_MODE
           | (uint32_t)distance << PMU_LOGGED_DISTANCE;
}

/**
 * pmu_logged_kind - the kind of a branch in a log
 * @branch: the branch
 */
static inline PmuBranchKind pmu_logged_kind(const PmuLoggedBranch *branch)
{
    return branch->what & (PMU_BRANCH__MAX - 1);
}

/**
 * pmu_logged_mode - the mode in which a branch in a log has ended
 * @branch: the branch
 */
static inline unsigned pmu_logged_mode(const PmuLoggedBranch *branch)
{
    return extract32(branch->what, PMU_LOGGED_MODE,
                     PMU_LOGGED_WRONG - PMU_LOGGED_MODE);
}

/**
 * struct PmuBranchLog - branches that recorders have not read yet
 * @branches: PMU_BRANCH_LOG_SIZE of them, the newest first, as the log is
 *            filled from its end; NULL if it has not been made
 * @room: how many bytes of @branches are not in use; of 64 bits, as translated
 *        code counts down
 *
 * If a user reads the time between branches, or the position
 * of a ring, the recorders read the log before each change of the mode.  Then
 * its branches are all of one mode, and no other mode has executed anything
 * meanwhile.
 */
typedef struct PmuBranchLog {
    PmuLoggedBranch *branches;
    int64_t room;
} PmuBranchLog;

/**
 * pmu_branch_log_init - make a log, which is empty
 * @log: the log
 */
void pmu_branch_log_init(PmuBranchLog *log);

/**
 * pmu_branch_log_free - release the branches of a log
 * @log: the log, which has been made
 */
void pmu_branch_log_free(PmuBranchLog *log);

/**
 * pmu_branch_log_newest - the newest branch of a log
 * @log: the log; if it is empty, this is the end of @branches
 *
 * Older ones follow, up to the end.
 */
static inline PmuLoggedBranch *pmu_branch_log_newest(const PmuBranchLog *log)
{
    return log->branches + log->room / sizeof(log->branches[0]);
}

/**
 * pmu_branch_log_clear - forget the branches of a log
 * @log: the log
 */
void pmu_branch_log_clear(PmuBranchLog *log);

/**
 * pmu_recorder_init - make a ring that is empty and records nothing
 * @r: the recorder
 * @depth: how many branches it keeps, a power of 2
 */
void pmu_recorder_init(PmuRecorder *r, unsigned depth);

/**
 * pmu_recorder_depth - how many branches it keeps
 * @r: the recorder, which has been made
 */
unsigned pmu_recorder_depth(const PmuRecorder *r);

/**
 * pmu_recorder_clear - forget all branches
 * @r: the recorder
 */
void pmu_recorder_clear(PmuRecorder *r);

/**
 * pmu_recorder_push - remember a branch, wanted or not
 * @r: the recorder
 * @branch: the newest from now on, with its @time; the oldest is forgotten
 */
void pmu_recorder_push(PmuRecorder *r, const PmuBranch *branch);

/**
 * pmu_recorder_note - process a branch that has been taken
 * @r: the recorder
 * @mode: in which it has ended
 * @branch: the branch, which may not be wanted; its @time is measured here
 */
void pmu_recorder_note(PmuRecorder *r, unsigned mode, const PmuBranch *branch);

/**
 * pmu_recorder_see - read a log
 * @r: the recorder, whose @since includes all time up to now; changes as if
 *     pmu_recorder_note() had been called for each branch
 * @log: branches that it is still to read
 * @left: for each mode, what PmuLoggedBranch.left would be of a branch now;
 *        NULL if no time is measured
 */
void pmu_recorder_see(PmuRecorder *r, const PmuBranchLog *log,
                      const int64_t *left);

/**
 * pmu_recorder_get - one of the last branches
 * @r: the recorder
 * @age: how many are newer
 *
 * Returns: the branch, all zero if so many have not been recorded or kept.
 */
PmuBranch pmu_recorder_get(const PmuRecorder *r, unsigned age);

#endif /* HW_PMU_PMU_RECORDER_H */
