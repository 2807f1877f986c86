/*
 * Performance monitoring unit: the counters of a vCPU, and their engine
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/error-report.h"
#include "qemu/lockable.h"
#include "qemu/log.h"
#include "qapi/error.h"
#include "migration/vmstate.h"
#include "system/kvm.h"
#include "system/qtest.h"
#include "system/tcg.h"
#include "hw/pmu/pmu-cpu.h"
#include "hw/pmu/pmu-guest.h"
#include "hw/pmu/pmu-clock.h"
#include "trace.h"

bool pmu_cpu_is_emulated(void)
{
    return tcg_enabled() || qtest_enabled();
}

bool pmu_cpu_check_emulated(Error **errp)
{
    ERRP_GUARD();

    if (!pmu_cpu_is_emulated()) {
        error_setg(errp, "This accelerator does not support observing vCPUs");
        error_append_hint(errp, "Use -accel tcg.\n");
    }
    return !*errp;
}

/*
 * The model of the core
 */

/* CPUs share translated code, which writes what their cores want to see. */
static bool others_have(const CPUState *cpu, const PmuCoreModel *model)
{
    CPUState *other;

    CPU_FOREACH(other) {
        if (other != cpu && other->created
            && (other->pmu ? other->pmu->core : NULL) != model) {
            return false;
        }
    }
    return true;
}

static bool check_core(const PmuCycleProps *cycles, Error **errp)
{
    ERRP_GUARD();

    if (!pmu_cpu_is_emulated()) {
        error_setg(errp, "pmu-core is only for CPUs that TCG executes");
        error_append_hint(errp, "Use -accel tcg, or leave the property out: "
                          "the host's PMU counts.\n");
        return false;
    }
    if (cycles->cpi) {
        error_setg(errp, "pmu-cpi has no meaning with pmu-core");
        error_append_hint(errp, "The object's property insn-cycles has the "
                          "cycles of each instruction.\n");
        return false;
    }
    return true;
}

bool pmu_cpu_find_core(const CPUState *cpu, const char *id,
                       const PmuCycleProps *cycles,
                       const PmuCoreModel **model, Error **errp)
{
    ERRP_GUARD();

    *model = NULL;
    if (id && check_core(cycles, errp)) {
        *model = pmu_core_model_find(id, errp);
    }
    if (id && !*model) {
        return false;
    }
    if (!others_have(cpu, *model)) {
        error_setg(errp, "All CPUs of a machine have the same pmu-core");
        error_append_hint(errp, "Give this CPU the property of the others.\n");
        return false;
    }
    return true;
}

/*
 * Overflow
 */

void pmu_cpu_where(CPUState *cpu, uint64_t *pc, unsigned *mode)
{
    *pc = 0;
    *mode = 0;
    if (tcg_enabled()) {
        pmu_tcg_where(cpu, pc, mode);
    } else if (kvm_enabled()) {
        *pc = cpu->cc->get_pc(cpu);
        *mode = pmu_guest_ops(cpu)->kvm_mode(cpu);
    }
}

unsigned pmu_cpu_mode(CPUState *cpu)
{
    return tcg_enabled() ? pmu_tcg_mode(cpu)
           : kvm_enabled() ? pmu_guest_ops(cpu)->kvm_mode(cpu) : 0;
}

bool pmu_cpu_is_exact(const CPUState *cpu, PmuEvent event)
{
    return !tcg_enabled() || pmu_tcg_is_exact(cpu, event);
}

static void trace_overflows(const PmuCpu *unit, uint64_t counters)
{
    uint64_t pc;
    unsigned mode;

    pmu_cpu_where(unit->cpu, &pc, &mode);
    for (unsigned i = 0; i < pmu_nr_counters(unit->pmu); i++) {
        if (counters >> i & 1) {
            trace_pmu_overflow(unit->cpu->cpu_index, i,
                               pmu_peek(unit->pmu, i), pc, mode);
        }
    }
}

static void handle_overflow(void *opaque, uint64_t counters)
{
    const PmuCpu *unit = opaque;

    if (trace_event_get_state_backends(TRACE_PMU_OVERFLOW)) {
        trace_overflows(unit, counters);
    }
    unit->overflow(unit->opaque, counters);
}

/*
 * Life
 */

/*
 * Handle pending overflow before any state is saved: it may raise an interrupt,
 * which is part of the CPU's state or a device's.  If a state is loaded while
 * the machine is stopped, the clock may jump.
 */
static void machine_stopped(PmuCpu *unit)
{
    pmu_share_fold_all(unit->share);
    if (tcg_enabled()) {
        pmu_tcg_machine_stopped(unit->tcg);
    }
}

static void machine_changed(void *opaque, bool running, RunState state)
{
    if (!running) {
        machine_stopped(opaque);
    }
}

/* vCPUs do not execute in suspended machines, but the clock goes on. */
static void machine_suspended(Notifier *notifier, void *unused)
{
    machine_stopped(container_of(notifier, PmuCpu, suspended));
}

static void begin_to_follow(PmuCpu *unit)
{
    unit->changes = qemu_add_vm_change_state_handler(machine_changed, unit);
    unit->suspended.notify = machine_suspended;
    qemu_register_suspend_notifier(&unit->suspended);
}

static void end_following(PmuCpu *unit)
{
    qemu_del_vm_change_state_handler(unit->changes);
    notifier_remove(&unit->suspended);
}

void pmu_cpu_was_reset(PmuCpu *unit)
{
    if (tcg_enabled()) {
        pmu_tcg_reset(unit->tcg);
    }
}

static void create_engine(PmuCpu *unit, const PmuCycleModel *cycles,
                          const PmuCoreModel *core)
{
    unsigned nr_modes = pmu_guest_ops(unit->cpu)->nr_modes;

    if (tcg_enabled()) {
        const PmuTcgConfig config = {
            .cycles = *cycles,
            .core = core,
            .recorder = &unit->recorder,
            .outside = &unit->outside,
        };

        unit->tcg = pmu_tcg_new(unit->cpu, &config);
        unit->share = pmu_share_new(nr_modes, &pmu_tcg_ops, unit->tcg);
        pmu_tcg_set_share(unit->tcg, unit->share);
    } else {
        unit->manual = g_new0(PmuManual, 1);
        unit->share = pmu_share_new(nr_modes, &pmu_manual_ops, unit->manual);
        unit->manual->share = unit->share;
    }
}

static PmuCpu *create_unit(CPUState *cpu, const PmuCycleModel *cycles,
                           const PmuCoreModel *core)
{
    PmuCpu *unit = g_new0(PmuCpu, 1);

    unit->cpu = cpu;
    notifier_list_init(&unit->loaded);
    notifier_list_init(&unit->gone);
    create_engine(unit, cycles, core);
    begin_to_follow(unit);
    cpu->pmu = unit;
    return unit;
}

static void destroy_unit(PmuCpu *unit)
{
    unit->cpu->pmu = NULL;
    end_following(unit);
    pmu_share_free(unit->share);
    if (tcg_enabled()) {
        pmu_tcg_free(unit->tcg);
    }
    g_free(unit->manual);
    g_free(unit);
}

PmuCpu *pmu_cpu_new(CPUState *cpu, const PmuCpuConfig *config)
{
    const PmuCycleModel cycles = pmu_cycles_model(config->cycles);
    PmuCpu *unit = create_unit(cpu, &cycles, config->core);

    unit->core = config->core;
    unit->overflow = config->overflow;
    unit->opaque = config->opaque;
    unit->pmu = pmu_share_join(unit->share, config->nr_counters,
                               handle_overflow, unit);
    for (unsigned i = 0; i < config->nr_counters; i++) {
        pmu_set_shape(unit->pmu, i, config->shape);
    }
    return unit;
}

void pmu_cpu_free(CPUState *cpu)
{
    PmuCpu *unit = cpu->pmu;

    pmu_clocks_gone(cpu);
    if (unit) {
        notifier_list_notify(&unit->gone, NULL);
        if (unit->pmu) {
            pmu_share_leave(unit->share, unit->pmu);
        }
        destroy_unit(unit);
    }
}

/* A vCPU without a PMU does not have the properties of a PMU either. */
static PmuCpu *create_unit_without_face(CPUState *cpu)
{
    const PmuCycleModel cycles = { .cpi = PMU_CPI_ONE };

    return create_unit(cpu, &cycles, NULL);
}

PmuCpu *pmu_cpu_of(CPUState *cpu)
{
    return cpu->pmu ?: create_unit_without_face(cpu);
}

/*
 * Migration
 */

#ifdef CONFIG_TCG
static bool driven_by_tcg(void *opaque, int version_id)
{
    const PmuCpu *unit = opaque;

    return unit->tcg;
}

static int tallies_loaded(void *opaque, int version_id)
{
    PmuCpu *unit = opaque;

    if (driven_by_tcg(unit, version_id)) {
        notifier_list_notify(&unit->loaded, NULL);
    }
    return 0;
}
#endif

const VMStateDescription vmstate_pmu_engine = {
    .name = "pmu-engine",
    .version_id = 1,
    .minimum_version_id = 1,
#ifdef CONFIG_TCG
    .post_load = tallies_loaded,
#endif
    .fields = (const VMStateField[]) {
#ifdef CONFIG_TCG
        VMSTATE_STRUCT_POINTER_TEST(tcg, PmuCpu, driven_by_tcg,
                                    vmstate_pmu_tcg, PmuTcg),
#endif
        VMSTATE_END_OF_LIST()
    }
};

int pmu_cpu_check_load(bool present)
{
    if (!present) {
        error_report("The source's CPU has a PMU and this one does not; "
                     "add pmu=on.");
        return -EINVAL;
    }
    return 0;
}

/*
 * Log
 */

static QemuMutex log_lock;

static void __attribute__((constructor)) init_log_lock(void)
{
    qemu_mutex_init(&log_lock);
}

bool pmu_log_once(uint32_t what)
{
    static GHashTable *logged;

    if (!qemu_loglevel_mask(LOG_UNIMP)) {
        return false;
    }
    QEMU_LOCK_GUARD(&log_lock);
    if (!logged) {
        logged = g_hash_table_new(NULL, NULL);
    }
    return g_hash_table_add(logged, GUINT_TO_POINTER(what));
}
