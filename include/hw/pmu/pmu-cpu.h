/*
 * Performance monitoring unit: the counters of a vCPU, and their engine
 *
 * A face describes its counters.  Common to all faces are these: the engine
 * follows the accelerator, the counters are brought up to date whenever the
 * machine stops, and the engine's tallies migrate.  A CPU that has no face
 * has counters while it is observed (hw/pmu/pmu-observer.h).
 *
 * Under TCG, translated code drives the counters.  Under all other accelerators
 * the engine is the one of pmu-manual.h.  Under qtest, tests drive it.  Under
 * KVM nothing drives it, because the kernel counts: the counters hold the
 * values last read from the kernel and do not advance.
 *
 * For code that is compiled per target.
 *
 * Threads: as for struct Pmu.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PMU_CPU_H
#define HW_PMU_PMU_CPU_H

#include "hw/core/cpu.h"
#include "hw/pmu/pmu.h"
#include "hw/pmu/pmu-cycles.h"
#include "hw/pmu/pmu-manual.h"
#include "hw/pmu/pmu-recorder.h"
#include "hw/pmu/pmu-share.h"
#include "hw/pmu/pmu-tcg.h"
#include "system/runstate.h"

/**
 * struct PmuCpuConfig - a face's description of its counters
 * @nr_counters: as for pmu_new()
 * @shape: the shape of every counter
 * @cycles: the user's properties, configured
 * @core: the model of the vCPU's core, or NULL
 * @overflow: as for pmu_new()
 * @opaque: likewise
 */
typedef struct PmuCpuConfig {
    unsigned nr_counters;
    PmuCounterShape shape;
    const PmuCycleProps *cycles;
    const PmuCoreModel *core;
    PmuOverflowFn *overflow;
    void *opaque;
} PmuCpuConfig;

/**
 * struct PmuCpu - the counters of a vCPU, and their engine
 * @cpu: the vCPU
 * @share: the engine, shared by guest and observers
 * @pmu: the guest's counters; NULL if it has no PMU
 * @observers: the observers' counters (pmu-observer.c); NULL if there are no
 *             observers
 * @tcg: the engine, under TCG; otherwise NULL
 * @manual: the engine, under all other accelerators; otherwise NULL
 * @core: the model of the vCPU's core, or NULL
 * @recorder: the last branches, while the guest's PMU records them
 * @outside: all of the last branches, while an observer asks for them
 * @overflow: the face's handler
 * @opaque: its argument
 * @changes: called when the machine starts and stops
 * @suspended: called when it is suspended to RAM
 * @loaded: called when the engine's tallies were loaded
 * @gone: called before the counters go away
 */
typedef struct PmuCpu {
    CPUState *cpu;
    PmuShare *share;
    Pmu *pmu;
    struct PmuObservers *observers;
    PmuTcg *tcg;
    PmuManual *manual;
    const PmuCoreModel *core;
    PmuRecorder recorder;
    PmuRecorder outside;
    PmuOverflowFn *overflow;
    void *opaque;
    VMChangeStateEntry *changes;
    Notifier suspended;
    NotifierList loaded;
    NotifierList gone;
} PmuCpu;

/**
 * pmu_cpu_is_emulated - whether QEMU, not the kernel, emulates the vCPUs' PMU
 */
bool pmu_cpu_is_emulated(void);

/**
 * pmu_cpu_check_emulated - check that QEMU can see what vCPUs execute
 * @errp: why it cannot, with a hint
 *
 * Returns: pmu_cpu_is_emulated()
 */
bool pmu_cpu_check_emulated(Error **errp);

/**
 * pmu_cpu_find_core - find the model of a vCPU's core
 * @cpu: the vCPU
 * @id: the ID of the object that the user has given, or NULL
 * @cycles: the properties about cycles, as given
 * @model: set to the model; NULL without @id
 * @errp: why the vCPU cannot have it, with a hint
 *
 * Returns: false with @errp set if it cannot.
 */
bool pmu_cpu_find_core(const CPUState *cpu, const char *id,
                       const PmuCycleProps *cycles,
                       const PmuCoreModel **model, Error **errp);

/**
 * pmu_cpu_new - create the counters of a guest's vCPU
 * @cpu: the vCPU, before its thread starts; its pmu field is set
 * @config: the description of the counters; copied
 */
PmuCpu *pmu_cpu_new(CPUState *cpu, const PmuCpuConfig *config);

/**
 * pmu_cpu_free - take all counters away
 * @cpu: the vCPU, whose thread has ended; it need not have any
 *
 * Calls @gone of the struct PmuCpu, and thus that of each observer.
 */
void pmu_cpu_free(CPUState *cpu);

/**
 * pmu_cpu_was_reset - handle the reset of a vCPU, which may have halted it
 * @unit: its counters, which the face has reset
 */
void pmu_cpu_was_reset(PmuCpu *unit);

/**
 * pmu_cpu_of - the counters of a vCPU, of the guest or of others
 * @cpu: the vCPU, in its thread with the big lock held
 *
 * Returns: CPUState.pmu.  A vCPU without a PMU gets one, with an engine only,
 * and keeps it.
 */
PmuCpu *pmu_cpu_of(CPUState *cpu);

/**
 * pmu_cpu_where - where a vCPU is, as far as counters are concerned
 * @cpu: the vCPU, in its thread between instructions
 * @pc: set to the address of the instruction
 * @mode: set to the mode of that
 *
 * As pmu_tcg_where(); both are 0 where nothing is executed.  Under KVM only for
 * samplers of time, where the vCPU was left and will go on.
 */
void pmu_cpu_where(CPUState *cpu, uint64_t *pc, unsigned *mode);

/**
 * pmu_cpu_mode - the mode in which a vCPU goes on
 * @cpu: the vCPU, in its thread between instructions
 *
 * Returns: 0 where nothing is executed.
 */
unsigned pmu_cpu_mode(CPUState *cpu);

/**
 * pmu_cpu_is_exact - whether pmu_cpu_where() returns the exact instruction
 * @cpu: a vCPU
 * @event: the event that overflows
 *
 * In any thread.
 */
bool pmu_cpu_is_exact(const CPUState *cpu, PmuEvent event);

/**
 * vmstate_pmu_engine - the migration state of the engine of a struct PmuCpu
 *
 * To be loaded before pmu_rebase() is called for the guest's Pmu.
 */
extern const VMStateDescription vmstate_pmu_engine;

/**
 * pmu_cpu_check_load - the result of VMStateDescription.pre_load of a PMU
 * @present: the CPU has a PMU that can take the state
 *
 * Returns: 0, or -EINVAL, after a message to the user, if it has no such PMU.
 */
int pmu_cpu_check_load(bool present);

/**
 * pmu_log_once - whether to log something that is not emulated
 * @what: a number for it, given by the face
 *
 * In any thread.
 *
 * Returns: true if the user asks for it (-d unimp) and no vCPU has logged this
 * number yet.
 */
bool pmu_log_once(uint32_t what);

#endif /* HW_PMU_PMU_CPU_H */
