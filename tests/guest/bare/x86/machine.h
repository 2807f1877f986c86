/*
 * Bare-metal test guest: the processor and its machine; part of bare.h
 *
 * There is one address space, and one stack per CPU.  Interrupts are disabled
 * except where a test or user mode enables them.  Before a case the local APIC
 * is enabled and silent, and every gate leads to trap().
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef BARE_MACHINE_H
#define BARE_MACHINE_H

#include "layout.h"

#define BIT(n)          (1ull << (n))

/* ---- Code under test ------------------------------------------------ */

#define RUN_KERNEL_OVERHEAD 6
#define RUN_USER_OVERHEAD   1

/**
 * run_kernel - call a function while counters count
 * @ctrl: value of GLOBAL_CTRL meanwhile; 0 afterwards
 * @fn: the function; may use any register but RSP
 * @arg: its argument
 *
 * RUN_KERNEL_OVERHEAD instructions are counted in addition to @fn.
 *
 * Returns: the result of @fn.
 */
uint64_t run_kernel(uint64_t ctrl, code_fn *fn, uint64_t arg);

/**
 * run_user - call a function in user mode while counters count
 * @ctrl: value of GLOBAL_CTRL meanwhile; 0 afterwards
 * @fn: the function; may use any register but RSP
 * @arg: its argument
 *
 * Interrupts are enabled in user mode and disabled afterwards.
 * RUN_USER_OVERHEAD instructions of user mode and RUN_KERNEL_OVERHEAD of the
 * kernel are counted in addition to @fn.
 *
 * Returns: the result of @fn.
 */
uint64_t run_user(uint64_t ctrl, code_fn *fn, uint64_t arg);

/* run_kernel() or run_user() */
typedef uint64_t run_fn(uint64_t ctrl, code_fn *fn, uint64_t arg);

/* The address to which @fn of run_user() returns: INT $VEC_USER_EXIT. */
LABEL(user_exit);

/**
 * count_steps - count a function's instructions without a PMU
 * @fn: the function
 * @arg: its argument
 *
 * Runs it in user mode under RFLAGS.TF: a #DB per instruction.  A REP counts
 * once; so would an instruction that jumps to itself.
 *
 * step_trace[i] is then the program's address after i + 1 instructions; but not
 * after the last one, as @fn returns elsewhere than from run_user().
 *
 * Returns: the number of instructions.
 */
uint64_t count_steps(code_fn *fn, uint64_t arg);

/* The same in the kernel. */
uint64_t count_kernel_steps(code_fn *fn, uint64_t arg);

/* ---- Processor ------------------------------------------------------ */

struct regs {
    uint64_t rax, rbx, rcx, rdx, rbp, rsi, rdi;
    uint64_t r8, r9, r10, r11, r12, r13, r14, r15;
    uint64_t vector, error;
    uint64_t rip, cs, rflags, rsp, ss;
};

#define DE_VECTOR       0
#define DB_VECTOR       1
#define NMI_VECTOR      2
#define BP_VECTOR       3
#define OF_VECTOR       4
#define UD_VECTOR       6
#define NM_VECTOR       7
#define NP_VECTOR       11
#define GP_VECTOR       13
#define PF_VECTOR       14
#define MF_VECTOR       16

#define RFLAGS_TF       BIT(8)
#define RFLAGS_IF       BIT(9)

#define CR0_TS          BIT(3)
#define CR4_DE          BIT(3)
#define CR4_PCE         BIT(8)

static inline uint64_t read_cr0(void)
{
    uint64_t value;

    asm volatile("mov %%cr0, %0" : "=r"(value));
    return value;
}

static inline void write_cr0(uint64_t value)
{
    asm volatile("mov %0, %%cr0" : : "r"(value) : "memory");
}

static inline uint64_t read_cr2(void)
{
    uint64_t value;

    asm volatile("mov %%cr2, %0" : "=r"(value));
    return value;
}

static inline uint64_t read_cr3(void)
{
    uint64_t value;

    asm volatile("mov %%cr3, %0" : "=r"(value));
    return value;
}

static inline uint64_t read_cr4(void)
{
    uint64_t value;

    asm volatile("mov %%cr4, %0" : "=r"(value));
    return value;
}

static inline void write_cr4(uint64_t value)
{
    asm volatile("mov %0, %%cr4" : : "r"(value) : "memory");
}

static inline void sti(void)
{
    asm volatile("sti" : : : "memory");
}

static inline void cli(void)
{
    asm volatile("cli" : : : "memory");
}

static inline void pause(void)
{
    asm volatile("pause" : : : "memory");
}

static inline void outb(uint16_t port, uint8_t value)
{
    asm volatile("outb %0, %1" : : "a"(value), "Nd"(port));
}

static inline void outw(uint16_t port, uint16_t value)
{
    asm volatile("outw %0, %1" : : "a"(value), "Nd"(port));
}

static inline uint32_t inl(uint16_t port)
{
    uint32_t value;

    asm volatile("inl %1, %0" : "=a"(value) : "Nd"(port));
    return value;
}

static inline void outl(uint16_t port, uint32_t value)
{
    asm volatile("outl %0, %1" : : "a"(value), "Nd"(port));
}

static inline uint8_t inb(uint16_t port)
{
    uint8_t value;

    asm volatile("inb %1, %0" : "=a"(value) : "Nd"(port));
    return value;
}

static inline uint64_t rdmsr(uint32_t msr)
{
    uint32_t low, high;

    asm volatile("rdmsr" : "=a"(low), "=d"(high) : "c"(msr) : "memory");
    return (uint64_t)high << 32 | low;
}

static inline void wrmsr(uint32_t msr, uint64_t value)
{
    asm volatile("wrmsr" : : "c"(msr), "a"((uint32_t)value),
                 "d"((uint32_t)(value >> 32)) : "memory");
}

static inline uint64_t rdpmc(uint32_t index)
{
    uint32_t low, high;

    asm volatile("rdpmc" : "=a"(low), "=d"(high) : "c"(index) : "memory");
    return (uint64_t)high << 32 | low;
}

/**
 * struct cpuid - result of CPUID
 */
struct cpuid {
    uint32_t a, b, c, d;
};

static inline struct cpuid cpuid(uint32_t leaf, uint32_t subleaf)
{
    struct cpuid r;

    asm volatile("cpuid" : "=a"(r.a), "=b"(r.b), "=c"(r.c), "=d"(r.d)
                 : "a"(leaf), "c"(subleaf));
    return r;
}

/*
 * The same for instructions that can fault: trap() looks up the address in the
 * fixups, and goes on after the instruction with the vector in RDI.
 */
#define FIXUP(from, to) \
    ".pushsection fixups, \"aw\"\n.quad " from ", " to "\n.popsection\n"

/* Returns: 0, or the vector of the fault. */
static inline unsigned wrmsr_fault(uint32_t msr, uint64_t value)
{
    uint64_t vector;

    asm volatile("xor %%edi, %%edi\n1: wrmsr\n2:\n" FIXUP("1b", "2b")
                 : "=D"(vector)
                 : "c"(msr), "a"((uint32_t)value),
                   "d"((uint32_t)(value >> 32)) : "memory");
    return vector;
}

static inline unsigned rdmsr_fault(uint32_t msr)
{
    uint64_t vector;
    uint32_t low, high;

    asm volatile("xor %%edi, %%edi\n1: rdmsr\n2:\n" FIXUP("1b", "2b")
                 : "=D"(vector), "=a"(low), "=d"(high)
                 : "c"(msr) : "memory");
    return vector;
}

static inline unsigned rdpmc_fault(uint32_t index)
{
    uint64_t vector;
    uint32_t low, high;

    asm volatile("xor %%edi, %%edi\n1: rdpmc\n2:\n" FIXUP("1b", "2b")
                 : "=D"(vector), "=a"(low), "=d"(high)
                 : "c"(index) : "memory");
    return vector;
}

/* ---- Traps ---------------------------------------------------------- */

/**
 * on_trap - let a function handle a vector
 * @vector: exception or interrupt
 * @handler: called with interrupts disabled; may change @regs
 *
 * An interrupt handler calls apic_eoi() itself.
 */
void on_trap(unsigned vector, void (*handler)(struct regs *regs));

/**
 * set_gate - let a vector call code of the test directly
 * @vector: exception or interrupt
 * @entry: in assembly, ends with IRETQ; NULL for a gate that is not present
 */
void set_gate(unsigned vector, const void *entry);

/* ---- Memory --------------------------------------------------------- */

#define PAGE_SIZE       4096
#define PTE_P           BIT(0)
#define PTE_W           BIT(1)
#define PTE_U           BIT(2)
#define PTE_RW          (PTE_P | PTE_W | PTE_U)

/* Page @n of the window, which is unmapped when a test begins */
#define WINDOW(n)       ((uint8_t *)(WINDOW_BASE + (uint64_t)(n) * PAGE_SIZE))

extern uint64_t window[WINDOW_PAGES];

/* Pages for a test to map, which are zero when it begins */
#define SPARE_PAGES     40
extern uint8_t spare[SPARE_PAGES][PAGE_SIZE];

/**
 * map - map a page of the window
 * @n: the page's number
 * @page: its memory
 * @flags: PTE_P, PTE_W, PTE_U; 0 unmaps
 */
void map(unsigned n, const void *page, uint64_t flags);

/* ---- System calls --------------------------------------------------- */

#define MSR_SYSENTER_CS     0x174
#define MSR_SYSENTER_ESP    0x175
#define MSR_SYSENTER_EIP    0x176
#define MSR_LSTAR           0xc0000082
#define MSR_FMASK           0xc0000084

/* ---- Local APIC ----------------------------------------------------- */

#define MSR_APICBASE    0x1b

#define APIC_ID         0x20
#define APIC_VERSION    0x30
#define APIC_EOI        0xb0
#define APIC_SVR        0xf0
#define APIC_IRR        0x200
#define APIC_ICR        0x300
#define APIC_ICR_HIGH   0x310
#define APIC_LVT_TIMER  0x320
#define APIC_LVT_PC     0x340
#define APIC_TIMER_INIT 0x380
#define APIC_TIMER_DIV  0x3e0

#define APIC_MASKED     BIT(16)
#define APIC_NMI        (4 << 8)
#define APIC_SMI        (2 << 8)
#define APIC_INIT       (5 << 8)
#define APIC_STARTUP    (6 << 8)
#define APIC_ASSERT     BIT(14)
#define APIC_SELF       (1 << 18)

uint32_t apic_read(uint32_t reg);
void apic_write(uint32_t reg, uint32_t value);
void apic_eoi(void);

/* Whether the fixed interrupt @vector is requested and not yet taken */
bool apic_requested(unsigned vector);

/**
 * apic_x2_mode - go from xAPIC mode to x2APIC mode
 *
 * apic_read() and apic_write() follow; the next test begins in xAPIC mode.
 */
void apic_x2_mode(void);

/**
 * timer_once - interrupt VEC_TIMER, once
 * @ns: from now
 */
void timer_once(uint32_t ns);

/**
 * SLEEP - code that sleeps as often as the first argument says, and the handler
 *         of VEC_TIMER that wakes it up
 * @name: their labels are this and "_sleep", or "_wake_up"
 * @ns: a number, as it is written in assembly
 *
 * Each turn is six instructions, and two of the handler; timer_once(0) comes
 * before.
 */
#define SLEEP(name, ns)                        \
    name "_sleep:\n"                           \
    "    mov $0xfee00000, %eax\n"              \
    "1:  movl $" #ns ", 0x380(%rax)\n"         \
    "    sti\n"                                \
    "    hlt\n"                                \
    "    cli\n"                                \
    "    dec %rdi\n"                           \
    "    jnz 1b\n"                             \
    "    ret\n"                                \
    name "_wake_up:\n"                         \
    "    movl $0, 0xb0(%rax)\n"                \
    "    iretq\n"

/* ---- PCI ------------------------------------------------------------ */

#define PCI_ADDRESS     0xcf8
#define PCI_DATA        0xcfc

/*
 * The host bridge's switches for RAM from 0xd0000 to 0xeffff, and a value of
 * them; 0 is the other one.  A change is one of the memory map.
 */
#define PAM3_TO_6       (BIT(31) | 0x5c)
#define ALL_RAM         0x33333333

/* ---- Other CPUs ----------------------------------------------------- */

/**
 * start_cpu - let another CPU run a function
 * @index: the CPU; 0 is the first one, which calls this
 * @fn: called on its stack with interrupts disabled
 *
 * Starts it by INIT and SIPI, every time.  The test fails if there is no such
 * CPU.
 */
void start_cpu(unsigned index, void (*fn)(void));

/* Returns: whether the function passed to start_cpu() has returned */
bool cpu_done(unsigned index);

unsigned cpu_index(void);

#endif /* BARE_MACHINE_H */
