/*
 * Performance monitoring unit: commands of the qtest protocol
 *
 * Guest code does not run under qtest, so a test has no way to execute the
 * instructions that read and write registers of the PMU.  A face offers
 * commands that do to a CPU what its instructions would; they begin with the
 * number of the CPU.  All faces have these:
 *
 *   vpmu_count CPU TALLY MODE N    OK               N events (enum PmuTally)
 *   vpmu_wanted CPU                OK MASK          tallies read now
 *
 * They need the engine of hw/pmu/pmu-manual.h, which is used under the qtest
 * accelerator.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PMU_QTEST_H
#define HW_PMU_PMU_QTEST_H

#include "chardev/char-fe.h"
#include "hw/core/cpu.h"
#include "hw/pmu/compat.h"

/**
 * PMU_QTEST_MAX_ARGS - the most arguments of a command, besides the CPU
 */
#define PMU_QTEST_MAX_ARGS 3

/**
 * struct PmuQtestCommand - a command of a face
 * @name: its first word
 * @nr_args: numbers that follow that of the CPU, up to PMU_QTEST_MAX_ARGS
 * @run: executes it, in the main thread with the big lock held, as if @cpu were
 *       the one that runs; answers with qtest_sendf()
 */
typedef struct PmuQtestCommand {
    const char *name;
    unsigned nr_args;
    void (*run)(CharBackend *chr, CPUState *cpu, const uint64_t *arg);
} PmuQtestCommand;

/**
 * pmu_qtest_run - run a command of a face, or one that all faces have
 * @commands: the face's, ended by one without a name
 * @chr: the device to which the answer is written
 * @words: the command and its arguments
 *
 * For a callback of qtest_add_command_cb().
 *
 * Returns: whether it was such a command.
 */
bool pmu_qtest_run(const PmuQtestCommand *commands, CharBackend *chr,
                   gchar **words);

#endif /* HW_PMU_PMU_QTEST_H */
