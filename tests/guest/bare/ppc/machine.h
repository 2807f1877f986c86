/*
 * Bare-metal test guest: the processor and its machine; part of bare.h
 *
 * The test is the hypervisor, in real mode with interrupts disabled; the code
 * under test runs in any of the four privilege states.  Translation maps
 * addresses below 1 GiB to themselves, and none above.  Before a case no
 * decrementer is near its end, and every vector leads to trap().
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef BARE_MACHINE_H
#define BARE_MACHINE_H

#include "layout.h"

/* A bit as Power numbers them: 0 is the most significant. */
#define BIT(n)          (1ull << (63 - (n)))

/* ---- Processor ------------------------------------------------------ */

/* The numbers are part of the instructions. */
#define mfspr(n)                                                        \
    ({                                                                  \
        uint64_t value_;                                                \
        asm volatile("mfspr %0, %1" : "=r"(value_) : "i"(n) : "memory"); \
        value_;                                                         \
    })

#define mtspr(n, value) \
    asm volatile("mtspr %0, %1" : : "i"(n), "r"((uint64_t)(value)) : "memory")

#define SPR_DSISR       18
#define SPR_DAR         19
#define SPR_DECR        22
#define SPR_SRR0        26
#define SPR_SRR1        27
#define SPR_PIDR        48
#define SPR_CTRL_READ   136
#define SPR_FSCR        153
#define SPR_HFSCR       190
#define SPR_TBL         268
#define SPR_TBL_WRITE   284
#define SPR_PVR         287
#define SPR_HDEC        310
#define SPR_LPCR        318
#define SPR_LPIDR       319
#define SPR_PTCR        464
#define SPR_BESCRS      800
#define SPR_BESCRR      802
#define SPR_EBBHR       804
#define SPR_EBBRR       805
#define SPR_BESCR       806
#define SPR_DEXCR       828
#define SPR_HID0        1008

/* Store and check hashes of return addresses; otherwise, these are no-ops. */
#define DEXCR_NPHIE     (BIT(5) | BIT(37))

#define LPCR_UPRT       BIT(41)
#define LPCR_HR         BIT(43)
#define LPCR_LD         BIT(46)
#define LPCR_HDICE      BIT(63)

#define MSR_SF          BIT(0)
#define MSR_HV          BIT(3)
#define MSR_VEC         BIT(38)
#define MSR_VSX         BIT(40)
#define MSR_EE          BIT(48)
#define MSR_PR          BIT(49)
#define MSR_FP          BIT(50)
#define MSR_ME          BIT(51)
#define MSR_SE          BIT(53)
#define MSR_IR          BIT(58)
#define MSR_DR          BIT(59)
#define MSR_PMM         BIT(61)
#define MSR_RI          BIT(62)

/* The four privilege states, as values of MSR. */
#define STATE_PRIV      (MSR_SF | MSR_ME | MSR_RI)
#define STATE_HV        (STATE_PRIV | MSR_HV)
#define STATE_PROBLEM   (STATE_PRIV | MSR_PR | MSR_EE | MSR_IR | MSR_DR)
#define STATE_HV_PROBLEM (STATE_PROBLEM | MSR_HV)

/* FSCR and HFSCR. */
#define FSCR_PM         BIT(60)
#define FSCR_BHRB       BIT(59)
#define FSCR_EBB        BIT(56)
#define FSCR_CAUSE(val) ((val) >> 56)
#define CAUSE_PM        3
#define CAUSE_BHRB      4
#define CAUSE_EBB       7

static inline bool is_power10(void)
{
    return mfspr(SPR_PVR) >> 16 >= 0x80;
}

static inline uint64_t read_msr(void)
{
    uint64_t value;

    asm volatile("mfmsr %0" : "=r"(value));
    return value;
}

static inline void write_msr(uint64_t value)
{
    asm volatile("mtmsrd %0" : : "r"(value) : "memory");
}

static inline void pause(void)
{
    asm volatile("or 27, 27, 27" : : : "memory");   /* yield */
}

/* ---- Code under test ------------------------------------------------ */

/*
 * Instructions of run() from the write of MMCR0 that starts the counters, which
 * is not counted, to the one that stops them, which is: hrfid; two in the
 * state, which leave it; then six of the hypervisor.
 */
#define RUN_STATE_OVERHEAD 2
#define RUN_HV_OVERHEAD    7
#define RUN_OVERHEAD       (RUN_STATE_OVERHEAD + RUN_HV_OVERHEAD)

/*
 * Instructions of "sc" with CALL_NOTHING in r0, in privileged state: the branch
 * at the vector, two of the first and three of the second label.
 */
#define NOTHING_INSNS   6
LABEL(syscall_vector);
LABEL(nothing_vector);

/**
 * run - call a function while counters count
 * @mmcr0: value of MMCR0 meanwhile; counters are frozen afterwards
 * @msr: the state in which it runs: STATE_ and further bits
 * @fn: the function; can change any register but r1, and r2 if it calls C
 * @arg: its argument
 *
 * run_mmcr0 is then the last value of MMCR0.
 *
 * Returns: the result of @fn.
 */
uint64_t run(uint64_t mmcr0, uint64_t msr, code_fn *fn, uint64_t arg);

extern uint64_t run_mmcr0;

/* The address to which @fn of run() returns */
LABEL(run_return);

/**
 * count_steps - count a function's instructions without a PMU
 * @msr: the state
 * @fn: the function; without interrupts
 * @arg: its argument
 *
 * Runs it with MSR[SE], which causes a trace interrupt per instruction.
 * step_trace[i] is then the program's address after i + 1 instructions.
 *
 * Returns: the number of instructions.
 */
uint64_t count_steps(uint64_t msr, code_fn *fn, uint64_t arg);

/* ---- Other processors ----------------------------------------------- */

/*
 * The next function for each other processor; NULL when it has finished.  It is
 * called with its index here, in real mode and without interrupts.
 */
extern void (*volatile work[MAX_OTHERS])(unsigned index);

/* ---- Interrupts ----------------------------------------------------- */

struct regs {
    uint64_t gpr[32];
    uint64_t nip, msr, cr, lr, ctr, xer, vector;
};

#define VEC_DATA        0x300
#define VEC_CODE        0x400
#define VEC_ALIGNMENT   0x600
#define VEC_PROGRAM     0x700
#define VEC_FP          0x800
#define VEC_DECR        0x900
#define VEC_HDEC        0x980
#define VEC_SYSCALL     0xc00
#define VEC_TRACE       0xd00
#define VEC_HV_DATA     0xe00
#define VEC_EMULATION   0xe40
#define VEC_PERFM       0xf00
#define VEC_VECTOR      0xf20
#define VEC_VSX         0xf40
#define VEC_FACILITY    0xf60
#define VEC_HV_FACILITY 0xf80

/**
 * on_trap - let a function handle a vector
 * @vector: its address
 * @handler: called with interrupts disabled; may change @regs
 */
void on_trap(unsigned vector, void (*handler)(struct regs *regs));

/**
 * set_vector - let a vector be a branch straight to code of the test
 * @vector: its address
 * @entry: in assembly; the branch is an instruction, too
 */
void set_vector(unsigned vector, const void *entry);

/* A handler that skips the instruction */
void skip_insn(struct regs *regs);

/* A segment of 256 MiB above the memory */
#define SEGMENT         0x10000000ull

/**
 * use_hashed_table() - translate data of the hypervisor by a hashed table
 * @table: its address, with nothing in its low bits: it has 256 KiB
 * @vsid: of the segment at SEGMENT; it is the group of the segment's first page
 *
 * Until use_tree(), which has the usual tables again.
 */
void use_hashed_table(uint64_t table, uint64_t vsid);
void use_tree(void);

/**
 * code_changed - let the processor see code that was written
 * @from: where it begins
 * @size: in bytes
 */
void code_changed(const void *from, size_t size);

/* An unmapped address: translated accesses fault. */
#define UNMAPPED        0x40000000ull

#endif /* BARE_MACHINE_H */
