/*
 * Suite fault: an instruction that is interrupted does not complete
 *
 * Handlers have a known length, so that privileged states are exact, too.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"

/* With the branch at the vector, they have HANDLER_INSNS; they use r10. */
#define HANDLER_INSNS 5

CODE("fault_skip:\n"
     "    mfspr r10, 26\n"
     "    addi r10, r10, 4\n"
     "    mtspr 26, r10\n"
     "    rfid\n"
     "fault_skip_hv:\n"
     "    mfspr r10, 314\n"
     "    addi r10, r10, 4\n"
     "    mtspr 314, r10\n"
     "    hrfid\n"
     "fault_to_r11:\n"
     "    mtspr 26, r11\n"
     "    nop\n"
     "    nop\n"
     "    rfid\n");
LABEL(fault_skip);
LABEL(fault_skip_hv);
LABEL(fault_to_r11);

/* The instruction in the middle of a block and of a loop. */
#define IN_LOOP(name, insns)                    \
    CODE(name ":\n"                             \
         "    mtctr r3\n"                       \
         "    lis r9, 0x4000\n"                 \
         "    lis r8, .text.code@ha\n"          \
         "    li r0, 0x7e59\n"                  \
         "1:  nop\n"                            \
         "    nop\n"                            \
         insns                                  \
         "    nop\n"                            \
         "    bdnz 1b\n"                        \
         "    blr\n")

IN_LOOP("fault_none", "");
IN_LOOP("fault_trap", "trap\n");
IN_LOOP("fault_illegal", ".long 0\n");
IN_LOOP("fault_privileged", "mfmsr r4\n");
IN_LOOP("fault_privileged_spr", "mfspr r4, 795\n");
IN_LOOP("fault_rfid", "rfid\n");
IN_LOOP("fault_fp", "fadd f1, f1, f1\n");
IN_LOOP("fault_vector", "vaddubm v1, v1, v1\n");
IN_LOOP("fault_vsx", "xxlor 33, 33, 33\n");
IN_LOOP("fault_load", "lwz r4, 0(r9)\n");
IN_LOOP("fault_store", "stdu r4, 8(r9)\n");
IN_LOOP("fault_lmw", "lmw r14, 0(r9)\n");
IN_LOOP("fault_stmw", "stmw r14, 0(r9)\n");
IN_LOOP("fault_alignment", "addi r7, r8, 2\nlwarx r4, 0, r7\n");
IN_LOOP("fault_tar", "mfspr r4, 815\n");
IN_LOOP("fault_sc", "sc\n");
IN_LOOP("fault_hypercall", "sc 1\n");
IN_LOOP("fault_hypervisor_spr", "mfspr r4, 318\n");
IN_LOOP("fault_hashst", "addi r7, r9, 64\nhashst r4, -8(r7)\n");
/* The operand that is rounded, or compared, is a signaling NaN. */
IN_LOOP("fault_round", "frin f1, f2\n");
IN_LOOP("fault_compare", "xscmpodp cr6, 2, 2\n");
IN_LOOP("fault_compare_quad", "xscmpoqp cr6, v2, v2\n");
code_fn fault_hashst, fault_round, fault_compare,
    fault_compare_quad;
code_fn fault_none, fault_trap, fault_illegal, fault_privileged,
    fault_privileged_spr, fault_rfid, fault_fp, fault_vector, fault_vsx,
    fault_load, fault_store, fault_lmw, fault_stmw, fault_alignment,
    fault_tar, fault_sc, fault_hypercall;

#define TURNS 25

/**
 * struct fault - expected results of a function of IN_LOOP()
 * @vector: the interrupt's vector
 * @by_hv: the hypervisor takes it, by HSRR0
 * @insns: instructions that complete in each turn
 * @states: the states in which it happens, a sum of PROBLEM and so on
 */
struct fault {
    const char *name;
    code_fn *fn;
    unsigned vector;
    bool by_hv;
    unsigned insns;
    unsigned states;
};

#define PROBLEM     1
#define HV_PROBLEM  2
#define PRIV        4
#define HV          8
#define PROBLEMS    (PROBLEM | HV_PROBLEM)
#define EVERYWHERE  15

static const struct {
    unsigned state;
    uint64_t msr;
} states[] = {
    { PROBLEM, STATE_PROBLEM },
    { HV_PROBLEM, STATE_HV_PROBLEM },
    { PRIV, STATE_PRIV },
    { HV, STATE_HV },
};

static void expect_fault(const struct fault *f, uint64_t msr)
{
    uint64_t completed = 4 + TURNS * f->insns + 1;
    uint64_t handled = TURNS * HANDLER_INSNS;
    bool in_hv = f->by_hv || msr & MSR_HV;
    struct counts c;

    c = measure(msr, f->fn, TURNS);
    expect_counts(f->name, c,
                  (in_hv ? handled : 0)
                  + ((msr & (MSR_HV | MSR_PR)) == MSR_HV ? completed : 0),
                  (in_hv ? 0 : handled)
                  + (!(msr & (MSR_HV | MSR_PR)) ? completed : 0),
                  msr & MSR_PR ? completed : 0);
}

/* @facilities: further bits of MSR that they need */
static void expect_faults_with(uint64_t facilities, const struct fault *f,
                               unsigned n)
{
    for (; n; n--, f++) {
        set_vector(f->vector, f->by_hv ? fault_skip_hv : fault_skip);
        for (unsigned i = 0; i < ARRAY_SIZE(states); i++) {
            if (f->states & states[i].state) {
                expect_fault(f, states[i].msr | facilities);
            }
        }
    }
}

static void expect_faults(const struct fault *f, unsigned n)
{
    expect_faults_with(0, f, n);
}

TEST(fault, none)
{
    expect_everywhere("no fault", fault_none, TURNS, 5 + 4 * TURNS);
}

TEST(fault, program)
{
    static const struct fault faults[] = {
        { "trap", fault_trap, VEC_PROGRAM, false, 4, EVERYWHERE },
        { "privileged", fault_privileged, VEC_PROGRAM, false, 4, PROBLEMS },
        { "privileged register", fault_privileged_spr, VEC_PROGRAM, false, 4,
          PROBLEMS },
        { "rfid", fault_rfid, VEC_PROGRAM, false, 4, PROBLEMS },
    };

    expect_faults(faults, ARRAY_SIZE(faults));
}

TEST(fault, illegal)
{
    static const struct fault faults[] = {
        { "illegal", fault_illegal, VEC_EMULATION, true, 4, EVERYWHERE },
    };

    expect_faults(faults, ARRAY_SIZE(faults));
}

TEST(fault, unavailable)
{
    static const struct fault faults[] = {
        { "floating point", fault_fp, VEC_FP, false, 4, EVERYWHERE },
        { "vector", fault_vector, VEC_VECTOR, false, 4, EVERYWHERE },
        { "VSX", fault_vsx, VEC_VSX, false, 4, EVERYWHERE },
        { "TAR", fault_tar, VEC_FACILITY, false, 4, PROBLEMS },
    };

    mtspr(SPR_FSCR, 0);
    expect_faults(faults, ARRAY_SIZE(faults));
}

TEST(fault, data)
{
    static const struct fault faults[] = {
        { "load", fault_load, VEC_DATA, false, 4, PROBLEMS },
        { "store", fault_store, VEC_DATA, false, 4, PROBLEMS },
        { "lmw", fault_lmw, VEC_DATA, false, 4, PROBLEMS },
        { "stmw", fault_stmw, VEC_DATA, false, 4, PROBLEMS },
        { "alignment", fault_alignment, VEC_ALIGNMENT, false, 5, EVERYWHERE },
    };

    expect_faults(faults, ARRAY_SIZE(faults));
}

#define SPR_HASHKEYR    468

/* A hash is stored to an unmapped address. */
TEST(fault, hash)
{
    static const struct fault store = {
        "hashst", fault_hashst, VEC_DATA, false, 5, PROBLEMS,
    };

    if (!is_power10()) {
        skip();
    }
    mtspr(SPR_HASHKEYR, 0x123456789abcdef);
    mtspr(SPR_DEXCR, DEXCR_NPHIE);
    expect_faults(&store, 1);
    mtspr(SPR_DEXCR, 0);
}

#define MSR_FE  (BIT(52) | BIT(55)) /* exceptions at the exact instruction */

/* Signaling NaNs of 64 and of 128 bits */
static uint64_t signaling_nan = 0x7ff0000000000001;
static uint64_t quad_nan[2] __attribute__((aligned(16))) = {
    0x7fff000000000000, 1,
};

static void load_nans(void)
{
    uint64_t msr = read_msr();

    write_msr(msr | MSR_FP | MSR_VEC | MSR_VSX);
    asm volatile("mtfsfi 6, 8\n"         /* FPSCR[VE] */
                 "lfd 2, 0(%0)\n"
                 "lxvd2x 34, 0, %1\n"
                 : : "b"(&signaling_nan), "b"(quad_nan) : "memory");
    write_msr(msr);
}

TEST(fault, arithmetic)
{
    static const struct fault faults[] = {
        { "frin", fault_round, VEC_PROGRAM, false, 4, EVERYWHERE },
        { "xscmpodp", fault_compare, VEC_PROGRAM, false, 4, EVERYWHERE },
        { "xscmpoqp", fault_compare_quad, VEC_PROGRAM, false, 4, EVERYWHERE },
    };

    load_nans();
    expect_faults_with(MSR_FP | MSR_VEC | MSR_VSX | MSR_FE, faults,
                       ARRAY_SIZE(faults));
}

TEST(fault, partition)
{
    static const struct fault faults[] = {
        { "load", fault_load, VEC_HV_DATA, true, 4, PRIV },
        { "store", fault_store, VEC_HV_DATA, true, 4, PRIV },
        { "lmw", fault_lmw, VEC_HV_DATA, true, 4, PRIV },
    };

    expect_faults(faults, ARRAY_SIZE(faults));
}

/* A branch to an unmapped address completes. */
CODE("fault_fetch:\n"
     "    mr r4, r3\n"
     "    lis r9, 0x4000\n"
     "    mtctr r9\n"
     "    bcl 20, 31, fault_fetch_here\n"
     "fault_fetch_here:\n"
     "    mfspr r11, 8\n"
     "    addi r11, r11, fault_fetch_back - fault_fetch_here\n"
     "1:  nop\n"
     "    bctr\n"
     "fault_fetch_back:\n"
     "    addic. r4, r4, -1\n"
     "    bne 1b\n"
     "    lis r5, run_return@ha\n"
     "    addi r5, r5, run_return@l\n"
     "    mtlr r5\n"
     "    blr\n");
code_fn fault_fetch;

TEST(fault, fetch)
{
    set_vector(VEC_CODE, fault_to_r11);
    expect_counts("problem state",
                  measure(STATE_PROBLEM, fault_fetch, TURNS),
                  0, TURNS * HANDLER_INSNS, 6 + 4 * TURNS + 4);
    expect_counts("hypervisor's problem state",
                  measure(STATE_HV_PROBLEM, fault_fetch, TURNS),
                  TURNS * HANDLER_INSNS, 0, 6 + 4 * TURNS + 4);
}

/* A system call completes, and returns to the calling state. */
TEST(fault, system_call)
{
    const uint64_t n = 5 + 5 * TURNS, calls = TURNS * NOTHING_INSNS;

    expect_counts("problem", measure(STATE_PROBLEM, fault_sc, TURNS),
                  0, calls, n);
    expect_counts("privileged", measure(STATE_PRIV, fault_sc, TURNS),
                  0, n + calls, 0);
    expect_counts("HV problem", measure(STATE_HV_PROBLEM, fault_sc, TURNS),
                  calls, 0, n);
    expect_counts("HV", measure(STATE_HV, fault_sc, TURNS), n + calls, 0, 0);
    expect_counts("hypercall", measure(STATE_PRIV, fault_hypercall, TURNS),
                  calls, n, 0);
    expect_counts("problem state's hypercall",
                  measure(STATE_PROBLEM, fault_hypercall, TURNS),
                  calls, 0, n);
}

/*
 * Go down and up again by rfid and hrfid.  The returns count in the states in
 * which they are executed.  r3: the lower state's MSR.
 */
CODE("fault_returns:\n"
     "    mfmsr r12\n"
     "    bcl 20, 31, fault_returns_here\n"
     "fault_returns_here:\n"
     "    mflr r11\n"
     "    li r9, 10\n"
     "    mtctr r9\n"
     "    addi r5, r11, fault_returns_down - fault_returns_here\n"
     "    li r0, 0x7e59\n"
     "1:  mtspr 26, r5\n"
     "    mtspr 27, r3\n"
     "    rfid\n"
     "fault_returns_down:\n"
     "    nop\n"
     "    nop\n"
     "    trap\n"               /* the handler skips it, as before */
     "    nop\n"
     "    nop\n"
     "    bdnz 1b\n"
     "    lis r5, run_return@ha\n"
     "    addi r5, r5, run_return@l\n"
     "    mtlr r5\n"
     "    blr\n");
code_fn fault_returns;

/* The trap's handler puts the old MSR (r12) into SRR1. */
CODE("fault_up:\n"
     "    mfspr r10, 26\n"
     "    addi r10, r10, 4\n"
     "    mtspr 26, r10\n"
     "    mtspr 27, r12\n"
     "    rfid\n");
LABEL(fault_up);

TEST(fault, returns)
{
    const unsigned n = 10;

    set_vector(VEC_PROGRAM, fault_up);
    expect_counts("HV to its problem state",
                  measure(STATE_HV, fault_returns, STATE_HV_PROBLEM),
                  7 + n * (3 + 6 + 3) + 4, 0, 2 * n);
    expect_counts("privileged to problem state",
                  measure(STATE_PRIV, fault_returns, STATE_PROBLEM),
                  0, 7 + n * (3 + 6 + 3) + 4, 2 * n);
}
