/*
 * Suite memory: loads, stores, and conditional stores that fail
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"

static uint8_t buffer[512] __attribute__((aligned(128)));

/* r3: a buffer.  Comments show the numbers of loads and stores. */
CODE("memory_loads:\n"          /* 9, 0 */
     "    lbz r4, 0(r3)\n"
     "    lhz r4, 2(r3)\n"
     "    lwz r4, 4(r3)\n"
     "    ld r4, 8(r3)\n"
     "    ldx r4, 0, r3\n"
     "    lwbrx r4, 0, r3\n"
     "    lwzu r4, 4(r3)\n"
     "    lha r4, 0(r3)\n"
     "    lwa r4, 0(r3)\n"
     "    blr\n"
     "memory_stores:\n"         /* 0, 6 */
     "    stb r4, 0(r3)\n"
     "    sth r4, 2(r3)\n"
     "    stw r4, 4(r3)\n"
     "    stdu r4, 8(r3)\n"
     "    stdbrx r4, 0, r3\n"
     "    dcbz 0, r3\n"
     "    blr\n"
     "memory_multiple:\n"       /* 3, 3 */
     "    stmw r14, 0(r3)\n"
     "    lmw r14, 0(r3)\n"
     "    stswi r5, r3, 13\n"
     "    lswi r5, r3, 13\n"
     "    stq r6, 0(r3)\n"
     "    lq r6, 0(r3)\n"
     "    blr\n"
     "memory_unaligned:\n"      /* 2, 2 */
     "    stw r4, 3(r3)\n"
     "    lwz r4, 3(r3)\n"
     "    stw r4, 62(r3)\n"
     "    lwz r4, 62(r3)\n"
     "    blr\n"
     "memory_reserved:\n"       /* 4, 4 */
     "    lwarx r4, 0, r3\n"
     "    stwcx. r4, 0, r3\n"
     "    ldarx r4, 0, r3\n"
     "    stdcx. r4, 0, r3\n"
     "    lharx r4, 0, r3\n"
     "    sthcx. r4, 0, r3\n"
     "    lqarx r4, 0, r3\n"
     "    stqcx. r4, 0, r3\n"
     "    blr\n"
     "memory_strings:\n"        /* 2, 2 */
     "    li r5, 13\n"
     "    mtxer r5\n"
     "    stswx r6, 0, r3\n"
     "    lswx r6, 0, r3\n"
     "    stswi r6, r3, 4\n"
     "    lswi r6, r3, 4\n"
     "    blr\n"
     "memory_floats:\n"         /* 5, 5 */
     "    stfd f1, 0(r3)\n"
     "    lfd f1, 0(r3)\n"
     "    stfs f1, 0(r3)\n"
     "    lfsu f1, 4(r3)\n"
     "    stfiwx f1, 0, r3\n"
     "    lfiwax f1, 0, r3\n"
     "    stfdp f2, 0(r3)\n"
     "    lfdp f2, 0(r3)\n"
     "    stxsdx 2, 0, r3\n"
     "    lxsdx 2, 0, r3\n"
     "    blr\n"
     "memory_vectors:\n"        /* 9, 9 */
     "    li r5, 8\n"
     "    rldicr r5, r5, 56, 7\n"
     "    stvebx v1, 0, r3\n"
     "    lvebx v1, 0, r3\n"
     "    stvehx v1, 0, r3\n"
     "    lvehx v1, 0, r3\n"
     "    stvewx v1, 0, r3\n"
     "    lvewx v1, 0, r3\n"
     "    stvx v1, 0, r3\n"
     "    lvx v1, 0, r3\n"
     "    stxvd2x 34, 0, r3\n"
     "    lxvd2x 34, 0, r3\n"
     "    stxvl 34, r3, r5\n"
     "    lxvl 34, r3, r5\n"
     "    stxvll 34, r3, r5\n"
     "    lxvll 34, r3, r5\n"
     "    stxsibx 34, 0, r3\n"
     "    lxsibzx 34, 0, r3\n"
     "    stxv 34, 16(r3)\n"
     "    lxv 34, 16(r3)\n"
     "    blr\n"
     /* Each reads and writes; numbers from 16 on need 128 bits */
     "memory_atomic:\n"         /* 15, 15 */
     "    .irp fc, 0, 4, 8, 16, 24, 25, 28\n"
     "    lwat r4, r3, \\fc\n"
     "    ldat r4, r3, \\fc\n"
     "    .endr\n"
     "    stwat r4, r3, 24\n"
     "    blr\n"
     "memory_uncached:\n"       /* 4, 4; of the hypervisor */
     "    stbcix r4, 0, r3\n"
     "    lbzcix r4, 0, r3\n"
     "    sthcix r4, 0, r3\n"
     "    lhzcix r4, 0, r3\n"
     "    stwcix r4, 0, r3\n"
     "    lwzcix r4, 0, r3\n"
     "    stdcix r4, 0, r3\n"
     "    ldcix r4, 0, r3\n"
     "    .long 0x7c001bac\n"  /* dcbi 0, r3: no access */
     "    blr\n"
     "memory_power10:\n"        /* 5, 5 */
     "    pstd r4, 8(r3)\n"
     "    pld r4, 8(r3)\n"
     "    pstxv 34, 16(r3)\n"
     "    plxv 34, 16(r3)\n"
     "    stxvp 34, 32(r3)\n"
     "    lxvp 34, 32(r3)\n"
     "    stxvrbx 34, 0, r3\n"
     "    lxvrbx 34, 0, r3\n"
     "    addi r5, r3, 64\n"
     "    hashst r4, -8(r5)\n"
     "    hashchk r4, -8(r5)\n"
     "    blr\n"
     "memory_none:\n"           /* 0, 0 */
     "    icbi 0, r3\n"
     "    dcbtst 0, r3\n"
     "    dcbt 0, r3\n"
     "    dcbst 0, r3\n"
     "    dcbf 0, r3\n"
     "    sync\n"
     "    isync\n"
     "    la r4, 8(r3)\n"
     "    blr\n");
code_fn memory_loads, memory_stores, memory_multiple, memory_unaligned,
    memory_reserved, memory_none, memory_strings, memory_floats,
    memory_vectors, memory_atomic, memory_uncached, memory_power10;

static void expect_accesses(const char *name, code_fn *fn, uint64_t msr,
                            unsigned loads, unsigned stores)
{
    mtspr(SPR_MMCR1, EV_LOADS_1 | EV_STORES_2 | EV_INSNS(3) | EV_LOADS_4);
    for (unsigned pmc = 1; pmc <= 4; pmc++) {
        write_pmc(pmc, 0);
    }
    run(0, msr, fn, (uint64_t)buffer);
    expect(read_pmc(1), loads, "%s, MSR %lx: loads", name, msr);
    expect(read_pmc(4), loads, "%s, MSR %lx: loads, PMC4", name, msr);
    expect(read_pmc(2), stores, "%s, MSR %lx: stores", name, msr);
}

TEST(memory, kinds)
{
    static const struct {
        const char *name;
        code_fn *fn;
        unsigned loads, stores;
    } kinds[] = {
        { "loads", memory_loads, 9, 0 },
        { "stores", memory_stores, 0, 6 },
        { "multiple", memory_multiple, 3, 3 },
        { "unaligned", memory_unaligned, 2, 2 },
        { "reserved", memory_reserved, 4, 4 },
        { "strings", memory_strings, 2, 2 },
        { "none", memory_none, 0, 0 },
    };
    static const uint64_t states[] = {
        STATE_PROBLEM, STATE_HV_PROBLEM, STATE_PRIV, STATE_HV,
    };

    for (unsigned i = 0; i < ARRAY_SIZE(kinds); i++) {
        for (unsigned s = 0; s < ARRAY_SIZE(states); s++) {
            expect_accesses(kinds[i].name, kinds[i].fn, states[s],
                            kinds[i].loads, kinds[i].stores);
        }
    }
}

/* Accesses of other facilities, states and processors; many are helpers. */
TEST(memory, facilities)
{
    const uint64_t all = MSR_FP | MSR_VEC | MSR_VSX;

    expect_accesses("floats", memory_floats, STATE_PROBLEM | all, 5, 5);
    expect_accesses("vectors", memory_vectors, STATE_PROBLEM | all, 9, 9);
    expect_accesses("atomic", memory_atomic, STATE_PROBLEM, 15, 15);
    expect_accesses("uncached", memory_uncached, STATE_HV, 4, 4);
    if (is_power10()) {
        mtspr(SPR_DEXCR, DEXCR_NPHIE);
        expect_accesses("POWER10", memory_power10, STATE_PROBLEM | all, 5, 5);
        mtspr(SPR_DEXCR, 0);
    }
}

/* The store takes the reservation, so that stdcx. does not store. */
CODE("memory_fail:\n"
     "    mtctr r3\n"
     "    lis r4, memory_word@ha\n"
     "    addi r4, r4, memory_word@l\n"
     "1:  lwarx r5, 0, r4\n"
     "    stwcx. r5, 0, r4\n"   /* stores */
     "    stwcx. r5, 0, r4\n"   /* fails, without a reservation */
     "    bdnz 1b\n"
     "    blr\n"
     ".globl memory_word\n"
     "    .balign 16\n"
     "memory_word:\n"
     "    .quad 0, 0\n");
code_fn memory_fail;

TEST(memory, failed_stores)
{
    mtspr(SPR_MMCR1, EV_STCX_FAIL_1 | EV_STORES_2);
    run(0, STATE_PROBLEM, memory_fail, 100);
    expect(read_pmc(1), 100, "failed");
    expect(read_pmc(5), 3 + 400 + 1 + RUN_OVERHEAD, "instructions");
}

/* A load that faults does not count. */
CODE("memory_fault:\n"
     "    lis r9, 0x4000\n"
     "    ld r4, 0(r3)\n"
     "    ld r4, 0(r9)\n"
     "    std r4, 0(r9)\n"
     "    std r4, 0(r3)\n"
     "    lmw r14, 0(r9)\n"
     "    blr\n");
code_fn memory_fault;

TEST(memory, faults)
{
    on_trap(VEC_DATA, skip_insn);
    mtspr(SPR_MMCR1, EV_LOADS_1 | EV_STORES_2);
    run(MMCR0_FCH | MMCR0_FCS, STATE_PROBLEM, memory_fault,
        (uint64_t)buffer);
    expect(read_pmc(1), 1, "loads");
    expect(read_pmc(2), 1, "stores");
}

/* An overflow is at the exact access. */
TEST(memory, overflow)
{
    for (unsigned n = 1; n <= 9; n++) {
        mtspr(SPR_MMCR1, EV_LOADS_1);
        write_pmc(1, PMC_NEGATIVE - n);
        sample();
        run(MMCR0_FCH | MMCR0_ALERT | MMCR0_FCECE, STATE_PROBLEM,
            memory_loads, (uint64_t)buffer);
        expect(sample_count, 1, "load %u: samples", n);
        expect(samples[0].siar, (uint64_t)memory_loads + 4 * (n - 1),
               "load %u: SIAR", n);
        expect(samples[0].nip, (uint64_t)memory_loads + 4 * n,
               "load %u: SRR0", n);
    }
}

/*
 * TLB misses: one for each new page
 */

#define PAGE_SIZE       4096    /* QEMU's TLB uses this size for all mappings */
#define WINDOW_PAGES    24

static uint32_t window[WINDOW_PAGES][PAGE_SIZE / 4]
    __attribute__((aligned(PAGE_SIZE)));

/* r3: address and number of pages to touch; window has its own pages. */
struct touch {
    uint64_t base, pages;
};

CODE("memory_load_pages:\n"
     "    ld r4, 8(r3)\n"
     "    ld r3, 0(r3)\n"
     "    mtctr r4\n"
     "1:  lwz r4, 8(r3)\n"
     "    lwz r4, 16(r3)\n"
     "    addi r3, r3, 4096\n"
     "    bdnz 1b\n"
     "    blr\n"
     "memory_store_pages:\n"
     "    ld r4, 8(r3)\n"
     "    ld r3, 0(r3)\n"
     "    mtctr r4\n"
     "1:  stw r4, 8(r3)\n"
     "    stw r4, 16(r3)\n"
     "    addi r3, r3, 4096\n"
     "    bdnz 1b\n"
     "    blr\n");
code_fn memory_load_pages, memory_store_pages;

/* Drop all translations. */
static void forget_translations(void)
{
    mtspr(SPR_PIDR, 0);
}

static uint64_t misses_of(code_fn *fn, unsigned pages)
{
    /* It has its own page, and so costs exactly one miss. */
    static struct touch touch __attribute__((aligned(PAGE_SIZE)));

    touch = (struct touch) { (uint64_t)window, pages };
    write_pmc(3, 0);
    forget_translations();
    run(MMCR0_FCH | MMCR0_FCS, STATE_PROBLEM, fn, (uint64_t)&touch);
    return read_pmc(3);
}

TEST(memory, data_tlb_misses)
{
    mtspr(SPR_MMCR1, EV_DTLB_MISS_3);
    for (unsigned pages = 1; pages <= WINDOW_PAGES; pages++) {
        expect(misses_of(memory_load_pages, pages), 1 + pages,
               "%u pages: loads that missed", pages);
        expect(misses_of(memory_store_pages, pages), 1 + pages,
               "%u pages: stores that missed", pages);
    }
}

/* Write code that jumps from page to page, and returns from the last. */
static void write_code_pages(unsigned pages)
{
    for (unsigned i = 0; i < pages; i++) {
        window[i][0] = i + 1 < pages ? 0x48000000 | PAGE_SIZE : 0x4e800020;
    }
    code_changed(window, sizeof(window));
}

TEST(memory, code_tlb_misses)
{
    mtspr(SPR_MMCR1, EV_ITLB_MISS_4);
    for (unsigned pages = 1; pages <= WINDOW_PAGES; pages++) {
        write_code_pages(pages);
        write_pmc(4, 0);
        forget_translations();
        run(MMCR0_FCH | MMCR0_FCS, STATE_PROBLEM, (code_fn *)window, 0);
        /* The last miss is that of the code's return. */
        expect(read_pmc(4), pages + 1, "%u pages: misses", pages);
    }
}

/*
 * QEMU walks page tables when it follows frames from outside, and these tables
 * may lead to a device.  Reading a register can have an effect: the serial port
 * has one that names the pending interrupt, and reading it ends that interrupt.
 * There is one while the port can send.
 */
#define SERIAL          0x60300d00103f8ull
#define SERIAL_IER      1
#define SERIAL_IIR      2
#define IER_SENT        2
#define IIR_SENT        2
#define IIR_NONE        1

/* A table of 32 entries, the last of which is where the registers are */
#define SERIAL_TABLE    (SERIAL & -0x100)
#define SERIAL_BITS     5
#define TABLE_VALID     BIT(0)
#define TABLE_BITS      9
#define TABLE_ADDRESS   0x0fffffffffffff00ull
#define FRAME           (BIT(33) | 31 << 16)

static uint64_t table[1 << TABLE_BITS] __attribute__((aligned(0x1000)));

/* In a loop, with the frame at r3. */
CODE("memory_frame:\n"
     "    mr r4, r1\n"
     "    mr r1, r3\n"
     "    lis r5, 1\n"
     "    mtctr r5\n"
     "1:  bdnz 1b\n"
     "    mr r1, r4\n"
     "    blr\n");
code_fn memory_frame;

static uint64_t *table_of(uint64_t entry)
{
    return (uint64_t *)(entry & TABLE_ADDRESS);
}

static unsigned interrupt_of_serial(void)
{
    /* A device's registers. */
    volatile uint8_t *serial = (uint8_t *)SERIAL;

    return serial[SERIAL_IIR] & 0xf;
}

static void enable_serial(unsigned interrupts)
{
    /* A device's registers. */
    volatile uint8_t *serial = (uint8_t *)SERIAL;

    serial[SERIAL_IER] = interrupts;
}

/* From the table of partitions, by the trees of the whole memory. */
TEST(memory, tables_in_device)
{
    uint64_t *partitions = table_of(mfspr(SPR_PTCR));
    uint64_t *second_gib = &table_of(*table_of(*partitions))[1];

    *second_gib = TABLE_VALID | (uint64_t)table | TABLE_BITS;
    table[0] = TABLE_VALID | SERIAL_TABLE | SERIAL_BITS;
    enable_serial(0);
    enable_serial(IER_SENT);
    expect(interrupt_of_serial(), IIR_SENT, "interrupt");
    expect(interrupt_of_serial(), IIR_NONE, "interrupt that was read");
    enable_serial(0);
    enable_serial(IER_SENT);
    run(MMCR0_FC, STATE_HV_PROBLEM, memory_frame, FRAME);
    expect(interrupt_of_serial(), IIR_SENT, "interrupt that nobody read");
    enable_serial(0);
    *second_gib = 0;
}

/*
 * A hashed table that is a bus: the group of the page at SEGMENT ends with the
 * registers of the serial port.
 */
#define HASH_TABLE      (SERIAL & -0x40000)
#define HASH_GROUP      ((SERIAL - HASH_TABLE) / 0x80)

CODE("memory_outside:\n"
     "    lwz r4, 0(r3)\n"
     "    blr\n");
code_fn memory_outside;

static unsigned pages_missing;

static void page_missing(struct regs *regs)
{
    pages_missing++;
    skip_insn(regs);
}

TEST(memory, hash_table_in_device)
{
    enable_serial(0);
    enable_serial(IER_SENT);
    use_hashed_table(HASH_TABLE, HASH_GROUP);
    on_trap(VEC_DATA, page_missing);
    pages_missing = 0;
    run(MMCR0_FC, STATE_HV | MSR_DR, memory_outside, SEGMENT);
    expect(pages_missing, 1, "pages that are not there");
    use_tree();
    expect(interrupt_of_serial(), IIR_SENT, "interrupt that nobody read");
    enable_serial(0);
}
