/*
 * Performance monitoring unit: commands of the qtest protocol
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/cutils.h"
#include "system/qtest.h"
#include "hw/pmu/pmu-cpu.h"
#include "hw/pmu/pmu-guest.h"
#include "hw/pmu/pmu-monitor.h"
#include "hw/pmu/pmu-qtest.h"

static PmuManual *manual_engine(CPUState *cpu)
{
    return cpu->pmu ? cpu->pmu->manual : NULL;
}

static void cmd_count(CharBackend *chr, CPUState *cpu, const uint64_t *arg)
{
    if (!manual_engine(cpu) || arg[0] >= PMU_TALLY__MAX
        || arg[1] >= pmu_guest_ops(cpu)->nr_modes) {
        qtest_sendf(chr, "FAIL no such tally or mode\n");
        return;
    }
    pmu_manual_count(manual_engine(cpu), arg[0], arg[1], arg[2]);
    qtest_sendf(chr, "OK\n");
}

static void cmd_wanted(CharBackend *chr, CPUState *cpu, const uint64_t *arg)
{
    if (!manual_engine(cpu)) {
        qtest_sendf(chr, "FAIL not driven by hand\n");
        return;
    }
    qtest_sendf(chr, "OK 0x%" PRIx64 "\n", manual_engine(cpu)->wanted);
}

/* Act as if a host had taken counters away. */
static void cmd_lost(CharBackend *chr, CPUState *cpu, const uint64_t *arg)
{
    pmu_emit_lost(cpu, arg[0], arg[1]);
    qtest_sendf(chr, "OK\n");
}

static const PmuQtestCommand shared_commands[] = {
    { "vpmu_count", 3, cmd_count },
    { "vpmu_wanted", 0, cmd_wanted },
    { "vpmu_lost", 2, cmd_lost },
    { }
};

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

/* A command with its arguments, on its way to the CPU */
typedef struct Call {
    const PmuQtestCommand *command;
    CharBackend *chr;
    uint64_t arg[PMU_QTEST_MAX_ARGS];
} Call;

static void run_on_its_cpu(CPUState *cpu, run_on_cpu_data data)
{
    Call *call = data.host_ptr;

    call->command->run(call->chr, cpu, call->arg);
}

/*
 * In the CPU's own thread, as an instruction would be, and after all work that
 * the thread was given before: so a test sees exactly the effects of events
 * until then.
 */
bool pmu_qtest_run(const PmuQtestCommand *commands, CharBackend *chr,
                   gchar **words)
{
    Call call = {
        .command = find(commands, words[0])
                   ?: find(shared_commands, words[0]),
        .chr = chr,
    };
    CPUState *cpu;

    if (!call.command) {
        return false;
    }
    cpu = parse_args(words + 1, call.command->nr_args, call.arg);
    if (cpu) {
        run_on_cpu(cpu, run_on_its_cpu, RUN_ON_CPU_HOST_PTR(&call));
    } else {
        qtest_sendf(chr, "FAIL no such CPU, or bad arguments\n");
    }
    return true;
}
