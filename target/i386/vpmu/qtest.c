/*
 * x86 virtual PMU: commands of the qtest protocol
 *
 * Guest code does not run under qtest, so a test has no way to execute RDMSR
 * and the like.  These commands do to a CPU what the instructions would:
 *
 *   vpmu_rdmsr CPU MSR             OK ok VALUE | OK gp
 *   vpmu_wrmsr CPU MSR VALUE       OK ok | OK gp
 *   vpmu_rdpmc CPU ECX CPL         OK ok VALUE | OK gp, in protected mode
 *   vpmu_cr4 CPU VALUE             OK
 *   vpmu_efer CPU VALUE            OK
 *   vpmu_cpuid CPU LEAF SUBLEAF    OK EAX EBX ECX EDX
 *   vpmu_init CPU                  OK               as INIT does
 *   vpmu_nmi CPU                   OK 0 | OK 1      NMI pending; clears it
 *   vpmu_kvm CPU FIXED             OK               be as under KVM
 *
 * The registers of the PMU can be read and written, IA32_MISC_ENABLE, and the
 * registers of the local APIC.  Others read 0, as registers do that QEMU does
 * not know.  Under KVM, where the guest should be stopped, the PMU's registers
 * are the kernel's.
 *
 * Hosts whose KVM has Intel's PMU are rare where tests run.  The reset and the
 * migration of such a PMU do not depend on the kernel: vpmu_kvm makes a PMU
 * one of this kind, with at most FIXED fixed counters.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "hw/i386/apic.h"
#include "system/kvm.h"
#include "system/qtest.h"
#include "hw/pmu/pmu-qtest.h"
#include "hw/pmu/compat.h"
#include "internal.h"
#include "kvm.h"

/* Under KVM, read the registers from the kernel, or write them back. */
static bool take_registers(X86CPU *cpu)
{
    return !kvm_enabled() || x86_vpmu_kvm_get(cpu, NULL);
}

static bool give_registers(X86CPU *cpu)
{
    return !kvm_enabled() || x86_vpmu_kvm_put(cpu, NULL);
}

static X86VPmuAccess test_rdmsr(X86CPU *cpu, uint32_t msr, uint64_t *val)
{
    X86VPmuAccess result = take_registers(cpu)
                           ? x86_vpmu_rdmsr(cpu, msr, val) : X86_VPMU_FAULT;

    if (result != X86_VPMU_NOT_MINE) {
        return result;
    }
    *val = 0;
    switch (msr) {
    case MSR_IA32_MISC_ENABLE:
        *val = cpu->env.msr_ia32_misc_enable;
        break;
    case MSR_IA32_APICBASE:
        *val = cpu_get_apic_base(cpu->apic_state);
        break;
    case MSR_APIC_START ... MSR_APIC_END:
        if (apic_read_msr(cpu->apic_state, msr - MSR_APIC_START, val) < 0) {
            return X86_VPMU_FAULT;
        }
        break;
    }
    return X86_VPMU_DONE;
}

static X86VPmuAccess test_wrmsr(X86CPU *cpu, uint32_t msr, uint64_t val)
{
    X86VPmuAccess result = take_registers(cpu)
                           ? x86_vpmu_wrmsr(cpu, msr, val) : X86_VPMU_FAULT;
    int ret = 0;

    if (result == X86_VPMU_DONE && !give_registers(cpu)) {
        result = X86_VPMU_FAULT;
    }

    if (result != X86_VPMU_NOT_MINE) {
        return result;
    }
    switch (msr) {
    case MSR_IA32_MISC_ENABLE:
        cpu->env.msr_ia32_misc_enable = x86_vpmu_misc_enable(cpu, val);
        break;
    case MSR_IA32_APICBASE:
        ret = cpu_set_apic_base(cpu->apic_state, val);
        break;
    case MSR_APIC_START ... MSR_APIC_END:
        ret = apic_write_msr(cpu->apic_state, msr - MSR_APIC_START, val);
        break;
    }
    return ret < 0 ? X86_VPMU_FAULT : X86_VPMU_DONE;
}

static void send_value(CharBackend *chr, bool done, uint64_t val)
{
    if (done) {
        qtest_sendf(chr, "OK ok 0x%" PRIx64 "\n", val);
    } else {
        qtest_sendf(chr, "OK gp\n");
    }
}

static void cmd_rdmsr(CharBackend *chr, CPUState *cs, const uint64_t *arg)
{
    X86CPU *cpu = X86_CPU(cs);
    uint64_t val = 0;
    X86VPmuAccess result = test_rdmsr(cpu, arg[0], &val);

    send_value(chr, result == X86_VPMU_DONE, val);
}

static void cmd_wrmsr(CharBackend *chr, CPUState *cs, const uint64_t *arg)
{
    X86CPU *cpu = X86_CPU(cs);
    X86VPmuAccess result = test_wrmsr(cpu, arg[0], arg[1]);

    qtest_sendf(chr, "OK %s\n", result == X86_VPMU_DONE ? "ok" : "gp");
}

static void cmd_rdpmc(CharBackend *chr, CPUState *cs, const uint64_t *arg)
{
    X86CPU *cpu = X86_CPU(cs);
    CPUX86State *env = &cpu->env;
    uint32_t hflags = env->hflags;
    target_ulong cr0 = env->cr[0];
    uint64_t val = 0;
    bool done;

    env->hflags = (hflags & ~HF_CPL_MASK) | (arg[1] & HF_CPL_MASK);
    env->cr[0] |= CR0_PE_MASK;
    done = x86_vpmu_rdpmc_allowed(env) && x86_vpmu_rdpmc(cpu, arg[0], &val);
    env->hflags = hflags;
    env->cr[0] = cr0;
    send_value(chr, done, val);
}

static void cmd_cr4(CharBackend *chr, CPUState *cs, const uint64_t *arg)
{
    X86CPU *cpu = X86_CPU(cs);

    cpu_x86_update_cr4(&cpu->env, arg[0]);
    qtest_sendf(chr, "OK\n");
}

static void cmd_efer(CharBackend *chr, CPUState *cs, const uint64_t *arg)
{
    X86CPU *cpu = X86_CPU(cs);

    cpu_load_efer(&cpu->env, arg[0]);
    qtest_sendf(chr, "OK\n");
}

static void cmd_cpuid(CharBackend *chr, CPUState *cs, const uint64_t *arg)
{
    X86CPU *cpu = X86_CPU(cs);
    uint32_t eax, ebx, ecx, edx;

    cpu_x86_cpuid(&cpu->env, arg[0], arg[1], &eax, &ebx, &ecx, &edx);
    qtest_sendf(chr, "OK 0x%x 0x%x 0x%x 0x%x\n", eax, ebx, ecx, edx);
}

static void cmd_init(CharBackend *chr, CPUState *cs, const uint64_t *arg)
{
    X86CPU *cpu = X86_CPU(cs);

    do_cpu_init(cpu);
    qtest_sendf(chr, "OK\n");
}

static void cmd_nmi(CharBackend *chr, CPUState *cs, const uint64_t *arg)
{
    bool pending = cs->interrupt_request & CPU_INTERRUPT_NMI;

    cpu_reset_interrupt(cs, CPU_INTERRUPT_NMI);
    qtest_sendf(chr, "OK %d\n", pending);
}

static void cmd_kvm(CharBackend *chr, CPUState *cs, const uint64_t *arg)
{
    X86VPmu *v = X86_CPU(cs)->vpmu;

    v->engine = X86_VPMU_KVM;
    v->nr_fixed = MIN(v->nr_fixed, arg[0]);
    v->kept = (X86VPmuKept) { .debugctl = true, .pebs = v->pebs };
    qtest_sendf(chr, "OK\n");
}

static const PmuQtestCommand commands[] = {
    { "vpmu_rdmsr", 1, cmd_rdmsr },
    { "vpmu_wrmsr", 2, cmd_wrmsr },
    { "vpmu_rdpmc", 2, cmd_rdpmc },
    { "vpmu_cr4", 1, cmd_cr4 },
    { "vpmu_efer", 1, cmd_efer },
    { "vpmu_cpuid", 2, cmd_cpuid },
    { "vpmu_init", 0, cmd_init },
    { "vpmu_nmi", 0, cmd_nmi },
    { "vpmu_kvm", 1, cmd_kvm },
    { }
};

static bool run_command(CharBackend *chr, gchar **words)
{
    return pmu_qtest_run(commands, chr, words);
}

void x86_vpmu_qtest_init(void)
{
    qtest_add_command_cb(run_command);
}
