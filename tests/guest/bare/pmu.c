/*
 * Bare-metal test guest: the Intel PMU
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"

struct sample samples[MAX_SAMPLES];
volatile unsigned sample_count; /* by the handler */

static uint64_t reload[64];
static uint32_t sample_lvt;

unsigned pmu_version(void)
{
    return cpuid(0, 0).a >= 0xa ? cpuid(0xa, 0).a & 0xff : 0;
}

unsigned pmu_gp_counters(void)
{
    return cpuid(0xa, 0).a >> 8 & 0xff;
}

unsigned pmu_fixed_counters(void)
{
    return cpuid(0xa, 0).d & 0x1f;
}

uint64_t pmu_all_counters(void)
{
    return (BIT(pmu_gp_counters()) - 1) |
           (BIT(pmu_fixed_counters()) - 1) << 32;
}

void pmu_reset(void)
{
    if (pmu_version() >= 2) {
        wrmsr(MSR_GLOBAL_CTRL, 0);
        wrmsr(MSR_FIXED_CTRL, 0);
        wrmsr(MSR_GLOBAL_OVF_CTRL, rdmsr(MSR_GLOBAL_STATUS));
    }
    wrmsr(MSR_DEBUGCTL, 0);
    for (unsigned i = 0; i < pmu_gp_counters(); i++) {
        wrmsr(MSR_EVTSEL(i), 0);
        wrmsr(MSR_PMC(i), 0);
    }
    for (unsigned i = 0; i < pmu_fixed_counters(); i++) {
        wrmsr(MSR_FIXED_CTR(i), 0);
    }
    memset(reload, 0, sizeof(reload));
    sample_count = 0;
}

void pmu_gp(unsigned i, uint64_t select, uint64_t value)
{
    wrmsr(MSR_EVTSEL(i), 0);
    wrmsr(MSR_PMC(i), value & COUNTER_MASK);
    wrmsr(MSR_EVTSEL(i), select | SEL_EN);
}

void pmu_fixed(unsigned i, unsigned field, uint64_t value)
{
    uint64_t others = rdmsr(MSR_FIXED_CTRL) & ~(0xfull << 4 * i);

    wrmsr(MSR_FIXED_CTRL, others);
    wrmsr(MSR_FIXED_CTR(i), value & COUNTER_MASK);
    wrmsr(MSR_FIXED_CTRL, others | (uint64_t)field << 4 * i);
}

/* ---- Counts --------------------------------------------------------- */

#define COUNTS_CTRL (FIXED(0) | GP(0) | GP(1))

static void prepare_counts(void)
{
    pmu_fixed(0, FIXED_ALL, 0);
    pmu_gp(0, EV_INSTRUCTIONS | SEL_USR, 0);
    pmu_gp(1, EV_INSTRUCTIONS | SEL_OS, 0);
}

static struct counts read_counts(uint64_t result, unsigned user_overhead)
{
    return (struct counts) {
        .user = rdmsr(MSR_PMC(0)) - user_overhead,
        .kernel = rdmsr(MSR_PMC(1)) - RUN_KERNEL_OVERHEAD,
        .all = rdmsr(MSR_FIXED_CTR(0)) - user_overhead - RUN_KERNEL_OVERHEAD,
        .result = result,
    };
}

struct counts measure_kernel(code_fn *fn, uint64_t arg)
{
    uint64_t result;

    prepare_counts();
    result = run_kernel(COUNTS_CTRL, fn, arg);
    return read_counts(result, 0);
}

struct counts measure_user(code_fn *fn, uint64_t arg)
{
    uint64_t result;

    prepare_counts();
    result = run_user(COUNTS_CTRL, fn, arg);
    return read_counts(result, RUN_USER_OVERHEAD);
}

void expect_counts(const char *what, struct counts c, uint64_t user,
                   uint64_t kernel)
{
    expect(c.user, user, "%s: user instructions", what);
    expect(c.kernel, kernel, "%s: kernel instructions", what);
    expect(c.all, user + kernel, "%s: all instructions", what);
}

/* A step takes microseconds: what is longer is not checked by them. */
#define MAX_STEPS 25000

void expect_both(const char *what, code_fn *fn, uint64_t arg, uint64_t count)
{
    if (count <= MAX_STEPS) {
        expect(count_steps(fn, arg), count, "%s: single steps", what);
    }
    expect_counts(what, measure_kernel(fn, arg), 0, count);
    expect_counts(what, measure_user(fn, arg), count, 0);
}

/* ---- Sampling ------------------------------------------------------- */

static uint32_t counter_msr(unsigned bit)
{
    return bit >= 32 ? MSR_FIXED_CTR(bit - 32) : MSR_PMC(bit);
}

static uint64_t first_value(uint64_t status)
{
    status &= pmu_all_counters();
    return status ? rdmsr(counter_msr(__builtin_ctzll(status))) : 0;
}

static void on_pmi(struct regs *regs)
{
    uint64_t ctrl = rdmsr(MSR_GLOBAL_CTRL);
    uint64_t status;

    wrmsr(MSR_GLOBAL_CTRL, 0);
    status = rdmsr(MSR_GLOBAL_STATUS);
    if (sample_count < MAX_SAMPLES) {
        samples[sample_count] = (struct sample) {
            .rip = regs->rip,
            .cs = regs->cs,
            .status = status,
            .lvt = apic_read(APIC_LVT_PC),
            .ctrl = ctrl,
            .value = first_value(status),
        };
    }
    sample_count++;
    for (unsigned bit = 0; bit < 40; bit++) {
        if (status & BIT(bit)) {
            if (reload[bit]) {
                wrmsr(counter_msr(bit), -reload[bit] & COUNTER_MASK);
            } else {
                ctrl &= ~BIT(bit);
            }
        }
    }
    wrmsr(MSR_GLOBAL_OVF_CTRL, status & pmu_all_counters());
    apic_write(APIC_LVT_PC, sample_lvt);
    if (regs->vector != NMI_VECTOR) {
        apic_eoi();
    }
    wrmsr(MSR_GLOBAL_CTRL, ctrl);
}

void sample_with(uint32_t lvt)
{
    sample_lvt = lvt;
    sample_count = 0;
    on_trap(lvt == APIC_NMI ? NMI_VECTOR : lvt, on_pmi);
    apic_write(APIC_LVT_PC, lvt);
}

void sample_reload(unsigned bit, uint64_t period)
{
    reload[bit] = period;
}
