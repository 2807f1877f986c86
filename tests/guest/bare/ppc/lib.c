/*
 * Bare-metal test guest: processor, interrupts, memory
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "internal.h"
#include "pmu.h"

_Static_assert(offsetof(struct regs, nip) == REGS_NIP, "layout.h");
_Static_assert(offsetof(struct regs, msr) == REGS_MSR, "layout.h");
_Static_assert(offsetof(struct regs, cr) == REGS_CR, "layout.h");
_Static_assert(offsetof(struct regs, lr) == REGS_LR, "layout.h");
_Static_assert(offsetof(struct regs, ctr) == REGS_CTR, "layout.h");
_Static_assert(offsetof(struct regs, xer) == REGS_XER, "layout.h");
_Static_assert(offsetof(struct regs, vector) == REGS_VECTOR, "layout.h");
_Static_assert(sizeof(struct regs) <= REGS_SIZE, "layout.h");

/* ---- Memory --------------------------------------------------------- */

/*
 * One radix tree for everything: all processes, and guest real addresses of
 * all partitions.  It maps the first GiB to itself.
 */
#define ROOT_BITS       13
#define LEVEL_BITS      9
#define PARTITIONS      4
#define FIRST_LPID      1
#define LPCR_BASE       (LPCR_HR | LPCR_UPRT | LPCR_LD)

/* Size of a tree of 52 bits, as partition and process tables have it. */
#define RADIX_TREE_52   (BIT(1) | 5 << 5)
#define ENTRY_VALID     BIT(0)
#define ENTRY_LEAF      BIT(1)
#define ENTRY_ACCESSED  (BIT(55) | BIT(56))
#define ENTRY_RWX       7
#define PARTITION_RADIX BIT(0)

static uint64_t root[1 << ROOT_BITS] __attribute__((aligned(0x10000)));
static uint64_t level[1 << LEVEL_BITS] __attribute__((aligned(0x1000)));
static uint64_t processes[2] __attribute__((aligned(0x1000)));
static uint64_t partitions[PARTITIONS][2] __attribute__((aligned(0x1000)));

static void init_memory(void)
{
    uint64_t tree = (uint64_t)root | RADIX_TREE_52 | ROOT_BITS;

    level[0] = ENTRY_VALID | ENTRY_LEAF | ENTRY_ACCESSED | ENTRY_RWX;
    root[0] = ENTRY_VALID | (uint64_t)level | LEVEL_BITS;
    processes[0] = tree;
    for (unsigned i = 0; i < PARTITIONS; i++) {
        partitions[i][0] = PARTITION_RADIX | tree;
        partitions[i][1] = (uint64_t)processes;
    }
    mtspr(SPR_LPCR, LPCR_BASE);
    mtspr(SPR_PTCR, (uint64_t)partitions);
    mtspr(SPR_PIDR, 0);
    mtspr(SPR_LPIDR, FIRST_LPID);
    asm volatile("ptesync\n\tisync" : : : "memory");
}

/* The segment that begins at SEGMENT, in the first entry of the SLB. */
#define SLB_ENTRY       (SEGMENT | BIT(36))

void use_hashed_table(uint64_t table, uint64_t vsid)
{
    partitions[FIRST_LPID][0] = table;
    mtspr(SPR_LPCR, mfspr(SPR_LPCR) & ~(LPCR_HR | LPCR_UPRT));
    asm volatile("slbmte %0, %1\n\tisync" : : "r"(vsid << 12), "r"(SLB_ENTRY));
}

void use_tree(void)
{
    asm volatile("slbie %0\n\tisync" : : "r"(SEGMENT));
    mtspr(SPR_LPCR, mfspr(SPR_LPCR) | LPCR_HR | LPCR_UPRT);
    partitions[FIRST_LPID][0] = PARTITION_RADIX | (uint64_t)root |
                                RADIX_TREE_52 | ROOT_BITS;
}

void code_changed(const void *from, size_t size)
{
    for (const char *p = from; p < (const char *)from + size; p += 64) {
        asm volatile("dcbst 0, %0\n\tsync\n\ticbi 0, %0" : : "r"(p)
                     : "memory");
    }
    asm volatile("sync\n\tisync" : : : "memory");
}

/* ---- Interrupts ----------------------------------------------------- */

#define VECTORS_END     0x1000
#define VECTOR_STEP     0x20

static void (*handlers[VECTORS_END / VECTOR_STEP])(struct regs *regs);
static uint32_t vectors[VECTORS_END / VECTOR_STEP];
static bool in_trap;

static uint32_t *vector_code(unsigned vector)
{
    uintptr_t address = vector;

    /* Hide from the compiler that this is near address 0. */
    asm("" : "+r"(address));
    return (uint32_t *)address;
}

static void write_vector(unsigned vector, uint32_t insn)
{
    uint32_t *code = vector_code(vector);

    if (*code != insn) {
        *code = insn;
        code_changed(code, sizeof(*code));
    }
}

void trap(struct regs *regs)
{
    void (*handler)(struct regs *) = handlers[regs->vector / VECTOR_STEP];

    if (in_trap) {
        fail("interrupt %lx at %lx while another is handled", regs->vector,
             regs->nip);
    }
    if (!handler) {
        fail("unexpected interrupt %lx at %lx, MSR %lx, DAR %lx, DSISR %lx",
             regs->vector, regs->nip, regs->msr, mfspr(SPR_DAR),
             mfspr(SPR_DSISR));
    }
    in_trap = true;
    handler(regs);
    in_trap = false;
}

void on_trap(unsigned vector, void (*handler)(struct regs *regs))
{
    handlers[vector / VECTOR_STEP] = handler;
}

void set_vector(unsigned vector, const void *entry)
{
    uint32_t distance = (uintptr_t)entry - vector;

    write_vector(vector, 0x48000000 | (distance & 0x3fffffc));
}

void skip_insn(struct regs *regs)
{
    regs->nip += 4;
}

static void init_vectors(void)
{
    for (unsigned i = 0; i < ARRAY_SIZE(vectors); i++) {
        vectors[i] = *vector_code(i * VECTOR_STEP);
    }
}

static void reset_vectors(void)
{
    for (unsigned i = 0; i < ARRAY_SIZE(vectors); i++) {
        write_vector(i * VECTOR_STEP, vectors[i]);
        handlers[i] = NULL;
    }
    in_trap = false;
}

/* ---- Single steps --------------------------------------------------- */

static uint64_t steps;

static void on_step(struct regs *regs)
{
    trace_step(steps++, regs->nip);
    if (regs->nip == (uint64_t)run_return) {
        regs->msr &= ~MSR_SE;
    }
}

uint64_t count_steps(uint64_t msr, code_fn *fn, uint64_t arg)
{
    steps = 0;
    on_trap(VEC_TRACE, on_step);
    run(MMCR0_FC, msr | MSR_SE, fn, arg);
    on_trap(VEC_TRACE, NULL);
    return steps;
}

/* ---- The machine ---------------------------------------------------- */

void init_machine(void)
{
    /* "attn" ends the machine. */
    mtspr(SPR_HID0, mfspr(SPR_HID0) | BIT(3));
    init_memory();
    init_vectors();
}

/* A tick of the decrementer is 2 ns: an hour. */
#define FAR_AWAY 0x1a000000000ull

void reset_machine(void)
{
    write_msr(STATE_HV);
    reset_vectors();
    mtspr(SPR_LPCR, LPCR_BASE);
    mtspr(SPR_LPIDR, FIRST_LPID);
    mtspr(SPR_DECR, FAR_AWAY);
    mtspr(SPR_HDEC, FAR_AWAY);
    mtspr(SPR_HFSCR, -1ull >> 8);
    mtspr(SPR_FSCR, -1ull >> 8);
    mtspr(SPR_BESCR, 0);
    mtspr(SPR_CTRL_WRITE, 1);
}

/* ---- C library ------------------------------------------------------ */

void *memcpy(void *to, const void *from, size_t size)
{
    char *t = to;
    const char *f = from;

    while (size--) {
        *t++ = *f++;
    }
    return to;
}

void *memset(void *to, int byte, size_t size)
{
    char *t = to;

    while (size--) {
        *t++ = byte;
    }
    return to;
}
