/*
 * Power virtual PMU
 *
 * The guest's view of the counters of hw/pmu on server processors since
 * POWER7: MMCRs, PMCs, the registers that describe a sample, the
 * performance monitor interrupt and its event-based branch.  The registers
 * are the fields of CPUPPCState.spr, as for any other register; the values of
 * the PMCs are in the model while a CPU runs.
 *
 *   freeze.c   which PMC counts in which privilege state
 *   events.c   the event that a PMC counts, per processor
 *   access.c   access to registers in problem state
 *   alert.c    conditions, the alert, SIAR and SIER, the interrupt
 *   ebb.c      event-based branches
 *   bhrb.c     the branch history rolling buffer
 *   debug.c    access by debuggers and the monitor
 *   vpmu.c     the rest: life, and counters that follow their registers
 *
 * A CPU has a virtual PMU (PowerPCCPU.vpmu) if it runs under TCG or qtest, is
 * of a supported model and was created with pmu=on, which is the default.
 * Every function below does nothing for a CPU without a virtual PMU.
 *
 * Threads: as for struct Pmu, the vCPU's own thread, or any that holds the
 * big lock while the vCPU is stopped.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef PPC_VPMU_H
#define PPC_VPMU_H

#include "qemu/cutils.h"
#include "hw/pmu/pmu-engine.h"
#include "cpu.h"
#include "kvm.h"
#include "modes.h"

#if defined(TARGET_PPC64) && defined(CONFIG_TCG) && !defined(CONFIG_USER_ONLY)

/**
 * ppc_vpmu_mode - the mode in which instructions are counted
 * @hflags: CPUPPCState.hflags, or the flags of a translation block
 */
static inline unsigned ppc_vpmu_mode(uint32_t hflags)
{
    return pmu_mode_of_flags((PmuModeFlags) PPC_VPMU_MODE_FLAGS, hflags);
}

/**
 * ppc_vpmu_configure - check the properties and fill in those not given
 * @cpu: the CPU, being realized
 * @errp: the error, and the allowed values
 *
 * Returns: false with @errp set if the combination is not allowed.
 */
bool ppc_vpmu_configure(PowerPCCPU *cpu, Error **errp);

/**
 * ppc_vpmu_create - create the PMU of a CPU, if it is to have one
 * @cpu: the CPU, configured, with its SPRs, before its thread starts
 */
void ppc_vpmu_create(PowerPCCPU *cpu);

/**
 * ppc_vpmu_destroy - release the PMU of a CPU
 * @cpu: the CPU, whose thread has ended
 */
void ppc_vpmu_destroy(PowerPCCPU *cpu);

/**
 * ppc_vpmu_mfspr - read a register of the PMU
 * @env: the CPU's state, with nip at the instruction
 * @sprn: its number; the numbers for problem state are different ones
 * @ra: the address to unwind to
 *
 * Leaves by an interrupt if the program may not read it.
 *
 * Returns: the value of the register before this instruction.
 */
uint64_t ppc_vpmu_mfspr(CPUPPCState *env, unsigned sprn, uintptr_t ra);

/**
 * ppc_vpmu_mtspr - write a register of the PMU
 * @env: the CPU's state, with nip at the instruction
 * @sprn: its number; the numbers for problem state are different ones
 * @val: the value
 * @ra: the address to unwind to
 *
 * Leaves by an interrupt if the program may not write it.
 */
void ppc_vpmu_mtspr(CPUPPCState *env, unsigned sprn, uint64_t val,
                    uintptr_t ra);

/**
 * ppc_vpmu_state_changed - handle a change of MSR[PMM] or CTRL[RUN]
 * @env: the CPU's state, changed; at the end of an instruction
 */
void ppc_vpmu_state_changed(CPUPPCState *env);

/**
 * ppc_vpmu_sibling_changed - handle a change of another thread's latch in CTRL
 * @env: the state of a thread of the same core, CTRL changed
 *
 * In any thread.
 */
void ppc_vpmu_sibling_changed(CPUPPCState *env);

/**
 * ppc_vpmu_started - handle a start by another CPU, which has set MSR and TB
 * @env: the state of the CPU, before it executes anything with these
 *
 * Forgets the branches before the start, which do not lead to the code after it
 * (pmu_observer_forget_branches()).  In any thread.
 */
void ppc_vpmu_started(CPUPPCState *env);

/**
 * ppc_vpmu_timebase_changed - handle a change of the time base
 * @env: the CPU's state
 *
 * Some alerts wait for it.
 */
void ppc_vpmu_timebase_changed(CPUPPCState *env);

/**
 * ppc_vpmu_store - bring the registers in CPUPPCState.spr up to date
 * @env: the CPU's state
 *
 * For code that reads them by other means than ppc_vpmu_mfspr().
 */
void ppc_vpmu_store(CPUPPCState *env);

/**
 * ppc_vpmu_load - take the registers in CPUPPCState.spr, which were replaced
 * @env: the CPU's state
 *
 * For hypercalls that switch guests.
 */
void ppc_vpmu_load(CPUPPCState *env);

/**
 * ppc_vpmu_reset - reset the PMU of a CPU that was reset, with its registers
 * @env: the CPU's state
 *
 * In the vCPU's own thread, or while it is stopped.
 */
void ppc_vpmu_reset(CPUPPCState *env);

/**
 * ppc_vpmu_post_load - take the CPU's state, which has been loaded
 * @cpu: the CPU
 * @errp: why the guest cannot go on here
 *
 * Returns: false with @errp set if the guest uses a PMU that is missing here.
 */
bool ppc_vpmu_post_load(PowerPCCPU *cpu, Error **errp);

/**
 * ppc_vpmu_debug_read - the value of any special purpose register
 * @env: the CPU's state
 * @sprn: the register's number; its number for problem state will do, too
 *
 * For debuggers and the monitor, which see all of it; without side effects.
 * In any thread that holds the big lock, while the CPU runs, too.
 */
uint64_t ppc_vpmu_debug_read(CPUPPCState *env, unsigned sprn);

/**
 * ppc_vpmu_debug_write - set any special purpose register
 * @env: the CPU's state
 * @sprn: the register's number, as for ppc_vpmu_debug_read()
 * @val: the value
 *
 * As if privileged code wrote all of it, with all consequences for the PMU:
 * counters start and stop, interrupts are raised.  (The other threads of a
 * core do not see a write of CTRL.)
 */
void ppc_vpmu_debug_write(CPUPPCState *env, unsigned sprn, uint64_t val);

/**
 * ppc_vpmu_update_ebb - check for a branch after a change of BESCR or MMCR0
 * @env: the CPU's state
 */
void ppc_vpmu_update_ebb(CPUPPCState *env);

/**
 * ppc_vpmu_bhrb_used - note that an instruction of the BHRB has been executed
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
 * ppc_vpmu_bhrb_entry - read an entry of the BHRB
 * @env: the CPU's state
 * @n: below BHRB_MAX_NUM_ENTRIES; 0 is the newest
 *
 * Returns: the entry, or 0.
 */
uint64_t ppc_vpmu_bhrb_entry(CPUPPCState *env, unsigned n);

/**
 * ppc_vpmu_bhrb_is_used - whether the BHRB has been used since the last reset
 * @env: the CPU's state
 */
bool ppc_vpmu_bhrb_is_used(CPUPPCState *env);

/**
 * ppc_vpmu_bhrb_store - store the entries for migration (env->bhrb)
 * @env: the CPU's state
 */
void ppc_vpmu_bhrb_store(CPUPPCState *env);

/**
 * ppc_vpmu_bhrb_load - take the entries that have been migrated
 * @env: the CPU's state, with any values that a stream may have
 */
void ppc_vpmu_bhrb_load(CPUPPCState *env);

/**
 * vmstate_ppc_vpmu - a subsection of the CPU's state, for CPUs that have one
 */
extern const VMStateDescription vmstate_ppc_vpmu;

/**
 * ppc_vpmu_far_branch - record an interrupt, an event-based branch, a return
 *                       from an interrupt, or a change of the next instruction
 *                       by a virtual hypervisor
 * @env: the CPU, in the new state
 * @from: the address of the instruction before the change
 *
 * For observers: the BHRB does not record these.  In the vCPU's own thread, or
 * while it is stopped.
 */
void ppc_vpmu_far_branch(CPUPPCState *env, uint64_t from);

/**
 * ppc_vpmu_core_dt - tell of the caches of a modelled core in a device tree
 * @cpu: the CPU, which need not have one
 * @fdt: the tree
 * @offset: the CPU's node, which has the properties of other caches already
 */
void ppc_vpmu_core_dt(const PowerPCCPU *cpu, void *fdt, int offset);

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

static inline void ppc_vpmu_core_dt(const PowerPCCPU *cpu, void *fdt,
                                    int offset)
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
