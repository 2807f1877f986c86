/*
 * Power virtual PMU: commands of the qtest protocol
 *
 * Guest code does not run under qtest, so a test has no way to execute mfspr
 * and the like.  These commands do to a CPU what the instructions would:
 *
 *   vpmu_mfspr CPU SPR             OK ok VALUE | OK hvfu | OK fu | OK hea
 *   vpmu_mtspr CPU SPR VALUE       OK ok | OK hvfu | OK fu | OK hea
 *   vpmu_msr CPU VALUE             OK MODE          sets MSR, HV included
 *   vpmu_run CPU 0|1               OK               writes CTRL[RUN]
 *   vpmu_pending CPU               OK PERFM EBB     interrupts pending, 0 or 1
 *   vpmu_hcall CPU NR ARG1 ARG2    OK R3 R4         a call of the hypervisor
 *
 * SPR is a register of the PMU, HFSCR, or a register of event-based
 * branches; hvfu, fu and hea are the interrupts that an access would cause.
 * MODE is the mode in which instructions are counted then.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "cpu.h"
#include "exec/helper-proto.h"
#include "helper_regs.h"
#include "system/qtest.h"
#include "hw/pmu/pmu-qtest.h"
#include "internal.h"

static const char *const outcome[] = {
    [PPC_VPMU_ALLOWED] = "ok",
    [PPC_VPMU_HV_UNAVAILABLE] = "hvfu",
    [PPC_VPMU_UNAVAILABLE] = "fu",
    [PPC_VPMU_ILLEGAL] = "hea",
};

/* Whether a register is simply stored in CPUPPCState.spr */
static bool is_plain(unsigned sprn)
{
    return sprn == SPR_HFSCR || sprn == SPR_BESCR || sprn == SPR_EBBHR
           || sprn == SPR_EBBRR;
}

static PpcVPmuAccess test_access(PowerPCCPU *cpu, unsigned sprn, bool write)
{
    return is_plain(sprn) ? PPC_VPMU_ALLOWED
                          : ppc_vpmu_check_access(&cpu->env, sprn, write);
}

static void cmd_mfspr(CharBackend *chr, CPUState *cs, const uint64_t *arg)
{
    PowerPCCPU *cpu = POWERPC_CPU(cs);
    PpcVPmuAccess access = test_access(cpu, arg[0], false);
    uint64_t val = 0;

    if (access != PPC_VPMU_ALLOWED) {
        qtest_sendf(chr, "OK %s\n", outcome[access]);
        return;
    }
    if (is_plain(arg[0])) {
        val = cpu->env.spr[arg[0]];
    } else if (cpu->vpmu) {
        val = ppc_vpmu_read(cpu->vpmu, arg[0]);
    }
    qtest_sendf(chr, "OK ok 0x%" PRIx64 "\n", val);
}

static void cmd_mtspr(CharBackend *chr, CPUState *cs, const uint64_t *arg)
{
    PowerPCCPU *cpu = POWERPC_CPU(cs);
    PpcVPmuAccess access = test_access(cpu, arg[0], true);

    if (is_plain(arg[0])) {
        cpu->env.spr[arg[0]] = arg[1];
        ppc_vpmu_update_ebb(&cpu->env);
    } else if (access == PPC_VPMU_ALLOWED && cpu->vpmu) {
        ppc_vpmu_write(cpu->vpmu, arg[0], arg[1]);
    }
    qtest_sendf(chr, "OK %s\n", outcome[access]);
}

static void cmd_msr(CharBackend *chr, CPUState *cs, const uint64_t *arg)
{
    PowerPCCPU *cpu = POWERPC_CPU(cs);

    cpu->env.msr = arg[0] & cpu->env.msr_mask;
    hreg_compute_hflags(&cpu->env);
    ppc_vpmu_state_changed(&cpu->env);
    qtest_sendf(chr, "OK %u\n", ppc_vpmu_mode(cpu->env.hflags));
}

static void cmd_run(CharBackend *chr, CPUState *cs, const uint64_t *arg)
{
    CPUPPCState *env = cpu_env(cs);

    if (env->flags & POWERPC_FLAG_SMT_1LPAR) {
        helper_spr_write_CTRL(env, SPR_CTRL, arg[0]);
    } else {
        env->spr[SPR_CTRL] = arg[0] ? CTRL_ALONE : 0;
    }
    ppc_vpmu_state_changed(env);
    qtest_sendf(chr, "OK\n");
}

static void cmd_pending(CharBackend *chr, CPUState *cs, const uint64_t *arg)
{
    PowerPCCPU *cpu = POWERPC_CPU(cs);
    uint32_t pending = cpu->env.pending_interrupts;

    qtest_sendf(chr, "OK %d %d\n", !!(pending & PPC_INTERRUPT_PERFM),
                !!(pending & PPC_INTERRUPT_EBB));
}

static void cmd_hcall(CharBackend *chr, CPUState *cs, const uint64_t *arg)
{
    PowerPCCPU *cpu = POWERPC_CPU(cs);
    CPUPPCState *env = &cpu->env;

    if (!cpu->vhyp) {
        qtest_sendf(chr, "FAIL no hypervisor\n");
        return;
    }
    env->gpr[3] = arg[0];
    env->gpr[4] = arg[1];
    env->gpr[5] = arg[2];
    PPC_VIRTUAL_HYPERVISOR_GET_CLASS(cpu->vhyp)->hypercall(cpu->vhyp, cpu);
    qtest_sendf(chr, "OK %" PRId64 " 0x%" PRIx64 "\n", (int64_t)env->gpr[3],
                (uint64_t)env->gpr[4]);
}

static const PmuQtestCommand commands[] = {
    { "vpmu_mfspr", 1, cmd_mfspr },
    { "vpmu_mtspr", 2, cmd_mtspr },
    { "vpmu_msr", 1, cmd_msr },
    { "vpmu_run", 1, cmd_run },
    { "vpmu_pending", 0, cmd_pending },
    { "vpmu_hcall", 3, cmd_hcall },
    { }
};

static bool run_command(CharBackend *chr, gchar **words)
{
    return pmu_qtest_run(commands, chr, words);
}

void ppc_vpmu_qtest_init(void)
{
    qtest_add_command_cb(run_command);
}
