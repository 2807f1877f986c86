/*
 * Suite random: random programs, counted by random counters
 *
 * A program has instructions of all kinds: loops, calls, faults, system calls,
 * and in privileged states, changes of MMCR0, MSR[PMM] and the run latch.  A
 * walk through the program notes each step that it executes.  The expected
 * counts and overflows follow from these steps.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"

/* ---- Programs ------------------------------------------------------- */

enum kind {
    PLAIN, LOAD, STORE, JUMP, TAKEN, NOT_TAKEN, SET_CTR, LOOP, CALL, RETURN,
    FAULT, HV_FAULT, SYSCALL, HYPERCALL, READ_PMC5, SET_MMCR0, SET_PMM,
    SET_LATCH, END,
};

#define NR_MMCR0 8

/* The data at the program's argument, which it reads and writes */
struct context {
    uint64_t mmcr0[NR_MMCR0], msr[2], latch[2];
    uint64_t memory[2];
    uint64_t reads[64];
};

/*
 * Set the registers of a program, with space for the program after that.  The
 * handlers use r11; r12 is a copy of the link register.
 */
CODE("random_program:\n"
     "    ld r20, 0(r3)\n"
     "    ld r21, 8(r3)\n"
     "    ld r22, 16(r3)\n"
     "    ld r23, 24(r3)\n"
     "    ld r24, 32(r3)\n"
     "    ld r25, 40(r3)\n"
     "    ld r26, 48(r3)\n"
     "    ld r27, 56(r3)\n"
     "    ld r28, 64(r3)\n"
     "    ld r29, 72(r3)\n"
     "    ld r30, 80(r3)\n"
     "    ld r31, 88(r3)\n"           /* 12 loads */
     "    mflr r12\n"
     "    addi r4, r3, 96\n"            /* memory */
     "    addi r9, r3, 112 - 8\n"       /* reads, before each */
     "    li r0, 0x7e59\n"
     "    cmpd cr2, r3, r3\n"
     "random_code:\n"
     "    .space 4 * 1024\n");
code_fn random_program;
extern uint32_t random_code[1024];

#define PROLOGUE_LOADS  12
#define PROLOGUE_INSNS  17

_Static_assert(offsetof(struct context, memory) == 96, "prologue");
_Static_assert(offsetof(struct context, reads) == 112, "prologue");

/* The instructions of programs; any of these can change r6 and r7. */
CODE("random_plain:\n"
     "    nop\n"
     "    addi r5, r5, 1\n"
     "    mulld r6, r5, r5\n"
     "    divd r6, r5, r3\n"
     "    mfcr r6\n"
     "    mftb r6\n"
     "    sync\n"
     "    isync\n"
     "random_load:\n"
     "    ld r6, 0(r4)\n"
     "    lbz r6, 5(r4)\n"
     "    lhax r6, 0, r4\n"
     "    lhbrx r6, 0, r4\n"
     "random_store:\n"
     "    std r5, 0(r4)\n"
     "    stb r5, 9(r4)\n"
     "    stwu r5, 0(r4)\n"
     "    sthbrx r5, 0, r4\n"
     "random_fault:\n"
     "    trap\n"
     "    fadd f1, f1, f1\n"
     "random_hv_fault:\n"
     "    .long 0\n"
     "random_others:\n"
     "    b .+8\n"
     "    beq cr2, .+8\n"
     "    bne cr2, .+8\n"
     "    li r10, 0\n"
     "    mtctr r10\n"
     "    bdnz .\n"
     "    bl .\n"
     "    sc\n"
     "    sc 1\n"
     "    mfspr r7, 791\n"
     "    stdu r7, 8(r9)\n"
     "    mtspr 795, r20\n"
     "    mtmsrd r28\n"
     "    mtspr 152, r30\n"
     "    mtlr r12\n"
     "    blr\n");
extern const uint32_t random_plain[8], random_load[4], random_store[4],
    random_fault[2], random_hv_fault[1], random_others[];

enum {
    INSN_B, INSN_BEQ, INSN_BNE, INSN_LI, INSN_MTCTR, INSN_BDNZ, INSN_BL,
    INSN_SC, INSN_SC_1, INSN_READ, INSN_KEEP, INSN_MMCR0, INSN_PMM, INSN_LATCH,
    INSN_MTLR, INSN_BLR,
};

struct program {
    uint64_t msr;
    struct context context;
    unsigned length, reads;
    struct {
        enum kind kind;
        unsigned arg;           /* a value, the number of turns, or a target */
    } insn[ARRAY_SIZE(random_code)];
};

static struct program program;

static void emit(enum kind kind, uint32_t word, unsigned arg)
{
    program.insn[program.length].kind = kind;
    program.insn[program.length].arg = arg;
    random_code[program.length++] = word;
}

#define emit_one_of(kind, words) \
    emit(kind, (words)[random() % ARRAY_SIZE(words)], 0)

static void emit_plain(void)
{
    emit_one_of(PLAIN, random_plain);
}

static void emit_branch(void)
{
    static const enum kind kinds[] = { JUMP, TAKEN, NOT_TAKEN };
    unsigned n = random() % 3;

    emit(kinds[n], random_others[INSN_B + n], 0);
    emit_plain();
}

static void emit_simple(void)
{
    switch (random() % 6) {
    case 0:
        emit_one_of(LOAD, random_load);
        break;
    case 1:
        emit_one_of(STORE, random_store);
        break;
    case 2:
        emit_branch();
        break;
    case 3:
        emit_one_of(FAULT, random_fault);
        break;
    default:
        emit_plain();
    }
}

static void emit_loop(void)
{
    unsigned turns = 1 + random() % 5, first;

    emit(PLAIN, random_others[INSN_LI] | turns, 0);
    emit(SET_CTR, random_others[INSN_MTCTR], turns);
    first = program.length;
    for (unsigned n = random() % 4; n; n--) {
        emit_simple();
    }
    emit(LOOP, random_others[INSN_BDNZ]
               | ((4 * (first - program.length)) & 0xfffc), first);
}

/* A read of PMC5, to be checked */
static void emit_read(void)
{
    if (program.reads < ARRAY_SIZE(program.context.reads)) {
        program.reads++;
        emit(READ_PMC5, random_others[INSN_READ], 0);
        emit(STORE, random_others[INSN_KEEP], 0);
    }
}

/* Instructions for privileged states only */
static void emit_privileged(void)
{
    unsigned n = random();

    switch (random() % 4) {
    case 0:
        n %= NR_MMCR0;
        emit(SET_MMCR0, random_others[INSN_MMCR0] + (n << 21), n);
        break;
    case 1:
        emit(SET_PMM, random_others[INSN_PMM] + ((n & 1) << 21), n & 1);
        break;
    case 2:
        emit(SET_LATCH, random_others[INSN_LATCH] + ((n & 1) << 21), n & 1);
        break;
    default:
        emit_read();
    }
}

static void emit_unit(void)
{
    switch (random() % 10) {
    case 0:
        emit_loop();
        break;
    case 1:
        emit(CALL, random_others[INSN_BL], 0);
        break;
    case 2:
        emit(SYSCALL, random_others[INSN_SC], 0);
        break;
    case 3:
        emit_one_of(HV_FAULT, random_hv_fault);
        break;
    case 4:
        emit(HYPERCALL, random_others[INSN_SC_1], 0);
        break;
    case 5:
    case 6:
        if (!(program.msr & MSR_PR)) {
            emit_privileged();
            break;
        }
        /* fall through */
    default:
        emit_simple();
    }
}

/* The called function follows the program's end. */
static void resolve_calls(unsigned leaf)
{
    for (unsigned i = 0; i < leaf; i++) {
        if (program.insn[i].kind == CALL) {
            program.insn[i].arg = leaf;
            random_code[i] = random_others[INSN_BL] | 4 * (leaf - i);
        }
    }
}

static const uint64_t freeze_bits[] = {
    MMCR0_FCS, MMCR0_FCP, MMCR0_FCPC, MMCR0_FCM1, MMCR0_FCM0, MMCR0_FCH,
    MMCR0_FC14, MMCR0_FC56, MMCR0_FC14WAIT, MMCR0_CC56RUN,
};

/* Choose a value with which most counters count most of the time. */
static uint64_t random_mmcr0(uint64_t more)
{
    uint64_t value = more;

    for (unsigned i = 0; i < ARRAY_SIZE(freeze_bits); i++) {
        if (random() % 8 == 0) {
            value |= freeze_bits[i];
        }
    }
    return value;
}

/**
 * generate - write a program
 * @msr: the MSR with which it runs
 * @more: bits of MMCR0 that it leaves set
 */
static void generate(uint64_t msr, uint64_t more)
{
    unsigned leaf;

    memset(&program, 0, sizeof(program));
    program.msr = msr;
    for (unsigned i = 0; i < NR_MMCR0; i++) {
        program.context.mmcr0[i] = random_mmcr0(more);
    }
    program.context.msr[0] = msr;
    program.context.msr[1] = msr | MSR_PMM;
    program.context.latch[1] = 1;
    for (unsigned n = 5 + random() % 30; n; n--) {
        emit_unit();
    }
    emit(PLAIN, random_others[INSN_MTLR], 0);
    emit(END, random_others[INSN_BLR], 0);
    leaf = program.length;
    emit_plain();
    emit(RETURN, random_others[INSN_BLR], 0);
    resolve_calls(leaf);
    code_changed(random_code, 4 * program.length);
}

/* ---- Execution ------------------------------------------------------ */

CODE("random_skip:\n"
     "    mfspr r11, 26\n"
     "    addi r11, r11, 4\n"
     "    mtspr 26, r11\n"
     "    rfid\n"
     "random_skip_hv:\n"
     "    mfspr r11, 314\n"
     "    addi r11, r11, 4\n"
     "    mtspr 314, r11\n"
     "    hrfid\n");
LABEL(random_skip);
LABEL(random_skip_hv);

#define IS_BRANCH   1
#define IS_TAKEN    2
#define IS_LOAD     4
#define IS_STORE    8
#define IS_READ     16

/**
 * struct step - an instruction that has completed
 * @address: its own
 * @next: the return address of an interrupt after it
 * @state, @mmcr0: the state and MMCR0 with which it completes
 * @flags: its kind
 */
struct step {
    uint64_t address, next, mmcr0;
    struct state state;
    unsigned flags;
};

/**
 * struct walk - the progress of a program
 * @pc: index of its next instruction
 * @ctr, @lr: its registers; the latter an index, too
 * @mmcr0, @state: its MMCR0 and state
 * @steps: the number of completed instructions
 * @traced: the number of these that single steps see
 */
struct walk {
    unsigned pc, ctr, lr;
    uint64_t mmcr0;
    struct state state;
    unsigned steps, traced;
};

static struct step trace[4096];

static void completes(struct walk *w, uint64_t address, struct state state,
                      unsigned flags)
{
    if (w->steps < ARRAY_SIZE(trace)) {
        trace[w->steps++] = (struct step) {
            .address = address, .mmcr0 = w->mmcr0, .state = state,
            .flags = flags,
        };
    }
}

/* All steps since the program's last instruction return to its next one. */
static void returns_to(struct walk *w, unsigned from, uint64_t next)
{
    for (unsigned i = from; i < w->steps; i++) {
        trace[i].next = next;
    }
}

static struct state handler_state(const struct walk *w, bool by_hv)
{
    return (struct state) {
        .hv = by_hv || w->state.hv, .run = w->state.run,
    };
}

/* @flags has an element for each of @count instructions, the branch first. */
static void handle(struct walk *w, unsigned vector, const char *entry,
                   bool by_hv, const unsigned *flags, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        completes(w, i ? (uint64_t)entry + 4 * (i - 1) : vector,
                  handler_state(w, by_hv), flags[i]);
    }
}

static void handle_fault(struct walk *w, uint32_t word, bool by_hv)
{
    static const unsigned flags[5] = { IS_BRANCH | IS_TAKEN };
    unsigned vector = by_hv ? VEC_EMULATION :
                      word == random_fault[0] ? VEC_PROGRAM : VEC_FP;

    handle(w, vector, by_hv ? random_skip_hv : random_skip, by_hv, flags, 5);
}

static void handle_call(struct walk *w, bool by_hv)
{
    /* b; cmpdi, bne 1f; 1: cmpdi, bne, rfid */
    static const unsigned flags[NOTHING_INSNS] = {
        IS_BRANCH | IS_TAKEN, 0, IS_BRANCH | IS_TAKEN, 0, IS_BRANCH, 0,
    };
    unsigned first = w->steps;

    handle(w, VEC_SYSCALL, syscall_vector, by_hv, flags, NOTHING_INSNS);
    /* The first bne skips the code that ends a run. */
    for (unsigned i = first + 3; i < w->steps; i++) {
        trace[i].address = (uint64_t)nothing_vector + 4 * (i - first - 3);
    }
}

static unsigned flags_of(enum kind kind, const struct walk *w)
{
    switch (kind) {
    case LOAD:
        return IS_LOAD;
    case STORE:
        return IS_STORE;
    case READ_PMC5:
        return IS_READ;
    case NOT_TAKEN:
        return IS_BRANCH;
    case LOOP:
        return IS_BRANCH | (w->ctr > 1 ? IS_TAKEN : 0);
    case JUMP:
    case TAKEN:
    case CALL:
    case RETURN:
    case END:
        return IS_BRANCH | IS_TAKEN;
    default:
        return 0;
    }
}

/* Other effects of an instruction; w->pc is already that of the next one. */
static void take_effect(struct walk *w, enum kind kind, unsigned arg)
{
    switch (kind) {
    case JUMP:
    case TAKEN:
        w->pc++;
        break;
    case SET_CTR:
        w->ctr = arg;
        break;
    case LOOP:
        w->pc = --w->ctr ? arg : w->pc;
        break;
    case CALL:
        w->lr = w->pc;
        w->pc = arg;
        break;
    case RETURN:
        w->pc = w->lr;
        break;
    case SYSCALL:
        handle_call(w, false);
        break;
    case HYPERCALL:
        handle_call(w, true);
        break;
    case SET_MMCR0:
        w->mmcr0 = program.context.mmcr0[arg];
        break;
    case SET_PMM:
        w->state.pmm = arg;
        break;
    case SET_LATCH:
        w->state.run = arg;
        break;
    default:
        break;
    }
}

/* Returns: whether the program goes on */
static bool walk_on(struct walk *w)
{
    unsigned pc = w->pc++, first = w->steps;
    enum kind kind = program.insn[pc].kind;

    if (kind == FAULT || kind == HV_FAULT) {
        handle_fault(w, random_code[pc], kind == HV_FAULT);
    } else {
        completes(w, (uint64_t)&random_code[pc], w->state, flags_of(kind, w));
        w->traced += kind != SYSCALL && kind != HYPERCALL;
        take_effect(w, kind, program.insn[pc].arg);
    }
    returns_to(w, first, (uint64_t)(kind == END ? (const void *)run_return :
                                    &random_code[w->pc]));
    return kind != END;
}

static void walk_prologue(struct walk *w)
{
    for (unsigned i = 0; i < PROLOGUE_INSNS; i++) {
        uint64_t address = (uint64_t)random_program + 4 * i;

        completes(w, address, w->state, i < PROLOGUE_LOADS ? IS_LOAD : 0);
        w->traced++;
        trace[w->steps - 1].next = address + 4;
    }
}

/* Add the instructions of run() after the program. */
static void walk_out(struct walk *w)
{
    static const unsigned flags[RUN_HV_OVERHEAD - 1] = {
        IS_BRANCH | IS_TAKEN, 0, IS_BRANCH,
    };

    for (unsigned i = 0; i < RUN_STATE_OVERHEAD; i++) {
        completes(w, (uint64_t)run_return + 4 * i, w->state, 0);
    }
    handle(w, VEC_SYSCALL, syscall_vector, true, flags, ARRAY_SIZE(flags));
}

/**
 * walk - note the instructions that a run of the program executes
 * @mmcr0: MMCR0 at the beginning
 *
 * Returns: the number of steps in trace[] after which an interrupt can come.
 */
static unsigned walk(struct walk *w, uint64_t mmcr0)
{
    const struct state hv = { .hv = true, .run = true };
    unsigned end;

    memset(w, 0, sizeof(*w));
    w->mmcr0 = mmcr0;
    w->state = (struct state) {
        .hv = program.msr & MSR_HV, .problem = program.msr & MSR_PR,
        .run = true,
    };
    completes(w, (uint64_t)run_return - 4, hv, 0);
    trace[0].next = (uint64_t)random_program;
    walk_prologue(w);
    while (walk_on(w)) {
        continue;
    }
    end = w->steps;
    walk_out(w);
    return end;
}

/* ---- Counters ------------------------------------------------------- */

struct event {
    uint64_t mmcr1;
    unsigned flags;             /* one of them; 0 for all */
    bool with_latch;
};

/* For each counter. */
#define NR_EVENTS 4

#define EVERY(mmcr1_)       { .mmcr1 = mmcr1_ }
#define ONLY(mmcr1_, is)    { .mmcr1 = mmcr1_, .flags = is }
#define LATCHED(mmcr1_)     { .mmcr1 = mmcr1_, .with_latch = true }

static const struct event events[NR_PMCS][NR_EVENTS] = {
    { EVERY(EV_INSNS(1)), EVERY(EV_CYCLES(1)), ONLY(EV_BRANCHES_1, IS_BRANCH),
      ONLY(EV_LOADS_1, IS_LOAD) },
    { EVERY(EV_INSNS(2)), ONLY(EV_STORES_2, IS_STORE),
      ONLY(EV_TAKEN_2, IS_TAKEN), LATCHED(EV_RUN_CYCLES_2) },
    { EVERY(EV_INSNS(3)), EVERY(EV_INSNS(3)), EVERY(EV_CYCLES(3)),
      EVERY(EV_CYCLES(3)) },
    { EVERY(EV_INSNS(4)), EVERY(EV_CYCLES(4)), LATCHED(EV_RUN_INSNS_4),
      ONLY(EV_LOADS_4, IS_LOAD) },
};

struct counters {
    struct event event[NR_PMCS];
    uint64_t mmcr2;
};

static void choose_counters(struct counters *c)
{
    uint64_t mmcr1 = 0;

    c->mmcr2 = 0;
    for (unsigned i = 0; i < NR_PMCS; i++) {
        c->event[i] = events[i][random() % NR_EVENTS];
        mmcr1 |= c->event[i].mmcr1;
        for (unsigned n = 0; n <= 6; n++) {
            c->mmcr2 |= random() % 8 == 0 ? MMCR2_FIELD(n, i + 1) : 0;
        }
    }
    mtspr(SPR_MMCR1, mmcr1);
    mtspr(SPR_MMCR2, c->mmcr2);
}

static bool is_counted(const struct counters *c, unsigned pmc,
                       const struct step *s)
{
    const struct event *e = &c->event[pmc - 1];

    return (!e->flags || s->flags & e->flags)
           && (!e->with_latch || s->state.run)
           && !frozen(s->mmcr0, c->mmcr2, pmc, s->state);
}

/* The count of counter @pmc after the first @steps */
static uint64_t counted(const struct counters *c, unsigned pmc, unsigned steps)
{
    uint64_t count = 0;

    for (unsigned i = 0; i < steps; i++) {
        count += is_counted(c, pmc, &trace[i]);
    }
    return count;
}

/* ---- Trials --------------------------------------------------------- */

#define TRIALS 200

static const uint64_t states[] = {
    STATE_PROBLEM, STATE_PRIV | MSR_EE, STATE_HV | MSR_EE, STATE_HV_PROBLEM,
};

static void prepare(void)
{
    set_vector(VEC_PROGRAM, random_skip);
    set_vector(VEC_FP, random_skip);
    set_vector(VEC_EMULATION, random_skip_hv);
}

static void run_program(uint64_t mmcr0)
{
    mtspr(SPR_CTRL_WRITE, 1);
    run(mmcr0, program.msr, random_program, (uint64_t)&program.context);
    mtspr(SPR_CTRL_WRITE, 1);
}

static void clear_pmcs(void)
{
    for (unsigned pmc = 1; pmc <= NR_PMCS; pmc++) {
        write_pmc(pmc, 0);
    }
}

static void expect_reads(const struct counters *c, const struct walk *w,
                         unsigned trial)
{
    unsigned read = 0;

    for (unsigned i = 0; i < w->steps; i++) {
        if (trace[i].flags & IS_READ) {
            expect(program.context.reads[read], counted(c, 5, i),
                   "trial %u: read %u of PMC5", trial, read);
            read++;
        }
    }
    expect(read <= program.reads, true, "trial %u: reads", trial);
}

/* Add bits to the values that the program's mtmsrd sets. */
static void keep_in_msr(uint64_t bits)
{
    program.context.msr[0] |= bits;
    program.context.msr[1] |= bits;
}

/* Single steps of the program agree with the walk through it. */
static void expect_steps(const struct walk *w, unsigned trial)
{
    struct context context = program.context;

    keep_in_msr(MSR_SE);
    expect(count_steps(program.msr & ~MSR_EE, random_program,
                       (uint64_t)&program.context),
           w->traced, "trial %u: steps", trial);
    mtspr(SPR_CTRL_WRITE, 1);
    program.context = context;
}

TEST(random, counts)
{
    prepare();
    for (unsigned trial = 0; trial < TRIALS; trial++) {
        uint64_t mmcr0 = random_mmcr0(0);
        struct counters c;
        struct walk w;

        generate(states[trial % ARRAY_SIZE(states)], 0);
        walk(&w, mmcr0);
        expect_steps(&w, trial);
        choose_counters(&c);
        clear_pmcs();
        run_program(mmcr0);
        for (unsigned pmc = 1; pmc <= NR_PMCS; pmc++) {
            expect(read_pmc(pmc), counted(&c, pmc, w.steps),
                   "trial %u: PMC%u", trial, pmc);
        }
        expect_reads(&c, &w, trial);
    }
}

/* ---- Overflows ------------------------------------------------------ */

/* The first alert ends the program. */
static void on_alert(struct regs *regs)
{
    samples[0] = (struct sample) {
        .nip = regs->nip,
        .siar = mfspr(SPR_SIAR),
        .sier = mfspr(SPR_SIER),
        .mmcr0 = mfspr(SPR_MMCR0),
    };
    mtspr(SPR_MMCR0, MMCR0_FC);
    sample_count++;
    regs->nip = (uint64_t)run_return;
}

#define OVERFLOWING (MMCR0_ALERT | MMCR0_FCECE)
#define SIER_STATE  (SIER_SIPR | SIER_SIHV | SIER_SIAR_VALID)

static void expect_alert(const struct step *s, unsigned trial, uint64_t n)
{
    uint64_t sier = SIER_SIAR_VALID | (s->state.hv ? SIER_SIHV : 0)
                    | (s->state.problem ? SIER_SIPR : 0);

    expect(sample_count, 1, "trial %u, event %lu: alerts", trial, n);
    expect(samples[0].siar, s->address, "trial %u, event %lu: SIAR", trial,
           n);
    expect(samples[0].nip, s->next, "trial %u, event %lu: SRR0", trial, n);
    expect(samples[0].sier & SIER_STATE, sier, "trial %u, event %lu: SIER",
           trial, n);
    expect(samples[0].mmcr0 & (MMCR0_FC | MMCR0_PMAO | MMCR0_PMAE),
           MMCR0_FC | MMCR0_PMAO, "trial %u, event %lu: MMCR0", trial, n);
}

/*
 * Let counter @pmc overflow at each of its events before the program's end.
 * Returns the number of these events.
 */
static uint64_t expect_alerts(const struct counters *c, unsigned pmc,
                          uint64_t mmcr0, unsigned end, unsigned trial)
{
    uint64_t count[NR_PMCS] = {};

    for (unsigned i = 0; i < end; i++) {
        for (unsigned p = 0; p < NR_PMCS; p++) {
            count[p] += is_counted(c, p + 1, &trace[i]);
        }
        if (!is_counted(c, pmc, &trace[i])) {
            continue;
        }
        clear_pmcs();
        write_pmc(pmc, PMC_NEGATIVE - count[pmc - 1]);
        sample_count = 0;
        run_program(mmcr0);
        expect_alert(&trace[i], trial, count[pmc - 1]);
        for (unsigned p = 0; p < NR_PMCS; p++) {
            expect(read_pmc(p + 1), p == pmc - 1 ? PMC_NEGATIVE : count[p],
                   "trial %u, event %lu: PMC%u", trial, count[pmc - 1],
                   p + 1);
        }
    }
    return count[pmc - 1];
}

TEST(random, overflows)
{
    uint64_t alerts = 0;

    prepare();
    on_trap(VEC_PERFM, on_alert);
    for (unsigned trial = 0; trial < TRIALS; trial++) {
        uint64_t mmcr0 = random_mmcr0(OVERFLOWING);
        struct counters c;
        struct walk w;
        unsigned end;

        generate(states[trial % ARRAY_SIZE(states)], OVERFLOWING);
        end = walk(&w, mmcr0);
        choose_counters(&c);
        alerts += expect_alerts(&c, 1 + trial % NR_PMCS, mmcr0, end, trial);
    }
    print("= %lu alerts\n", alerts);
}

/* ---- Branches ------------------------------------------------------- */

#define ENTRIES 32

/* This entry is the target of the branch in the next entry. */
#define TARGET  2

/* Filters of MMCRA[IFM] */
enum { ALL, CALLS, INDIRECT, CONDITIONAL, NR_FILTERS };

extern code_fn bhrb_read, bhrb_clear;

static bool passes(uint32_t word, unsigned filter)
{
    bool link = word & 1;

    switch (filter) {
    case CALLS:
        return link;
    case INDIRECT:
        return word >> 26 == 19 && !link;
    case CONDITIONAL:
        return word >> 26 != 18 && (word >> 21 & 0x14) != 0x14;
    default:
        return true;
    }
}

static bool is_recorded(const struct step *s, unsigned filter)
{
    const uint64_t freezes = MMCR0_FCS | MMCR0_FCP | MMCR0_FCPC | MMCR0_FCH;

    return s->flags & IS_TAKEN
           && !frozen_by_mmcr0(s->mmcr0 & freezes, 1, s->state)
           && (s->state.problem || !is_power10())
           && passes(*(const uint32_t *)s->address, filter);
}

/* Get entries from the newest to the oldest.  Returns: their number */
static unsigned recorded(const struct walk *w, unsigned filter,
                         uint64_t *entries)
{
    unsigned count = 0;

    for (unsigned i = w->steps; i-- && count < ENTRIES;) {
        const struct step *s = &trace[i];

        if (!is_recorded(s, filter)) {
            continue;
        }
        if (*(const uint32_t *)s->address >> 26 == 19) {
            entries[count++] = s->next | TARGET;
        }
        if (count < ENTRIES) {
            entries[count++] = s->address;
        }
    }
    return count;
}

/* Exclude the hypervisor, which goes on when a program has ended. */
#define RECORDING (MMCR0_PMAE | MMCR0_FCH)

#define RECORDED_TRIALS 200

TEST(random, branches)
{
    uint64_t entries[ENTRIES], want[ENTRIES], total = 0;

    prepare();
    for (unsigned trial = 0; trial < RECORDED_TRIALS; trial++) {
        unsigned filter = random() % NR_FILTERS, count;
        uint64_t mmcr0 = random_mmcr0(RECORDING);
        struct counters c;
        struct walk w;

        generate(states[trial % ARRAY_SIZE(states)], RECORDING);
        walk(&w, mmcr0);
        choose_counters(&c);
        clear_pmcs();
        count = recorded(&w, filter, want);
        mtspr(SPR_MMCRA, MMCRA_IFM(filter));
        bhrb_clear(0);
        run_program(mmcr0);
        mtspr(SPR_MMCR0, MMCR0_FC);
        bhrb_read((uint64_t)entries);
        for (unsigned i = 0; i < ENTRIES; i++) {
            expect(entries[i], i < count ? want[i] : 0,
                   "trial %u: entry %u of %u", trial, i, count);
        }
        total += count;
    }
    print("= %lu entries\n", total);
}
