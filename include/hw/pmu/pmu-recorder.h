/*
 * Performance monitoring unit: the last branches that were taken
 *
 * A ring of branches, of which a filter says what is remembered.  What
 * registers show of it, and when branches are wanted, is the faces' business.
 *
 * Translated code knows nothing of filters: it writes each branch that it
 * executes to a log (hw/pmu/pmu-tcg-translate.c), which recorders look at when
 * it is full, or somebody asks them (pmu_tcg_see_branches()).  Most of a log is
 * then older than what they remember, and costs little.
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
 * Also how many the migration stream of x86 has room for: with another number
 * that needs another version.
 */
#define PMU_RECORDER_MAX 32

/**
 * enum PmuBranchKind - what a branch is
 *
 * Calls leave the address behind them somewhere, returns take it from there.
 * The others are jumps.
 *
 * @PMU_BRANCH_NONE: no branch
 * @PMU_BRANCH_FAR: what may change more than the address: an interrupt, an
 *                  exception, a return from one
 * @PMU_BRANCH_CALL_NEXT: a call of what is behind it, which wants to know where
 *                        it is, and does not return
 * @PMU_BRANCH_CONDITIONAL: is added to the kind of a branch that tests
 *                          something, and has been taken
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
 * PMU_BRANCHES_CONDITIONAL - those that test something
 */
#define PMU_BRANCHES_CONDITIONAL 0xff00u

/**
 * PMU_BRANCHES_OF - branches of a kind, whether or not they test something
 * @kind: without PMU_BRANCH_CONDITIONAL
 */
#define PMU_BRANCHES_OF(kind) \
    ((1u << (kind)) | (1u << ((kind) | PMU_BRANCH_CONDITIONAL)))

/**
 * struct PmuBranch - a branch that was taken
 * @from: its address
 * @to: where it went
 * @kind: what it is
 * @insns: as in PmuRecorder
 */
typedef struct PmuBranch {
    uint64_t from;
    uint64_t to;
    PmuBranchKind kind;
    uint64_t insns;
} PmuBranch;

/**
 * struct PmuRecorder - the branches of a vCPU
 * @from: of each slot of the ring, PmuBranch.from
 * @to: PmuBranch.to
 * @kind: PmuBranch.kind; a PmuBranchKind, as translated code stores it
 * @insns: how many instructions there were from the record before to this one,
 *         which is the last of them; whether or not that is still there
 * @since: how many there have been since the last record, if somebody asks
 *         (pmu_tcg_record()); 0 otherwise.  Of what a log has, that is known
 *         when it is seen.
 * @next: the slot that the next branch goes to, in bytes from the first
 * @last: the last slot, likewise: what an index is cut to
 * @wanted: which kinds are recorded, for each mode that a branch ends in; none
 *          while the recording is frozen
 * @call_stack: a return that is wanted is not recorded, but takes the newest
 *              branch away, its call
 *
 * There is none before pmu_recorder_init(), and nothing is recorded.
 */
typedef struct PmuRecorder {
    uint64_t from[PMU_RECORDER_MAX];
    uint64_t to[PMU_RECORDER_MAX];
    uint64_t kind[PMU_RECORDER_MAX];
    uint64_t insns[PMU_RECORDER_MAX];
    uint64_t since;
    uint32_t next;
    uint32_t last;
    PmuBranchKinds wanted[PMU_MAX_MODES];
    uint32_t call_stack;
} PmuRecorder;

/**
 * PMU_BRANCH_LOG_SIZE - how many branches a log takes before it is full
 *
 * Many times what recorders remember, so that few need to be copied.
 */
#define PMU_BRANCH_LOG_SIZE 512

/**
 * PMU_LOGGED_MODE, PMU_LOGGED_DISTANCE - where parts of PmuLoggedBranch.what
 * begin; the distance has what remains
 */
#define PMU_LOGGED_MODE     4
#define PMU_LOGGED_DISTANCE 8

/**
 * struct PmuLoggedBranch - a branch that has been taken, whoever wants it
 * @to: where it went
 * @from: its address, if @what has no distance; otherwise not written
 * @what: its PmuBranchKind, the mode it ended in, and how far @to lies behind
 *        its address, if that is known where the branch is translated, and fits
 * @left: what was left of the instructions of that mode (PmuTcgRow), behind
 *        the branch, if they are counted.  Its lower half will do for a full
 *        log of branches that are 2^23 instructions apart.
 */
typedef struct PmuLoggedBranch {
    uint64_t to;
    uint64_t from;
    uint32_t what;
    uint32_t left;
} PmuLoggedBranch;

/**
 * pmu_logged_fits - whether PmuLoggedBranch.what can have a distance
 * @distance: from a branch to where it goes; 0 stands for none
 */
static inline bool pmu_logged_fits(int64_t distance)
{
    return distance
           && distance == sextract64(distance, 0, 32 - PMU_LOGGED_DISTANCE);
}

/**
 * pmu_logged_what - PmuLoggedBranch.what
 * @kind: what the branch is
 * @mode: in which it ends
 * @distance: one that fits, or 0
 */
static inline uint32_t pmu_logged_what(PmuBranchKind kind, unsigned mode,
                                       int32_t distance)
{
    return kind | mode << PMU_LOGGED_MODE
           | (uint32_t)distance << PMU_LOGGED_DISTANCE;
}

/**
 * struct PmuBranchLog - branches that recorders have not seen yet
 * @branches: the newest first, as the log is filled from its end
 * @room: how many bytes of @branches are not in use; of 64 bits, as translated
 *        code counts down
 *
 * Whoever shows how many instructions there were between branches, or where a
 * ring stands, has the log seen whenever the mode changes.  Then its branches
 * are all of one mode, and no other mode has executed anything meanwhile.
 */
typedef struct PmuBranchLog {
    PmuLoggedBranch branches[PMU_BRANCH_LOG_SIZE];
    int64_t room;
} PmuBranchLog;

/**
 * pmu_branch_log_clear - forget what is in a log
 * @log: the log; before its first use, too
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
 * @branch: the newest from now on, with its @insns; the oldest is forgotten
 */
void pmu_recorder_push(PmuRecorder *r, const PmuBranch *branch);

/**
 * pmu_recorder_note - a branch has been taken
 * @r: the recorder
 * @mode: in which it has ended
 * @branch: the branch, which may not be wanted; its @insns are counted here
 */
void pmu_recorder_note(PmuRecorder *r, unsigned mode, const PmuBranch *branch);

/**
 * pmu_recorder_see - all that is in a log has happened
 * @r: the recorder, whose @since has all instructions up to now; as if
 *     pmu_recorder_note() had told it of each branch
 * @log: what it has not seen
 * @left: for each mode, what is left of its instructions now, as in
 *        PmuLoggedBranch.left; NULL if no @insns are counted
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
