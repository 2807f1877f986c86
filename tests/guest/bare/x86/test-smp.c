/*
 * Suite smp: several CPUs, each with its own counters
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"

/* smp_split is accessed across two lines, for which QEMU stops all CPUs. */
uint64_t smp_shared, smp_split[16];
unsigned __int128 smp_pair;

CODE("smp_contend:\n"
     "    mov %rdi, %rsi\n"
     "    xor %ebx, %ebx\n"
     "1:  lock incq smp_shared\n"
     "    lock cmpxchg16b smp_pair\n"
     "    lock xadd %rbx, smp_shared\n"
     "    lock addq $1, smp_split + 61\n"
     "    xor %ebx, %ebx\n"
     "    dec %rsi\n"
     "    jnz 1b\n"
     "    ret\n");
code_fn smp_contend;

#define CONTEND_INSNS(turns) (7 * (turns) + 3)
#define TURNS(cpu)           (1000 * (cpu) + 500)

static volatile bool go; /* from the first CPU to the others */
static struct counts counts_of[MAX_CPUS];

/*
 * Work for CPUs beyond the second, if any.  They do not reset the PMU, as that
 * begins a new list of samples, which is up to the second CPU.
 */
static void contend_beside(void)
{
    unsigned self = cpu_index();

    wrmsr(MSR_GLOBAL_CONTROL, 0);
    while (!go) {
        pause();
    }
    counts_of[self] = measure_user(smp_contend, TURNS(self));
}

/* Start all CPUs at about the same time. */
static void start_together(void (*fn)(void))
{
    go = false;
    for (unsigned i = 2; i < option("cpus", 2); i++) {
        start_cpu(i, contend_beside);
    }
    start_cpu(1, fn);
    go = true;
}

static void await_cpu(unsigned index)
{
    expect(spin_until(cpu_done(index)), true, "CPU %u done", index);
}

static void finish_together(void)
{
    await_cpu(1);
    for (unsigned i = 2; i < option("cpus", 2); i++) {
        await_cpu(i);
        expect_counts("a CPU beside", counts_of[i], CONTEND_INSNS(TURNS(i)), 0);
    }
}

/* ---- Registers ------------------------------------------------------ */

static uint64_t seen_ctrl, seen_status, seen_select;

static void read_reset_values(void)
{
    seen_ctrl = rdmsr(MSR_GLOBAL_CONTROL);
    seen_status = rdmsr(MSR_GLOBAL_STATUS);
    seen_select = rdmsr(MSR_EVTSEL(0));
}

/* This is the first case: the second CPU's PMU is still unused. */
TEST(smp, reset_values)
{
    start_cpu(1, read_reset_values);
    await_cpu(1);
    /* AMD has general counters only. */
    expect(seen_ctrl, pmu_is_intel() ? BIT(pmu_gp_counters()) - 1
                                     : pmu_all_counters(), "GLOBAL_CTRL");
    expect(seen_status, 0, "GLOBAL_STATUS");
    expect(seen_select, 0, "EVTSEL0");
}

static uint64_t seen_counter, seen_fixed;

static void set_counters(void)
{
    pmu_reset();
    pmu_gp(0, EV_INSTRUCTIONS | SEL_ALL, 0x123456789abc);
    pmu_fixed(0, FIXED_ALL | FIXED_INT, 4711);
}

static void read_counters(void)
{
    seen_counter = rdmsr(MSR_PMC(0));
    seen_select = rdmsr(MSR_EVTSEL(0));
    seen_fixed = rdmsr(MSR_FIXED_CTR(0));
}

/* INIT leaves the PMU alone. */
TEST(smp, init)
{
    start_cpu(1, set_counters);
    await_cpu(1);
    start_cpu(1, read_counters);
    await_cpu(1);
    expect(seen_counter, 0x123456789abc, "PMC0");
    expect(seen_select, EV_INSTRUCTIONS | SEL_ALL | SEL_EN, "EVTSEL0");
    expect(seen_fixed, 4711, "FIXED_CTR0");
}

/* ---- Counts --------------------------------------------------------- */

#define TURNS0  3000
#define TURNS1  5000

static void contend_in_kernel(void)
{
    pmu_reset();
    while (!go) {
        pause();
    }
    counts_of[1] = measure_kernel(smp_contend, TURNS1);
}

static void contend_in_user_mode(void)
{
    pmu_reset();
    while (!go) {
        pause();
    }
    counts_of[1] = measure_user(smp_contend, TURNS1);
}

TEST(smp, contended_locks)
{
    struct counts c;

    start_together(contend_in_kernel);
    c = measure_user(smp_contend, TURNS0);
    finish_together();
    expect_counts("first CPU, user mode", c, CONTEND_INSNS(TURNS0), 0);
    expect_counts("second CPU, kernel", counts_of[1], 0, CONTEND_INSNS(TURNS1));

    start_together(contend_in_user_mode);
    c = measure_kernel(smp_contend, TURNS0);
    finish_together();
    expect_counts("first CPU, kernel", c, 0, CONTEND_INSNS(TURNS0));
    expect_counts("second CPU, user mode", counts_of[1],
                  CONTEND_INSNS(TURNS1), 0);
}

/* One CPU modifies code that the other executes: NOP to CLC and back. */
CODE("smp_writer:\n"
     "    mov $0x90, %eax\n"
     "1:  xor $0x90 ^ 0xf8, %al\n"
     "    mov %al, smp_victim+1\n"
     "    dec %rdi\n"
     "    jnz 1b\n"
     "    ret\n"
     "smp_executor:\n"
     "    call smp_victim\n"
     "    dec %rdi\n"
     "    jnz smp_executor\n"
     "    ret\n"
     "    .balign 4096\n"
     "smp_victim:\n"
     "    nop\n"
     "    nop\n"
     "    nop\n"
     "    ret\n");
code_fn smp_writer, smp_executor;

static void write_code(void)
{
    pmu_reset();
    while (!go) {
        pause();
    }
    counts_of[1] = measure_kernel(smp_writer, 3000);
}

TEST(smp, cross_modification)
{
    struct counts c;

    start_together(write_code);
    c = measure_user(smp_executor, 30000);
    finish_together();
    expect_counts("executing CPU", c, 7 * 30000 + 1, 0);
    expect_counts("writing CPU", counts_of[1], 0, 4 * 3000 + 2);
}

/*
 * A CPU that knows of a change executes the new code, even if it has executed
 * the old code before.  The page also has other code: QEMU can miss a store in
 * flight to a page in which it has seen no code so far.
 */
#define CHANGES 4000

CODE("    .balign 4096\n"
     "smp_stamped:\n"
     "    mov $0, %eax\n"
     "    ret\n"
     "smp_beside:\n"
     "    ret\n");
uint64_t smp_stamped(void);
void smp_beside(void);

static volatile uint32_t told, calls, stale;

static void execute_stamped(void)
{
    while (told < CHANGES) {
        uint32_t at_least = told;

        smp_beside();
        cpuid(0, 0);            /* as the manual requires */
        pause();                /* and leaves code that the host has fetched */
        stale += smp_stamped() < at_least;
        calls++;
    }
}

TEST(smp, change_of_code)
{
    volatile uint32_t *stamp = (void *)((uintptr_t)smp_stamped + 1);

    told = calls = stale = 0;
    start_cpu(1, execute_stamped);
    for (uint32_t n = 1; n <= CHANGES; n++) {
        uint32_t before = calls;

        *stamp = n;
        told = n;
        while (calls - before < 3 && !cpu_done(1)) {
            pause();
        }
    }
    await_cpu(1);
    expect(stale, 0, "calls of code that was no more");
}

/*
 * The same with changes to all code of a page, which leave no translation for a
 * moment: QEMU stops watching the page then, while the other CPU makes QEMU
 * watch it again.  The changed words are aligned for atomic operations.
 */
CODE("    .balign 4096\n"
     "    .skip 3\n"
     "smp_low:\n"
     "    mov $0, %eax\n"
     "    ret\n"
     "    .balign 64\n"
     "    .skip 3\n"
     "smp_high:\n"
     "    mov $0, %eax\n"
     "    ret\n"
     "    .balign 4096\n");
uint64_t smp_low(void), smp_high(void);

static volatile bool stop;

static void execute_both(void)
{
    while (!stop) {
        uint32_t at_least = told;

        cpuid(0, 0);
        pause();
        stale += smp_low() < at_least;
        stale += smp_high() < at_least;
        calls++;
    }
}

static void store(volatile uint32_t *to, uint32_t n)
{
    *to = n;
}

static void exchange(volatile uint32_t *to, uint32_t n)
{
    asm volatile("xchg %0, %1" : "+r"(n), "+m"(*to));
}

static void change_both(void (*put)(volatile uint32_t *to, uint32_t n))
{
    volatile uint32_t *low = (void *)((uintptr_t)smp_low + 1);
    volatile uint32_t *high = (void *)((uintptr_t)smp_high + 1);

    *low = *high = told = calls = stale = 0;
    stop = false;
    start_cpu(1, execute_both);
    for (uint32_t n = 1; n <= CHANGES / 4; n++) {
        uint32_t before = calls;

        put(high, n);
        put(low, n);
        told = n;
        while (calls - before < 3) {
            pause();
        }
    }
    stop = true;
    await_cpu(1);
    expect(stale, 0, "calls of code that was no more");
}

TEST(smp, change_of_page)
{
    change_both(store);
}

TEST(smp, atomic_change_of_page)
{
    change_both(exchange);
}

/* ---- Memory --------------------------------------------------------- */

#define MAP_CHANGES     2000

static volatile uint32_t apic_version, wrong_versions;

static void read_apic(void)
{
    while (!stop) {
        for (unsigned n = 0; n < 50; n++) {
            wrong_versions += apic_read(APIC_VERSION) != apic_version;
        }
        pause();                /* if CPUs take turns, this ends the turn */
    }
}

/*
 * A CPU keeps accessing the same device while another CPU changes the memory
 * map elsewhere.  QEMU has numbers for devices, which change with the map.
 */
TEST(smp, change_of_map)
{
    apic_version = apic_read(APIC_VERSION);
    wrong_versions = 0;
    stop = false;
    start_cpu(1, read_apic);
    outl(PCI_ADDRESS, PAM3_TO_6);
    for (unsigned n = 0; n < MAP_CHANGES; n++) {
        outl(PCI_DATA, n % 2 ? 0 : ALL_RAM);
    }
    stop = true;
    await_cpu(1);
    expect(wrong_versions, 0, "values that are not the APIC's");
}

/* ---- Samples -------------------------------------------------------- */

#define PERIOD  13

CODE("smp_sampled:\n"
     "    mov %rdi, %rcx\n"
     "1:  nop\n"
     "    lock incq smp_shared\n"
     "    dec %rcx\n"
     "    jnz 1b\n"
     "    ret\n");
code_fn smp_sampled;

static void sample_loop(void)
{
    pmu_reset();
    while (!go) {
        pause();
    }
    pmu_gp(0, EV_INSTRUCTIONS | SEL_USR | SEL_INT, -(uint64_t)PERIOD);
    sample_with(VEC_PMI);
    sample_reload(0, PERIOD);
    run_user(GP(0), smp_sampled, 1000);
}

/* The second CPU samples, the first one counts. */
TEST(smp, sampling)
{
    uint64_t total = count_steps(smp_sampled, 1000);
    struct counts c;

    start_together(sample_loop);
    c = measure_user(smp_contend, 500);
    finish_together();
    expect_counts("first CPU", c, CONTEND_INSNS(500), 0);
    expect(sample_count, total / PERIOD, "samples");
    for (unsigned i = 0; i < total / PERIOD; i++) {
        expect(samples[i].rip, step_trace[(i + 1) * PERIOD - 1],
               "sample %u: RIP", i);
    }
}
