/*
 * Suite machine: the library itself, without a PMU
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"

CODE("machine_states:\n"
     "    addi r3, r3, 1\n"
     "    blr\n");
code_fn machine_states;

TEST(machine, states)
{
    static const uint64_t states[] = {
        STATE_HV, STATE_PRIV, STATE_PROBLEM, STATE_HV_PROBLEM,
    };

    for (unsigned i = 0; i < ARRAY_SIZE(states); i++) {
        expect(run(MMCR0_FC, states[i], machine_states, i), i + 1,
               "state %u: result", i);
        expect(read_msr() | MSR_RI, STATE_HV, "state %u: MSR afterwards", i);
    }
}

TEST(machine, steps)
{
    expect(count_steps(STATE_PROBLEM, machine_states, 0), 2, "steps");
    expect(step_trace[0], (uint64_t)machine_states + 4, "first");
    expect(step_trace[1], (uint64_t)run_return, "second");
    expect(count_steps(STATE_HV, machine_states, 0), 2, "hypervisor's steps");
    expect(count_steps(STATE_PRIV, machine_states, 0), 2, "privileged steps");
}

static uint64_t trapped_at, trapped_msr, trapped_by;

static void note_trap(struct regs *regs)
{
    trapped_at = regs->nip;
    trapped_msr = regs->msr;
    trapped_by = regs->vector;
    regs->nip += 4;
}

CODE("machine_load:\n"
     "    nop\n"
     "machine_loading:\n"
     "    ld r3, 0(r3)\n"
     "    blr\n");
code_fn machine_load;
LABEL(machine_loading);

TEST(machine, unmapped)
{
    static const uint64_t states[] = { STATE_PROBLEM, STATE_HV_PROBLEM };

    on_trap(VEC_DATA, note_trap);
    on_trap(VEC_HV_DATA, note_trap);
    for (unsigned i = 0; i < ARRAY_SIZE(states); i++) {
        run(MMCR0_FC, states[i], machine_load, UNMAPPED);
        expect(trapped_by, VEC_DATA, "state %u: vector", i);
        expect(trapped_at, (uint64_t)machine_loading, "state %u: address", i);
        expect(trapped_msr & (MSR_PR | MSR_HV), states[i] & (MSR_PR | MSR_HV),
               "state %u: MSR", i);
    }
    run(MMCR0_FC, STATE_PRIV, machine_load, UNMAPPED);
    expect(trapped_by, VEC_HV_DATA, "guest real address: vector");
    expect(trapped_at, (uint64_t)machine_loading, "guest real address");
}

CODE("machine_call:\n"
     "    sc\n"
     "    addi r3, r3, 1\n"
     "    blr\n");
code_fn machine_call;

static void double_argument(struct regs *regs)
{
    regs->gpr[3] *= 2;
}

TEST(machine, system_call)
{
    on_trap(VEC_SYSCALL, double_argument);
    expect(run(MMCR0_FC, STATE_PROBLEM, machine_call, 21), 43, "problem");
    expect(run(MMCR0_FC, STATE_HV, machine_call, 4), 9, "hypervisor");
}
