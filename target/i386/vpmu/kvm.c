/*
 * x86 virtual PMU: under KVM
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include <linux/kvm.h>
#include "qapi/error.h"
#include "qemu/bitops.h"
#include "qemu/error-report.h"
#include "system/kvm_int.h"
#include "hw/pmu/pmu-host.h"
#include "hw/pmu/pmu-clock.h"
#include "kvm/kvm_i386.h"
#include "sev.h"
#include "debugctl.h"
#include "internal.h"
#include "kvm.h"
#include "pebs.h"
#include "trace.h"

/*
 * Capability
 */

/* Kernels without the parameter always have a PMU for guests. */
static bool read_from_module(void)
{
    g_autofree char *value = NULL;

    return !g_file_get_contents(KVM_ENABLE_PMU, &value, NULL, NULL)
           || value[0] != 'N';
}

/* QEMU may have another root directory by the time that a CPU is plugged. */
static bool enabled_in_module(void)
{
    static OnOffAuto enabled = ON_OFF_AUTO_AUTO;

    if (enabled == ON_OFF_AUTO_AUTO) {
        enabled = read_from_module() ? ON_OFF_AUTO_ON : ON_OFF_AUTO_OFF;
    }
    return enabled == ON_OFF_AUTO_ON;
}

static uint32_t host_leaf(uint32_t leaf, int reg)
{
    return kvm_arch_get_supported_cpuid(kvm_state, leaf, 0, reg);
}

X86VPmuShape x86_vpmu_kvm_intel_shape(void)
{
    uint32_t eax = host_leaf(0xa, R_EAX);
    uint32_t edx = host_leaf(0xa, R_EDX);
    uint32_t version = extract32(eax, 0, 8);

    return (X86VPmuShape) {
        .version = MIN(version, X86_VPMU_MAX_KVM_VERSION),
        .nr_gp = MIN(extract32(eax, 8, 8), X86_VPMU_MAX_GP),
        .nr_fixed = MIN(extract32(edx, 0, 5), MAX_FIXED_COUNTERS),
    };
}

/* KVM's PMU is of the host's vendor, whatever CPU the guest sees. */
static bool host_is_amd(void)
{
    return x86_vpmu_is_amd(host_leaf(0, R_EBX), host_leaf(0, R_EDX),
                           host_leaf(0, R_ECX));
}

static bool host_has_amd_pmu(const X86CPU *cpu)
{
    return enabled_in_module() && x86_vpmu_shown_as_amd(cpu) && host_is_amd();
}

bool x86_vpmu_kvm_host_has_pmu(const X86CPU *cpu)
{
    return host_has_amd_pmu(cpu)
           || (enabled_in_module() && x86_vpmu_kvm_intel_shape().version > 0);
}

/*
 * The kernel's PMU is the machine's, not the vCPU's, and cannot be disabled
 * any more once there is a vCPU.
 */
static bool is_settled(OnOffAuto as)
{
    return kvm_state->guest_pmu == as;
}

/* Guests of all vendors find Intel's registers by CPUID leaf 0xA. */
static bool has_intel_registers(const X86CPU *cpu)
{
    return cpu->enable_pmu && cpu->env.cpuid_level >= 0xa
           && enabled_in_module() && x86_vpmu_kvm_intel_shape().version > 0;
}

const X86VPmuOps *x86_vpmu_kvm_ops(const X86CPU *cpu)
{
    return has_intel_registers(cpu) ? &intel_vpmu_ops
           : host_has_amd_pmu(cpu) && !is_settled(ON_OFF_AUTO_OFF)
             ? &amd_vpmu_ops
           : NULL;
}

/*
 * Policy
 */

static bool refuse_filter(const char *what, Error **errp)
{
    ERRP_GUARD();

    error_setg(errp, "pmu-filter is not possible: the host's KVM does not know "
               "%s", what);
    error_append_hint(errp, "Leave it out, or use a newer kernel on the "
                      "host.\n");
    return false;
}

/* Whether KVM takes an entry only in the masked format */
static bool is_masked(const X86VPmuFilterEntry *e)
{
    return e->mask != 0xff || e->exclude;
}

/*
 * Without masked entries, an entry is an event as in the registers; otherwise
 * all are in KVM's masked format.
 */
static uint64_t kvm_filter_event(const X86VPmuFilterEntry *e, bool masked)
{
    return masked ? KVM_PMU_ENCODE_MASKED_ENTRY(e->select, e->mask, e->match,
                                                e->exclude)
                  : deposit64(extract64(e->select, 0, 8) | e->match << 8,
                              32, 4, e->select >> 8);
}

/* Returns: 0, or KVM's error, as a negative errno */
static int give_filter(const PmuFilter *filter,
                       const X86VPmuFilterEntry *entries, unsigned n,
                       bool masked)
{
    g_autofree struct kvm_pmu_event_filter *f =
        g_malloc0(sizeof(*f) + n * sizeof(f->events[0]));

    f->action = filter->action == KVM_PMU_FILTER_ACTION_ALLOW
                ? KVM_PMU_EVENT_ALLOW : KVM_PMU_EVENT_DENY;
    f->fixed_counter_bitmap = filter->fixed;
    f->flags = masked ? KVM_PMU_EVENT_FLAG_MASKED_EVENTS : 0;
    f->nevents = n;
    for (unsigned i = 0; i < n; i++) {
        f->events[i] = kvm_filter_event(&entries[i], masked);
    }
    return kvm_vm_ioctl(kvm_state, KVM_SET_PMU_EVENT_FILTER, f);
}

/* KVM does not report which entry it rejects: try each by itself. */
static void explain_refusal(const PmuFilter *filter,
                            const X86VPmuFilterEntry *entries, unsigned n,
                            bool masked, int ret, Error **errp)
{
    ERRP_GUARD();
    unsigned i = 0;

    while (i < n && give_filter(filter, &entries[i], 1, masked) == 0) {
        i++;
    }
    if (i == n) {
        error_setg_errno(errp, -ret, "KVM does not take the filter");
        return;
    }
    error_setg_errno(errp, -ret, "KVM does not take entry %u of the filter, "
                     "of select 0x%x", i + 1, entries[i].select);
    error_append_hint(errp, "Where there are entries with masks, KVM on "
                      "Intel's CPUs allows selects up to 0xff.\n");
}

static bool set_filter(const PmuFilter *filter, Error **errp)
{
    X86VPmuFilterEntry entries[PMU_FILTER_MAX_EVENTS];
    bool masked = false;
    unsigned n = 0;
    int ret;

    for (KvmPmuFilterEventList *e = filter->events; e; e = e->next) {
        entries[n] = x86_vpmu_filter_entry(e->value);
        masked = masked || is_masked(&entries[n]);
        n++;
    }
    if (!kvm_check_extension(kvm_state, KVM_CAP_PMU_EVENT_FILTER)) {
        return refuse_filter("filters", errp);
    }
    if (masked
        && !kvm_check_extension(kvm_state, KVM_CAP_PMU_EVENT_MASKED_EVENTS)) {
        return refuse_filter("entries with masks", errp);
    }
    ret = give_filter(filter, entries, n, masked);
    if (ret < 0) {
        explain_refusal(filter, entries, n, masked, ret, errp);
    }
    return ret == 0;
}

/*
 * Returns: whether the kernel could.  If not, CPUID still hides the PMU, which
 * is enough for Intel's.
 */
static bool disable_kernel_pmu(const X86CPU *cpu)
{
    if (kvm_vm_enable_cap(kvm_state, KVM_CAP_PMU_CAPABILITY, 0,
                          KVM_PMU_CAP_DISABLE) == 0) {
        return true;
    }
    if (host_has_amd_pmu(cpu)) {
        warn_report("pmu=off: the host's kernel cannot disable its PMU, as "
                    "Linux 5.18 and later do: the guest finds AMD's counters");
    }
    return false;
}

static bool can_disable(void)
{
    return kvm_vm_check_extension(kvm_state, KVM_CAP_PMU_CAPABILITY)
           & KVM_PMU_CAP_DISABLE;
}

/* For Intel's CPUs, CPUID can also hide the PMU of some CPUs. */
static bool refuse_mixture(const X86CPU *cpu, bool off, Error **errp)
{
    if (is_settled(ON_OFF_AUTO_OFF) && cpu->enable_pmu) {
        error_setg(errp, "pmu=on is not possible: another CPU of this machine "
                   "has pmu=off, and KVM has one PMU for all or for none");
        return true;
    }
    if (is_settled(ON_OFF_AUTO_ON) && off && host_has_amd_pmu(cpu)
        && can_disable()) {
        error_setg(errp, "pmu=off is not possible: another CPU of this machine "
                   "has a PMU, and KVM has one for all or for none");
        return true;
    }
    return false;
}

bool x86_vpmu_kvm_settle(const X86CPU *cpu, bool off, const PmuFilter *filter,
                         Error **errp)
{
    if (refuse_mixture(cpu, off, errp)) {
        return false;
    }
    if (is_settled(ON_OFF_AUTO_AUTO)) {
        if (filter && !set_filter(filter, errp)) {
            return false;
        }
        off = off && disable_kernel_pmu(cpu);
        kvm_state->guest_pmu = off ? ON_OFF_AUTO_OFF : ON_OFF_AUTO_ON;
        trace_x86_vpmu_kvm_settled(!off);
    }
    return true;
}

/* The host's leaf, with the settled sizes in it */
static void intel_leaf(const X86VPmu *v, uint32_t *eax, uint32_t *ebx,
                       uint32_t *ecx, uint32_t *edx)
{
    *eax = deposit32(host_leaf(0xa, R_EAX), 0, 8, v->version);
    *eax = deposit32(*eax, 8, 8, v->nr_gp);
    *ebx = host_leaf(0xa, R_EBX);
    *ecx = host_leaf(0xa, R_ECX) & x86_vpmu_low_bits(v->nr_fixed);
    *edx = deposit32(host_leaf(0xa, R_EDX), 0, 5, v->nr_fixed);
}

void x86_vpmu_kvm_cpuid(X86CPU *cpu, uint32_t leaf, uint32_t *eax,
                        uint32_t *ebx, uint32_t *ecx, uint32_t *edx)
{
    const X86VPmu *v = cpu->vpmu;

    *eax = *ebx = *ecx = *edx = 0;
    if (v->ops == &amd_vpmu_ops) {
        v->ops->cpuid(v, leaf, eax, ebx, ecx, edx);
    } else if (leaf == 0xa) {
        intel_leaf(v, eax, ebx, ecx, edx);
    }
}

/*
 * State
 */

/* Registers that start counters are written twice. */
#define MAX_STATE   64
#define MAX_ENTRIES (2 * MAX_STATE)

/* The argument of KVM_GET_MSRS and KVM_SET_MSRS */
typedef struct MsrBuffer {
    struct kvm_msrs head;
    struct kvm_msr_entry entries[MAX_ENTRIES];
} MsrBuffer;

/* An operation on a register; @n is its number in the order of all. */
typedef void StateFn(X86VPmu *v, const X86VPmuStateMsr *m, unsigned i,
                     unsigned n, MsrBuffer *buf);

static void for_all_state(X86VPmu *v, StateFn *fn, MsrBuffer *buf)
{
    const X86VPmuStateMsr *m;
    unsigned n, i;

    for (n = 0; (m = x86_vpmu_state(v, n, &i)); n++) {
        assert(n < MAX_STATE);
        if (!(v->hidden >> n & 1)) {
            fn(v, m, i, n, buf);
        }
    }
}

static uint32_t number_of(const X86VPmuStateMsr *m, unsigned i)
{
    return m->first + i * m->step;
}

static void add_entry(MsrBuffer *buf, uint32_t msr, uint64_t val)
{
    buf->entries[buf->head.nmsrs++] = (struct kvm_msr_entry) {
        .index = msr,
        .data = val,
    };
}

/* The kernel stops at the first register that it refuses. */
static bool transfer(X86VPmu *v, int request, MsrBuffer *buf, Error **errp)
{
    int done = kvm_vcpu_ioctl(CPU(v->cpu), request, buf);
    const struct kvm_msr_entry *refused;

    if (done < 0) {
        error_setg_errno(errp, -done, "KVM does not transfer the PMU's "
                         "registers");
        return false;
    }
    if (done < buf->head.nmsrs) {
        refused = &buf->entries[done];
        error_setg(errp, "KVM does not let the PMU's register 0x%" PRIx32
                   " be %s (0x%" PRIx64 ")", (uint32_t)refused->index,
                   request == KVM_SET_MSRS ? "set" : "read",
                   (uint64_t)refused->data);
        return false;
    }
    return true;
}

/* Whether a register can be read, and written with that value. */
static bool kernel_takes(X86VPmu *v, uint32_t msr, uint64_t val)
{
    MsrBuffer get = {}, set = {};

    add_entry(&get, msr, 0);
    add_entry(&set, msr, val);
    return transfer(v, KVM_GET_MSRS, &get, NULL)
           && transfer(v, KVM_SET_MSRS, &set, NULL);
}

/*
 * A hypervisor that is a guest itself may have a PMU some of whose registers
 * its own hypervisor hides.  For a register that does not exist, KVM may return
 * 0 to QEMU, and accept 0; so the value after a reset is tried, too.
 */
static bool is_there(X86VPmu *v, const X86VPmuStateMsr *m, unsigned i)
{
    return kernel_takes(v, number_of(m, i), x86_vpmu_read_state(v, m, i));
}

/* Kernels list the registers that are to be saved. */
static bool kernel_keeps(uint32_t msr)
{
    struct kvm_msr_list size = {};
    g_autofree struct kvm_msr_list *list = NULL;
    unsigned i = 0;

    if (kvm_ioctl(kvm_state, KVM_GET_MSR_INDEX_LIST, &size) != -E2BIG) {
        return false;
    }
    list = g_malloc0(sizeof(*list) + size.nmsrs * sizeof(list->indices[0]));
    list->nmsrs = size.nmsrs;
    if (kvm_ioctl(kvm_state, KVM_GET_MSR_INDEX_LIST, list) < 0) {
        return false;
    }
    while (i < list->nmsrs && list->indices[i] != msr) {
        i++;
    }
    return i < list->nmsrs;
}

uint64_t x86_vpmu_kvm_misc_enable(const X86CPU *cpu, uint64_t val)
{
    return cpu->vpmu_props.machine && !x86_vpmu_shown_as_amd(cpu)
           ? x86_vpmu_show_in_misc_enable(val, cpu->vpmu,
                                          pebs_is_shown(cpu))
           : val;
}

/*
 * IA32_DEBUGCTL could be saved before kernels listed it.  If a guest's state is
 * encrypted, QEMU cannot save it once the guest runs.
 */
static void find_kept(X86VPmu *v)
{
    v->kept = (X86VPmuKept) {
        .debugctl = !sev_es_enabled()
                    && kernel_takes(v, MSR_IA32_DEBUGCTL, 0),
        .pebs = pebs_is_shown(v->cpu)
                && kernel_keeps(MSR_IA32_PEBS_ENABLE),
    };
}

static void find_hidden(X86VPmu *v, const X86VPmuStateMsr *m, unsigned i,
                        unsigned n, MsrBuffer *unused)
{
    if (!is_there(v, m, i)) {
        v->hidden |= 1ull << n;
        warn_report("The host's KVM hides the PMU's register 0x%" PRIx32
                    " of vCPU %d, which CPUID promises; the guest may not be "
                    "able to use its PMU", number_of(m, i),
                    CPU(v->cpu)->cpu_index);
    }
}

/* A reset sets one register alone to something else than 0. */
static uint64_t reset_value(const X86VPmu *v, const X86VPmuStateMsr *m)
{
    return m->field == X86_VPMU_FIELD(global_ctrl) ? v->global_reset : 0;
}

bool x86_vpmu_kvm_refuse_hidden(X86VPmu *v, Error **errp)
{
    ERRP_GUARD();
    const X86VPmuStateMsr *m;
    unsigned n, i;

    for (n = 0; (m = x86_vpmu_state(v, n, &i)); n++) {
        if (v->hidden >> n & 1
            && x86_vpmu_read_state(v, m, i) != reset_value(v, m)) {
            error_setg(errp, "The source's guest uses the PMU's register 0x%"
                       PRIx32 ", which this host's KVM hides",
                       number_of(m, i));
            error_append_hint(errp, "Choose a host whose KVM has it.\n");
            return false;
        }
    }
    return true;
}

static void add_for_get(X86VPmu *v, const X86VPmuStateMsr *m, unsigned i,
                        unsigned n, MsrBuffer *buf)
{
    add_entry(buf, number_of(m, i), 0);
}

static void add_for_stop(X86VPmu *v, const X86VPmuStateMsr *m, unsigned i,
                         unsigned n, MsrBuffer *buf)
{
    if (m->starts) {
        add_entry(buf, number_of(m, i), 0);
    }
}

static void add_for_put(X86VPmu *v, const X86VPmuStateMsr *m, unsigned i,
                        unsigned n, MsrBuffer *buf)
{
    add_entry(buf, number_of(m, i), x86_vpmu_read_state(v, m, i));
}

/* The registers come in the order in which they were asked for. */
static void load_next(X86VPmu *v, const X86VPmuStateMsr *m, unsigned i,
                      unsigned n, MsrBuffer *buf)
{
    x86_vpmu_load_state(v, m, i, buf->entries[buf->head.nmsrs++].data);
}

bool x86_vpmu_kvm_get(X86CPU *cpu, Error **errp)
{
    X86VPmu *v = cpu->vpmu;
    MsrBuffer buf = {};

    if (!v) {
        return true;
    }
    for_all_state(v, add_for_get, &buf);
    if (!transfer(v, KVM_GET_MSRS, &buf, errp)) {
        return false;
    }
    buf.head.nmsrs = 0;
    pmu_begin(v->pmu);
    for_all_state(v, load_next, &buf);
    v->ops->update(v);
    pmu_commit(v->pmu);
    trace_x86_vpmu_kvm_get(CPU(cpu)->cpu_index, buf.head.nmsrs);
    return true;
}

bool x86_vpmu_kvm_put(X86CPU *cpu, Error **errp)
{
    X86VPmu *v = cpu->vpmu;
    MsrBuffer buf = {};

    if (!v) {
        return true;
    }
    for_all_state(v, add_for_stop, &buf);
    for_all_state(v, add_for_put, &buf);
    trace_x86_vpmu_kvm_put(CPU(cpu)->cpu_index, buf.head.nmsrs);
    return transfer(v, KVM_SET_MSRS, &buf, errp);
}

/*
 * The host's counts
 */

static bool read_counters(CPUState *cs)
{
    Error *err = NULL;

    /* If not, QEMU's values are newer, and are about to be written. */
    if (!cs->vcpu_dirty && !x86_vpmu_kvm_get(X86_CPU(cs), &err)) {
        warn_report_err_once(err);
        return false;
    }
    return true;
}

static void watch_counters(X86CPU *cpu)
{
    if (sev_es_enabled()) {
        warn_report_once("pmu-host-perf: QEMU cannot read the counters of a "
                         "guest with SEV-ES or SEV-SNP, and does not notice "
                         "if the host takes them away");
    } else if (cpu->vpmu) {
        pmu_host_watch(cpu->pmu_host, cpu->vpmu->pmu, read_counters);
    }
}

static void add_accounts(X86CPU *cpu)
{
    const unsigned scopes = 1u << PMU_HOST_GUEST | 1u << PMU_HOST_ALL;

    cpu->pmu_host = pmu_host_new(CPU(cpu), scopes);
    watch_counters(cpu);
}

void x86_vpmu_kvm_attach(X86CPU *cpu)
{
    X86VPmu *v = cpu->vpmu;

    if (v) {
        find_kept(v);
        for_all_state(v, find_hidden, NULL);
    }
    if (cpu->vpmu_props.host_perf) {
        add_accounts(cpu);
    }
}

/*
 * Samples of time
 */

/* SS has the privilege in its DPL, even if it is not usable. */
static void load_segment(SegmentCache *to, const struct kvm_segment *from)
{
    bool present = from->present && !from->unusable;

    to->base = from->base;
    to->limit = from->limit;
    to->selector = from->selector;
    to->flags = (uint32_t)from->type << DESC_TYPE_SHIFT
                | (uint32_t)from->dpl << DESC_DPL_SHIFT
                | (uint32_t)from->db << DESC_B_SHIFT
                | (from->s ? DESC_S_MASK : 0)
                | (present ? DESC_P_MASK : 0)
                | (from->l ? DESC_L_MASK : 0)
                | (from->g ? DESC_G_MASK : 0)
                | (from->avl ? DESC_AVL_MASK : 0);
}

static void load_system(CPUX86State *env, const struct kvm_sregs *sregs)
{
    load_segment(&env->segs[R_CS], &sregs->cs);
    load_segment(&env->segs[R_DS], &sregs->ds);
    load_segment(&env->segs[R_ES], &sregs->es);
    load_segment(&env->segs[R_GS], &sregs->gs);
    load_segment(&env->segs[R_SS], &sregs->ss);
    env->cr[0] = sregs->cr0;
    env->cr[3] = sregs->cr3;
    env->cr[4] = sregs->cr4;
    env->efer = sregs->efer;
}

/* The base of the CPU's variables in Linux, while programs run */
static void load_kernel_gs(X86CPU *cpu)
{
#ifdef TARGET_X86_64
    MsrBuffer buf = {
        .head.nmsrs = 1,
        .entries[0].index = MSR_KERNELGSBASE,
    };

    if (kvm_vcpu_ioctl(CPU(cpu), KVM_GET_MSRS, &buf) == 1) {
        cpu->env.kernelgsbase = buf.entries[0].data;
    }
#endif
}

/*
 * Read only the registers that a sample needs.  Nothing is written back, and
 * code that needs all registers reads them again.
 */
static bool load_place(X86CPU *cpu)
{
    CPUX86State *env = &cpu->env;
    struct kvm_regs regs;
    struct kvm_sregs sregs;

    /* With SEV-ES, kernels may return registers from before the launch. */
    if (sev_es_enabled()
        || kvm_vcpu_ioctl(CPU(cpu), KVM_GET_REGS, &regs) < 0
        || kvm_vcpu_ioctl(CPU(cpu), KVM_GET_SREGS, &sregs) < 0) {
        return false;
    }
    env->eip = regs.rip;
    env->eflags = regs.rflags;
    env->regs[R_ESP] = regs.rsp;
    env->regs[R_EBP] = regs.rbp;
    load_system(env, &sregs);
    env->hflags &= ~HF_GUEST_MASK;
    if (CPU(cpu)->kvm_run->flags & KVM_RUN_X86_GUEST_MODE) {
        env->hflags |= HF_GUEST_MASK;
    }
    x86_update_hflags(env);
    load_kernel_gs(cpu);
    return true;
}

void x86_vpmu_kvm_sample_time(X86CPU *cpu)
{
    qatomic_set(&CPU(cpu)->pmu_clock_due, false);
    if (load_place(cpu)) {
        pmu_clocks_sample(CPU(cpu));
    }
}
