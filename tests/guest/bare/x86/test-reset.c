/*
 * Suite reset: the machine before a reset raises no interrupts after it
 *
 * Cycles follow time here, so that a counter can overflow while no CPU executes
 * anything, between the last instruction before the reset and the first one
 * after it.  The NMI would come ahead of that one, or wake a CPU that is not
 * started, through the vector of real mode: the code at that vector counts it.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"

/* The reset control register of Intel's chipsets: reset the whole machine. */
#define RESET_PORT      0xcf9
#define RESET_ALL       0x06

#define RESETS          8
#define CYCLES          30000

/* In real mode, a page for the handler; vectors begin at address 0. */
#define HANDLER_BASE    0x9000
#define GATE_SIZE       4

/* A CPU that is not the first one stays there. */
CODE("    .code16\n"
     "reset_handler:\n"
     "    lock incl %cs:(reset_nmis - reset_handler)\n"
     "    mov $0x1b, %ecx\n"
     "    rdmsr\n"
     "    test $1, %ah\n"
     "    jz 1f\n"
     "    iretw\n"
     "1:  hlt\n"
     "    jmp 1b\n"
     "    .balign 4\n"
     "reset_nmis:\n"
     "    .long 0\n"
     "reset_handler_end:\n"
     "    .code64\n");
LABEL(reset_handler);
LABEL(reset_nmis);
LABEL(reset_handler_end);

/* The ROM copies no .bss: it survives a reset, as all memory does. */
static unsigned resets;
static volatile unsigned spinning, nmis_before;

static void count_cycles(void)
{
    apic_write(APIC_LVT_PC, APIC_NMI);
    wrmsr(MSR_PMC(0), -CYCLES & COUNTER_MASK);
    wrmsr(MSR_GLOBAL_CONTROL, GP(0));
}

static void on_nmi(struct regs *regs)
{
    (void)regs;
    nmis_before++;
    wrmsr(MSR_GLOBAL_CONTROL, 0);
    wrmsr(MSR_GLOBAL_OVF_CTRL, rdmsr(MSR_GLOBAL_STATUS));
    count_cycles();
}

static void spin(void)
{
    pmu_reset();
    pmu_gp(0, EV_CYCLES | SEL_ALL | SEL_INT, 0);
    count_cycles();
    for (;;) {
        spinning = true;
    }
}

static void install_handler(void)
{
    const uint32_t gate = HANDLER_BASE >> 4 << 16;

    memcpy((void *)HANDLER_BASE, reset_handler,
           reset_handler_end - reset_handler);
    memcpy((void *)(NMI_VECTOR * GATE_SIZE), &gate, sizeof(gate));
}

TEST(reset, interrupts_nobody)
{
    const volatile uint32_t *nmis =
        (uint32_t *)(HANDLER_BASE + (reset_nmis - reset_handler));

    if (!resets) {
        install_handler();
    }
    if (resets++ < RESETS) {
        spinning = false;
        nmis_before = 0;
        on_trap(NMI_VECTOR, on_nmi);
        start_cpu(1, spin);
        expect(spin_until(spinning), true, "the other CPU");
        expect(spin_until(nmis_before), true, "NMIs before the reset");
        pmu_gp(0, EV_CYCLES | SEL_ALL | SEL_INT, 0);
        count_cycles();
        outb(RESET_PORT, RESET_ALL);
        for (;;) {
            pause();
        }
    }
    resets = 0;
    expect(*nmis, 0, "NMIs in CPUs that have been reset");
}
