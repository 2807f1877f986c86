/*
 * Bare-metal test guest: the PMU
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"
#include "runner.h"

struct sample samples[MAX_SAMPLES];
volatile unsigned sample_count; /* by the handler */

static uint64_t reload[64];
static uint32_t sample_lvt;

/* ---- Vendors -------------------------------------------------------- */

#define VENDOR_AMD          0x68747541 /* "Auth", CPUID leaf 0, EBX */

#define AMD_GENERAL         4
#define AMD_FIXED           2
#define AMD_LBR             16

static bool is_amd;

/* Features that AMD's processors may lack; they have other registers then. */
enum lack {
    LACKS_CORE_EXT,     /* six counters, with numbers of their own */
    LACKS_GLOBAL,       /* PerfMonV2 */
};

static bool lacks(enum lack what)
{
    if (what == LACKS_CORE_EXT) {
        return !(cpuid(0x80000001, 0).c & BIT(23));
    }
    return cpuid(0x80000000, 0).a < LEAF_AMD_PMU
           || !(cpuid(LEAF_AMD_PMU, 0).a & 1);
}

/* The numbers that code of CODE() loads, with their addresses */
extern const uint64_t pmu_sites_begin[], pmu_sites_end[];

/* Numbers of a kind, Intel's and AMD's. */
struct numbers {
    uint32_t intel, count, amd, step;
};

static const struct numbers registers[] = {
    { MSR_PERFCTR0, AMD_GENERAL, MSR_LEGACY_CTR0, 1 },
    { MSR_A_PMC0, AMD_GENERAL, MSR_CTR0, 2 },
    { MSR_EVTSEL0, AMD_GENERAL, MSR_CTL0, 2 },
    { MSR_FIXED_CTR0, AMD_FIXED, MSR_CTR0 + 2 * AMD_GENERAL, 2 },
    { 0x40000000, AMD_FIXED, AMD_GENERAL, 1 }, /* RDPMC */
    { MSR_STATUS, 1, MSR_AMD_STATUS, 1 },
    { MSR_GLOBAL_CTRL, 1, MSR_AMD_CTL, 1 },
    { MSR_STATUS_RESET, 1, MSR_AMD_STATUS_CLR, 1 },
    { MSR_STATUS_SET, 1, MSR_AMD_STATUS_SET, 1 },
    { MSR_LBR_SELECT, 1, MSR_AMD_LBR_SELECT, 1 },
    { MSR_LBR_FROM, AMD_LBR, MSR_AMD_LBR_FROM, 2 },
    { MSR_LBR_TO, AMD_LBR, MSR_AMD_LBR_TO, 2 },
};

/*
 * Registers that older processors have in the place of others.  Without global
 * registers, the selector of the first counter starts and stops it.
 */
static const struct {
    enum lack lacking;
    struct numbers numbers;
} older[] = {
    { LACKS_CORE_EXT, { MSR_A_PMC0, AMD_GENERAL, MSR_LEGACY_CTR0, 1 } },
    { LACKS_CORE_EXT, { MSR_EVTSEL0, AMD_GENERAL, MSR_LEGACY_EVTSEL0, 1 } },
    { LACKS_GLOBAL, { MSR_GLOBAL_CTRL, 1, MSR_LEGACY_EVTSEL0, 1 } },
};

static const struct {
    uint64_t intel, amd;
} events[] = {
    { EV_CYCLES, 0x76 },
    { EV_INSTRUCTIONS, 0xc0 },
    { EV_REF_CYCLES, 0x100000120 },
    { EV_BRANCHES, 0xc2 },
    { EV_BR_CONDITIONAL, 0xd1 },
    { EV_BR_RETURN, 0xc8 },
    { EV_BR_FAR, 0xc6 },
    { EV_INTERRUPTS, 0x2c },
    { EV_DTLB_LOAD_MISSES, 0xf045 }, /* counts stores, too */
    { EV_ITLB_MISSES, 0xff85 },
    { EV_LOADS, 0x0129 },
    { EV_STORES, 0x0229 },
};

/* Events of the AMD counters that stand in for fixed ones */
static const uint64_t fixed_events[AMD_FIXED] = {
    EV_INSTRUCTIONS, EV_CYCLES,
};

void pmu_find(void)
{
    is_amd = cpuid(0, 0).b == VENDOR_AMD;
    for (const uint64_t *site = pmu_sites_begin; site < pmu_sites_end;
         site++) {
        uint32_t *number = (uint32_t *)*site - 1;

        *number = pmu_register(*number);
    }
}

bool pmu_is_intel(void)
{
    return !is_amd;
}

static bool translate(const struct numbers *from, uint32_t *number)
{
    uint32_t n = *number - from->intel;

    if (n < from->count) {
        *number = from->amd + n * from->step;
        return true;
    }
    return false;
}

uint32_t pmu_register(uint32_t intel)
{
    for (unsigned i = 0; is_amd && i < ARRAY_SIZE(older); i++) {
        if (lacks(older[i].lacking) && translate(&older[i].numbers, &intel)) {
            return intel;
        }
    }
    for (unsigned i = 0; is_amd && i < ARRAY_SIZE(registers); i++) {
        if (translate(&registers[i], &intel)) {
            break;
        }
    }
    return intel;
}

unsigned pmu_fixed_bit(unsigned i)
{
    return i + (is_amd ? AMD_GENERAL : 32);
}

/* Returns: AMD's code of an event; 0 without such an event */
static uint64_t amd_event(uint64_t event)
{
    for (unsigned i = 0; i < ARRAY_SIZE(events); i++) {
        if (events[i].intel == event) {
            return events[i].amd;
        }
    }
    return 0;
}

bool pmu_has_event(uint64_t event)
{
    return !is_amd || amd_event(event);
}

static uint64_t vendor_select(uint64_t select)
{
    uint64_t event = select & 0xffff;

    if (!pmu_has_event(event)) {
        skip();
    }
    return is_amd ? (select & ~0xffffull) | amd_event(event) : select;
}

uint32_t pmu_delivered(uint32_t lvt)
{
    return lvt | (is_amd ? 0 : APIC_MASKED);
}

unsigned pmu_version(void)
{
    if (is_amd) {
        return lacks(LACKS_GLOBAL) ? 1 : 2;
    }
    return cpuid(0, 0).a >= 0xa ? cpuid(0xa, 0).a & 0xff : 0;
}

unsigned pmu_gp_counters(void)
{
    return is_amd ? AMD_GENERAL : cpuid(0xa, 0).a >> 8 & 0xff;
}

unsigned pmu_fixed_counters(void)
{
    if (is_amd) {
        return pmu_version() >= 2 ? AMD_FIXED : 0;
    }
    return cpuid(0xa, 0).d & 0x1f;
}

uint64_t pmu_all_counters(void)
{
    return (BIT(pmu_gp_counters()) - 1) |
           (BIT(pmu_fixed_counters()) - 1) << pmu_fixed_bit(0);
}

/* AMD's event select in place of Intel's fixed counter @i */
static uint32_t amd_fixed_select(unsigned i)
{
    return MSR_FIXED_CTR(i) - 1;
}

static void reset_fixed(void)
{
    if (!is_amd && pmu_version() >= 2) {
        wrmsr(MSR_FIXED_CTR_CTRL, 0);
    }
    for (unsigned i = 0; i < pmu_fixed_counters(); i++) {
        if (is_amd) {
            wrmsr(amd_fixed_select(i), 0);
        }
        wrmsr(MSR_FIXED_CTR(i), 0);
    }
}

void pmu_reset(void)
{
    if (pmu_version() >= 2) {
        wrmsr(MSR_GLOBAL_CONTROL, 0);
        wrmsr(MSR_GLOBAL_OVF_CTRL, rdmsr(MSR_GLOBAL_STATUS));
    }
    wrmsr(MSR_DEBUGCTL, 0);
    for (unsigned i = 0; i < pmu_gp_counters(); i++) {
        wrmsr(MSR_EVTSEL(i), 0);
        wrmsr(MSR_PMC(i), 0);
    }
    reset_fixed();
    memset(reload, 0, sizeof(reload));
    sample_count = 0;
}

/*
 * "machine" and "nopmu" also run without a PMU; "state" checks the registers'
 * values after a reset.
 */
void prepare_pmu(const char *suite)
{
    static const char *const others[] = { "machine", "nopmu", "state" };

    for (unsigned i = 0; i < ARRAY_SIZE(others); i++) {
        if (streq(suite, others[i])) {
            return;
        }
    }
    if (!pmu_version()) {
        fail("no PMU: CPUID reports version 0");
    }
    pmu_reset();
}

void pmu_gp(unsigned i, uint64_t select, uint64_t value)
{
    wrmsr(MSR_EVTSEL(i), 0);
    wrmsr(MSR_PMC(i), value & COUNTER_MASK);
    wrmsr(MSR_EVTSEL(i), vendor_select(select) | SEL_EN);
}

static void intel_fixed(unsigned i, unsigned field, uint64_t value)
{
    uint64_t others = rdmsr(MSR_FIXED_CTR_CTRL) & ~(0xfull << 4 * i);

    wrmsr(MSR_FIXED_CTR_CTRL, others);
    wrmsr(MSR_FIXED_CTR(i), value & COUNTER_MASK);
    wrmsr(MSR_FIXED_CTR_CTRL, others | (uint64_t)field << 4 * i);
}

static void amd_fixed(unsigned i, unsigned field, uint64_t value)
{
    wrmsr(amd_fixed_select(i), 0);
    wrmsr(MSR_FIXED_CTR(i), value & COUNTER_MASK);
    wrmsr(amd_fixed_select(i),
          vendor_select(fixed_events[i]) | SEL_EN |
          (field & FIXED_OS ? SEL_OS : 0) | (field & FIXED_USR ? SEL_USR : 0) |
          (field & FIXED_INT ? SEL_INT : 0));
}

void pmu_fixed(unsigned i, unsigned field, uint64_t value)
{
    if (i >= pmu_fixed_counters()) {
        skip();
    }
    (is_amd ? amd_fixed : intel_fixed)(i, field, value);
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

/* A step takes microseconds, so longer functions are not stepped. */
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
    return bit >= pmu_fixed_bit(0) ? MSR_FIXED_CTR(bit - pmu_fixed_bit(0))
                                   : MSR_PMC(bit);
}

static uint64_t first_value(uint64_t status)
{
    status &= pmu_all_counters();
    return status ? rdmsr(counter_msr(__builtin_ctzll(status))) : 0;
}

static void on_pmi(struct regs *regs)
{
    uint64_t ctrl = rdmsr(MSR_GLOBAL_CONTROL);
    uint64_t status;

    wrmsr(MSR_GLOBAL_CONTROL, 0);
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
    wrmsr(MSR_GLOBAL_CONTROL, ctrl);
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

CODE("    .globl run_own_switch, run_own_switch_here\n"
     "run_own_switch:\n"
     "    mov %esi, %ecx\n"
     "    mov %edi, %eax\n"
     "    xor %edx, %edx\n"
     "    wrmsr\n"
     "    .rept 10\n"
     "    nop\n"
     "    .endr\n"
     "run_own_switch_here:\n"
     "    xor %eax, %eax\n"
     "    wrmsr\n"
     "    ret\n");
