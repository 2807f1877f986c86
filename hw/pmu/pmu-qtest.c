/*
 * Performance monitoring unit: commands of the qtest protocol
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/cutils.h"
#include "system/qtest.h"
#include "hw/pmu/pmu-manual.h"
#include "hw/pmu/pmu-qtest.h"

static PmuManual *engine_of(CPUState *cpu)
{
    return cpu->pmu && cpu->pmu->ops == &pmu_manual_ops ? cpu->pmu->engine
                                                        : NULL;
}

static void cmd_count(CharBackend *chr, CPUState *cpu, const uint64_t *arg)
{
    if (!engine_of(cpu) || arg[0] >= PMU_TALLY__MAX
        || arg[1] >= cpu->pmu->nr_modes) {
        qtest_sendf(chr, "FAIL no such tally or mode\n");
        return;
    }
    pmu_manual_count(cpu->pmu, arg[0], arg[1], arg[2]);
    qtest_sendf(chr, "OK\n");
}

static void cmd_wanted(CharBackend *chr, CPUState *cpu, const uint64_t *arg)
{
    if (!engine_of(cpu)) {
        qtest_sendf(chr, "FAIL not driven by hand\n");
        return;
    }
    qtest_sendf(chr, "OK 0x%x\n", engine_of(cpu)->wanted);
}

static const PmuQtestCommand shared_commands[] = {
    { "vpmu_count", 3, cmd_count },
    { "vpmu_wanted", 0, cmd_wanted },
    { }
};

static const PmuQtestCommand *face_commands;

static const PmuQtestCommand *find(const PmuQtestCommand *commands,
                                   const char *name)
{
    for (; commands->name; commands++) {
        if (g_str_equal(commands->name, name)) {
            return commands;
        }
    }
    return NULL;
}

/* Returns the CPU named by the first word, or NULL if the words are wrong. */
static CPUState *parse_args(gchar **words, unsigned nr_args, uint64_t *arg)
{
    unsigned index;

    if (g_strv_length(words) < 1 + nr_args
        || qemu_strtoui(words[0], NULL, 0, &index) < 0) {
        return NULL;
    }
    for (unsigned i = 0; i < nr_args; i++) {
        if (qemu_strtou64(words[1 + i], NULL, 0, &arg[i]) < 0) {
            return NULL;
        }
    }
    return qemu_get_cpu(index);
}

static bool run_command(CharBackend *chr, gchar **words)
{
    const PmuQtestCommand *command = find(face_commands, words[0])
                                     ?: find(shared_commands, words[0]);
    uint64_t arg[PMU_QTEST_MAX_ARGS];
    CPUState *caller = current_cpu;
    CPUState *cpu;

    if (!command) {
        return false;
    }
    cpu = parse_args(words + 1, command->nr_args, arg);
    if (!cpu) {
        qtest_sendf(chr, "FAIL no such CPU, or bad arguments\n");
        return true;
    }
    /* Some registers, of the local APIC, are those of the CPU that asks. */
    current_cpu = cpu;
    command->run(chr, cpu, arg);
    current_cpu = caller;
    return true;
}

void pmu_qtest_init(const PmuQtestCommand *commands)
{
    if (!face_commands) {
        face_commands = commands;
        qtest_add_command_cb(run_command);
    }
}
