/*
 * Bare-metal test guest: processor, traps, memory, local APIC
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "internal.h"
#include "pmu.h"

#define MSR_X2APIC      0x800
#define MSR_STAR        0xc0000081
#define MSR_GS_BASE     0xc0000101

#define APICBASE_EXTD   BIT(10)
#define APICBASE_EN     BIT(11)
#define APIC_BASE       0xfee00000ull

/* Interrupt stacks: NMI and #DB may come before SYSCALL's code has one. */
#define IST_NMI         1
#define IST_DB          2

struct tss {
    uint32_t reserved0;
    uint64_t rsp[3];
    uint64_t reserved1;
    uint64_t ist[7];
    uint64_t reserved2;
    uint16_t reserved3, iomap;
} __attribute__((packed));

struct percpu {
    struct percpu *self;
    uint64_t result;
    uint64_t ustack;
    uint64_t scratch;
    struct tss tss;
    unsigned index;
};

_Static_assert(offsetof(struct percpu, self) == PERCPU_SELF, "layout.h");
_Static_assert(offsetof(struct percpu, result) == PERCPU_RESULT, "layout.h");
_Static_assert(offsetof(struct percpu, ustack) == PERCPU_USTACK, "layout.h");
_Static_assert(offsetof(struct percpu, scratch) == PERCPU_SCRATCH, "layout.h");
_Static_assert(offsetof(struct percpu, tss.rsp) == PERCPU_RSP0, "layout.h");

struct gate {
    uint16_t offset0, selector;
    uint8_t ist, type;
    uint16_t offset1;
    uint32_t offset2, reserved;
};

struct table_pointer {
    uint16_t limit;
    void *base;
} __attribute__((packed));

uint8_t spare[SPARE_PAGES][PAGE_SIZE] __attribute__((aligned(PAGE_SIZE)));

static struct percpu percpu[MAX_CPUS];
static uint8_t stacks[MAX_CPUS][3][STACK_SIZE] __attribute__((aligned(16)));
static struct gate idt[256];
static void (*handlers[256])(struct regs *regs);

/* Work from the first CPU for each other one, and whether it has finished */
static struct {
    void (*volatile fn)(void);
    volatile bool done;
} work[MAX_CPUS];


/* ---- Traps ---------------------------------------------------------- */

static bool fix_up(struct regs *regs)
{
    for (const struct fixup *f = fixups_begin; f < fixups_end; f++) {
        if (f->from == regs->rip) {
            regs->rip = f->to;
            regs->rdi = regs->vector;
            return true;
        }
    }
    return false;
}

void trap(struct regs *regs)
{
    if (handlers[regs->vector]) {
        handlers[regs->vector](regs);
    } else if (!fix_up(regs)) {
        fail("unexpected trap %lu, error %lx, at %lx:%lx, CR2 %lx",
             regs->vector, regs->error, regs->cs, regs->rip, read_cr2());
    }
}

void on_trap(unsigned vector, void (*handler)(struct regs *regs))
{
    handlers[vector] = handler;
}

void set_gate(unsigned vector, const void *entry)
{
    uint64_t offset = (uint64_t)entry;
    bool user = vector == BP_VECTOR || vector == VEC_SYSCALL ||
                vector == VEC_USER_EXIT || !entry;

    idt[vector] = (struct gate) {
        .offset0 = offset,
        .selector = KERNEL_CS,
        .ist = vector == NMI_VECTOR ? IST_NMI :
               vector == DB_VECTOR ? IST_DB : 0,
        .type = (entry ? 0x80 : 0) | (user ? 0x6e : 0x0e),
        .offset1 = offset >> 16,
        .offset2 = offset >> 32,
    };
}

static void reset_traps(void)
{
    for (unsigned i = 0; i < 256; i++) {
        set_gate(i, trap_stubs[i]);
        handlers[i] = NULL;
    }
    set_gate(VEC_USER_EXIT, user_exit_gate);
    asm volatile("mov %0, %%dr7" : : "r"(0ull));
}

/* ---- Single steps --------------------------------------------------- */

static uint64_t steps, step_rip;

/*
 * The first step is that of the CALL.  A step to the same address is a REP
 * between two iterations.
 */
static void on_step(struct regs *regs)
{
    if (regs->rip != step_rip) {
        if (steps > 0) {
            trace_step(steps - 1, regs->rip);
        }
        steps++;
    }
    step_rip = regs->rip;
    if (regs->rip == (uint64_t)stepped_return) {
        regs->rflags &= ~RFLAGS_TF;
    }
}

static uint64_t count_steps_in(run_fn *run, code_fn *fn, uint64_t arg)
{
    uint64_t call[2] = { (uint64_t)fn, arg };

    steps = 0;
    step_rip = 0;
    on_trap(DB_VECTOR, on_step);
    run(0, stepped_call, (uint64_t)call);
    on_trap(DB_VECTOR, NULL);
    return steps - 1;
}

uint64_t count_steps(code_fn *fn, uint64_t arg)
{
    return count_steps_in(run_user, fn, arg);
}

uint64_t count_kernel_steps(code_fn *fn, uint64_t arg)
{
    return count_steps_in(run_kernel, fn, arg);
}

/* ---- Memory --------------------------------------------------------- */

void map(unsigned n, const void *page, uint64_t flags)
{
    window[n] = flags ? (uint64_t)page | flags : 0;
    asm volatile("invlpg %0" : : "m"(*WINDOW(n)) : "memory");
}

static void reset_memory(void)
{
    for (unsigned i = 0; i < WINDOW_PAGES; i++) {
        if (window[i]) {
            map(i, NULL, 0);
        }
    }
    memset(spare, 0, sizeof(spare));
}

/* ---- Local APIC ----------------------------------------------------- */

static bool apic_is_x2(void)
{
    return rdmsr(MSR_APICBASE) & APICBASE_EXTD;
}

/* In xAPIC mode, device memory. */
static volatile uint32_t *apic_register(uint32_t reg)
{
    /* volatile, as it is device memory */
    return (volatile uint32_t *)(APIC_BASE + reg);
}

uint32_t apic_read(uint32_t reg)
{
    if (apic_is_x2()) {
        return rdmsr(MSR_X2APIC + reg / 16);
    }
    return *apic_register(reg);
}

void apic_write(uint32_t reg, uint32_t value)
{
    if (apic_is_x2()) {
        wrmsr(MSR_X2APIC + reg / 16, value);
    } else {
        *apic_register(reg) = value;
    }
}

void apic_eoi(void)
{
    apic_write(APIC_EOI, 0);
}

bool apic_requested(unsigned vector)
{
    return apic_read(APIC_IRR + vector / 32 * 16) & 1u << vector % 32;
}

void apic_x2_mode(void)
{
    wrmsr(MSR_APICBASE, rdmsr(MSR_APICBASE) | APICBASE_EXTD);
}

void timer_once(uint32_t ns)
{
    apic_write(APIC_TIMER_DIV, 0xb);
    apic_write(APIC_LVT_TIMER, VEC_TIMER);
    apic_write(APIC_TIMER_INIT, ns);
}

/* Drop pending interrupts of an earlier test. */
static void drain_interrupts(struct regs *regs)
{
    if (regs->vector != NMI_VECTOR) {
        apic_eoi();
    }
}

static void reset_apic(void)
{
    if (apic_is_x2()) {
        uint64_t base = rdmsr(MSR_APICBASE);

        wrmsr(MSR_APICBASE, base & ~(APICBASE_EXTD | APICBASE_EN));
        wrmsr(MSR_APICBASE, (base & ~APICBASE_EXTD) | APICBASE_EN);
    }
    apic_write(APIC_SVR, 0x100 | VEC_SPURIOUS);
    apic_write(APIC_TIMER_INIT, 0);
    apic_write(APIC_LVT_TIMER, APIC_MASKED);
    apic_write(APIC_LVT_PC, APIC_MASKED);
    /* End any vector in service. */
    for (unsigned i = 0; i < 8; i++) {
        apic_eoi();
    }
    on_trap(VEC_PMI, drain_interrupts);
    on_trap(VEC_TIMER, drain_interrupts);
    on_trap(VEC_IPI, drain_interrupts);
    asm volatile("sti\nnop\nnop\ncli" : : : "memory");
    on_trap(VEC_PMI, NULL);
    on_trap(VEC_TIMER, NULL);
    on_trap(VEC_IPI, NULL);
}

/* ---- CPUs ----------------------------------------------------------- */

unsigned cpu_index(void)
{
    struct percpu *self;

    asm volatile("mov %%gs:%c1, %0" : "=r"(self) : "i"(PERCPU_SELF));
    return self->index;
}

void park_other_cpu(void)
{
    while (cpu_index() != 0) {
        asm volatile("hlt");
    }
}

static void set_tss_descriptor(unsigned index, const struct tss *tss)
{
    uint64_t base = (uint64_t)tss;
    uint64_t *descriptor = &gdt[TSS_SEL / 8 + 2 * index];

    descriptor[0] = (sizeof(*tss) - 1) | (base & 0xffffff) << 16 |
                    0x89ull << 40 | (base >> 24 & 0xff) << 56;
    descriptor[1] = base >> 32;
}

static void init_cpu(unsigned index)
{
    struct percpu *self = &percpu[index];
    struct table_pointer idtr = { sizeof(idt) - 1, idt };

    *self = (struct percpu) {
        .self = self,
        .index = index,
        .ustack = (uint64_t)stacks[index][0] + STACK_SIZE,
        .tss.ist = {
            [IST_NMI - 1] = (uint64_t)stacks[index][1] + STACK_SIZE,
            [IST_DB - 1] = (uint64_t)stacks[index][2] + STACK_SIZE,
        },
        .tss.iomap = sizeof(struct tss),
    };
    set_tss_descriptor(index, &self->tss);
    asm volatile("ltr %w0" : : "r"(TSS_SEL + 16 * index));
    asm volatile("lidt %0" : : "m"(idtr));
    wrmsr(MSR_GS_BASE, (uint64_t)self);
    wrmsr(MSR_STAR, (uint64_t)(BOOT_CS32 | 3) << 48 |
                    (uint64_t)KERNEL_CS << 32);
}

void reset_machine(void)
{
    cli();
    reset_traps();
    reset_memory();
    reset_apic();
    write_cr4(read_cr4() & ~(CR4_PCE | CR4_DE));
    write_cr0(read_cr0() & ~CR0_TS);
}

bool cpu_done(unsigned index)
{
    return work[index].done;
}

static void do_work(unsigned index)
{
    apic_write(APIC_SVR, 0x100 | VEC_SPURIOUS);
    work[index].fn();
    work[index].done = true;
}

void start_cpu(unsigned index, void (*fn)(void))
{
    memcpy((void *)TRAMPOLINE_BASE, trampoline, trampoline_end - trampoline);
    cpus_started = index;
    work[index].done = false;
    work[index].fn = fn;
    apic_write(APIC_ICR_HIGH, index << 24);
    apic_write(APIC_ICR, APIC_ASSERT | APIC_INIT);
    apic_write(APIC_ICR, APIC_ASSERT | APIC_STARTUP |
                         TRAMPOLINE_BASE / PAGE_SIZE);
    if (!spin_until(cpus_started == index + 1)) {
        fail("CPU %u did not start", index);
    }
}

void cpu_main(unsigned index)
{
    init_cpu(index);
    if (index == 0) {
        pmu_find();
        main();
    } else {
        do_work(index);
    }
}

/* ---- C library ------------------------------------------------------ */

void *memcpy(void *to, const void *from, size_t size)
{
    void *result = to;

    asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
    return result;
}

void *memset(void *to, int byte, size_t size)
{
    void *result = to;

    asm volatile("rep stosb" : "+D"(to), "+c"(size) : "a"(byte) : "memory");
    return result;
}
