/*
 * Power virtual PMU
 *
 * The guest's view of the counters of hw/pmu on server processors since
 * POWER7: MMCRs, PMCs, the registers that tell about a sample, the
 * performance monitor interrupt and its event-based branch.  The registers
 * are the fields of CPUPPCState.spr, as for any other register; the values of
 * the PMCs are in the model while a CPU runs.
 *
 *   freeze.c   which PMC counts in which privilege state
 *   events.c   what a PMC counts, per processor
 *   access.c   what a program may read and write
 *   alert.c    conditions, the alert, SIAR and SIER, the interrupt
 *   ebb.c      event-based branches
 *   bhrb.c     the branch history rolling buffer
 *   debug.c    what debuggers and the monitor read and write
 *   vpmu.c     the rest: life, and counters that follow their registers
 *
 * A CPU has a virtual PMU (PowerPCCPU.vpmu) if it runs under TCG or qtest, is
 * of a kind that has one and was created with pmu=on, which is the default.
 * Every function below does nothing for a CPU that has none.
 *
 * Threads: as for struct Pmu, the vCPU's own thread, or any that holds the
 * big lock while the vCPU is stopped.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef PPC_VPMU_H
#define PPC_VPMU_H

#include "qemu/cutils.h"
#include "cpu.h"
#include "kvm.h"
#include "modes.h"

#if defined(TARGET_PPC64) && defined(CONFIG_TCG) && !defined(CONFIG_USER_ONLY)

/**
 * ppc_vpmu_mode - the mode in which instructions are counted
 * @hflags: CPUPPCState.hflags, or the flags of a translation block
 *
 * HFLAGS_HV is of no use: it is set where there is no hypervisor mode.
 */
static inline unsigned ppc_vpmu_mode(uint32_t hflags)
{
    unsigned idx = hflags >> HFLAGS_DMMU_IDX;

    return (idx & 1 ? PPC_VPMU_MODE_PRIVILEGED : 0)
           | (idx & 4 ? PPC_VPMU_MODE_HV : 0);
}

/**
 * ppc_vpmu_configure - check the properties and fill in those not given
 * @cpu: the CPU, being realized
 * @errp: what is wrong, and what is allowed
 *
 * Returns: false with @errp set if the combination cannot be had.
 */
bool ppc_vpmu_configure(PowerPCCPU *cpu, Error **errp);

/**
 * ppc_vpmu_create - give a CPU its PMU, if it is to have one
 * @cpu: the CPU, configured, with its SPRs, before its thread starts
 */
void ppc_vpmu_create(PowerPCCPU *cpu);

/**
 * ppc_vpmu_destroy - take it away again
 * @cpu: the CPU, whose thread has ended
 */
void ppc_vpmu_destroy(PowerPCCPU *cpu);

/**
 * ppc_vpmu_mfspr - read a register of the PMU
 * @env: the CPU's state, with nip at the instruction
 * @sprn: its number; those for problem state are other numbers
 * @ra: where to unwind to
 *
 * Leaves by an interrupt if the program may not read it.
 *
 * Returns: what the register held before this instruction.
 */
uint64_t ppc_vpmu_mfspr(CPUPPCState *env, unsigned sprn, uintptr_t ra);

/**
 * ppc_vpmu_mtspr - write a register of the PMU
 * @env: the CPU's state, with nip at the instruction
 * @sprn: its number; those for problem state are other numbers
 * @val: the value
 * @ra: where to unwind to
 *
 * Leaves by an interrupt if the program may not write it.
 */
void ppc_vpmu_mtspr(CPUPPCState *env, unsigned sprn, uint64_t val,
                    uintptr_t ra);

/**
 * ppc_vpmu_state_changed - MSR[PMM] or CTRL[RUN] may have changed
 * @env: the CPU's state, changed; at the end of an instruction
 */
void ppc_vpmu_state_changed(CPUPPCState *env);

/**
 * ppc_vpmu_sibling_changed - another thread has changed what CTRL shows of it
 * @env: the state of a thread of the same core, CTRL changed
 *
 * In any thread.
 */
void ppc_vpmu_sibling_changed(CPUPPCState *env);

/**
 * ppc_vpmu_started - another CPU has given this one an MSR and a time base
 * @env: the state of the CPU, which has not executed anything with these
 *
 * What it executed before does not lead to what it executes now
 * (pmu_observer_forget_branches()).  In any thread.
 */
void ppc_vpmu_started(CPUPPCState *env);

/**
 * ppc_vpmu_timebase_changed - the time base has been set
 * @env: the CPU's state
 *
 * Some alerts wait for it.
 */
void ppc_vpmu_timebase_changed(CPUPPCState *env);

/**
 * ppc_vpmu_store - bring the registers in CPUPPCState.spr up to date
 * @env: the CPU's state
 *
 * For whoever reads them by other means than ppc_vpmu_mfspr().
 */
void ppc_vpmu_store(CPUPPCState *env);

/**
 * ppc_vpmu_load - the registers in CPUPPCState.spr have been replaced
 * @env: the CPU's state
 *
 * For hypercalls that switch guests.
 */
void ppc_vpmu_load(CPUPPCState *env);

/**
 * ppc_vpmu_reset - the CPU has been reset, with its registers
 * @env: the CPU's state
 *
 * In the vCPU's own thread, or while it is stopped.
 */
void ppc_vpmu_reset(CPUPPCState *env);

/**
 * ppc_vpmu_post_load - the CPU's state has been loaded
 * @cpu: the CPU
 * @errp: why the guest cannot go on here
 *
 * Returns: false with @errp set if the guest uses a PMU, and has none here.
 */
bool ppc_vpmu_post_load(PowerPCCPU *cpu, Error **errp);

/**
 * ppc_vpmu_debug_read - what any special purpose register holds now
 * @env: the CPU's state
 * @sprn: the register's number; that for problem state will do, too
 *
 * For debuggers and the monitor, which see all of it; nothing happens by that.
 * In any thread that holds the big lock, while the CPU runs, too.
 */
uint64_t ppc_vpmu_debug_read(CPUPPCState *env, unsigned sprn);

/**
 * ppc_vpmu_debug_write - set any special purpose register
 * @env: the CPU's state
 * @sprn: the register's number, as for ppc_vpmu_debug_read()
 * @val: the value
 *
 * As if privileged code wrote all of it, with what follows from that for the
 * PMU: counters start and stop, interrupts are raised.  (The other threads of a
 * core do not see a write of CTRL.)
 */
void ppc_vpmu_debug_write(CPUPPCState *env, unsigned sprn, uint64_t val);

/**
 * ppc_vpmu_update_ebb - BESCR or MMCR0 has changed: is a branch due?
 * @env: the CPU's state
 */
void ppc_vpmu_update_ebb(CPUPPCState *env);

/**
 * ppc_vpmu_bhrb_used - an instruction of the BHRB has been executed
 * @env: the CPU's state
 *
 * Branches may be recorded from the next one on: the flags of the blocks to
 * come can have changed.
 */
void ppc_vpmu_bhrb_used(CPUPPCState *env);

/**
 * ppc_vpmu_bhrb_clear - forget all branches
 * @env: the CPU's state
 */
void ppc_vpmu_bhrb_clear(CPUPPCState *env);

/**
 * ppc_vpmu_bhrb_entry - an entry of the BHRB
 * @env: the CPU's state
 * @n: below BHRB_MAX_NUM_ENTRIES; 0 is the newest
 *
 * Returns: the entry; 0 if there is none.
 */
uint64_t ppc_vpmu_bhrb_entry(CPUPPCState *env, unsigned n);

/**
 * ppc_vpmu_bhrb_is_used - has the BHRB been used since the CPU was reset?
 * @env: the CPU's state
 */
bool ppc_vpmu_bhrb_is_used(CPUPPCState *env);

/**
 * ppc_vpmu_bhrb_store - put the entries where they are migrated (env->bhrb)
 * @env: the CPU's state
 */
void ppc_vpmu_bhrb_store(CPUPPCState *env);

/**
 * ppc_vpmu_bhrb_load - take the entries that have been migrated
 * @env: the CPU's state, with whatever a stream may have
 */
void ppc_vpmu_bhrb_load(CPUPPCState *env);

/**
 * vmstate_ppc_vpmu - a subsection of the CPU's state, for CPUs that have one
 */
extern const VMStateDescription vmstate_ppc_vpmu;

/**
 * ppc_vpmu_far_branch - an interrupt, an event-based branch, a return from an
 *                       interrupt, or a virtual hypervisor has changed what
 *                       comes next
 * @env: the CPU, in the new state
 * @from: the address of the instruction that it came at
 *
 * For those who look from outside: the BHRB has none of them.  In the vCPU's
 * own thread, or while it is stopped.
 */
void ppc_vpmu_far_branch(CPUPPCState *env, uint64_t from);

#else /* no virtual PMU in this executable */

static inline bool ppc_vpmu_configure(PowerPCCPU *cpu, Error **errp)
{
#if defined(TARGET_PPC64) && defined(CONFIG_KVM) && !defined(CONFIG_USER_ONLY)
    return ppc_vpmu_kvm_configure(cpu, errp);
#else
    return true;
#endif
}

static inline void ppc_vpmu_create(PowerPCCPU *cpu)
{
}

static inline void ppc_vpmu_destroy(PowerPCCPU *cpu)
{
}

static inline void ppc_vpmu_state_changed(CPUPPCState *env)
{
}

static inline void ppc_vpmu_far_branch(CPUPPCState *env, uint64_t from)
{
}

static inline void ppc_vpmu_sibling_changed(CPUPPCState *env)
{
}

static inline void ppc_vpmu_started(CPUPPCState *env)
{
}

static inline void ppc_vpmu_timebase_changed(CPUPPCState *env)
{
}

static inline void ppc_vpmu_store(CPUPPCState *env)
{
}

static inline bool ppc_vpmu_bhrb_is_used(CPUPPCState *env)
{
    return false;
}

static inline void ppc_vpmu_bhrb_store(CPUPPCState *env)
{
}

static inline void ppc_vpmu_bhrb_load(CPUPPCState *env)
{
}

static inline void ppc_vpmu_load(CPUPPCState *env)
{
}

static inline void ppc_vpmu_reset(CPUPPCState *env)
{
}

static inline bool ppc_vpmu_post_load(PowerPCCPU *cpu, Error **errp)
{
    return true;
}

static inline uint64_t ppc_vpmu_debug_read(CPUPPCState *env, unsigned sprn)
{
    return env->spr[sprn];
}

static inline void ppc_vpmu_debug_write(CPUPPCState *env, unsigned sprn,
                                        uint64_t val)
{
    env->spr[sprn] = val;
}

#endif

#endif /* PPC_VPMU_H */
