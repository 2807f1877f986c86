/*
 * QTest of the virtual PMU: code that x86's vendors share
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef VPMU_TEST_X86_H
#define VPMU_TEST_X86_H

#include "vpmu-test.h"

/* Modes of PmuTally. */
#define USER   1
#define KERNEL 0
#define GUEST  2
#define SMM    4
#define NR_MODES 8

enum {
    MSR_APICBASE   = 0x1b,
    MSR_APIC_SVR   = 0x80f,
    MSR_APIC_IRR0  = 0x820,
    MSR_APIC_LVTPC = 0x834,
};

#define SEL_ALL (SEL_EN | SEL_OS | SEL_USR)

#define LVT_NMI    0x400
#define LVT_MASKED 0x10000
#define VECTOR     0xa7

/**
 * struct X86Face - the PMU of a vendor
 * @face: the PMU in terms that architectures share
 * @evtsel: the register that selects the event of general-purpose counter 0
 * @counter: the register that is the counter, in its full width
 * @step: from one such register to the next counter's
 * @nr_counters: how many there are
 * @status: the register that shows which have overflowed, from bit 0
 * @masks_lvt: whether an interrupt masks the local APIC's entry
 */
typedef struct X86Face {
    Face face;
    uint32_t evtsel, counter, step;
    unsigned nr_counters;
    uint32_t status;
    bool masks_lvt;
} X86Face;

extern const X86Face intel_face, amd_face;

/**
 * add_kvm_cases - the cases that need KVM, if this is a host for them
 */
void add_kvm_cases(void);

/**
 * x86_args - Face.args
 */
char *x86_args(const char *cpu);

/**
 * x86_start - start a machine
 * @cpu: for -cpu
 */
Machine x86_start(const char *cpu);

/**
 * as_kvm - make QEMU handle a machine's state as under KVM
 *
 * See vpmu_kvm in target/i386/vpmu/qtest.c.
 */
void as_kvm(Machine *m);

/*
 * The places of values in cpu/msr_architectural_pmu, a subsection of QEMU
 * without this PMU: its arrays have 3, 18 and 18 elements.
 */
enum {
    STOCK_FIXED_CTRL,
    STOCK_GLOBAL_CTRL,
    STOCK_GLOBAL_STATUS,
    STOCK_OVF_CTRL,
    STOCK_FIXED,
    STOCK_COUNTER = STOCK_FIXED + 3,
    STOCK_EVTSEL = STOCK_COUNTER + 18,
    STOCK__MAX = STOCK_EVTSEL + 18,
};

/* Where this PMU marks that the subsection is its own, and by what */
#define STOCK_MARKED (STOCK_COUNTER + 12)
#define STOCK_MARK   0x76504d5576504d55ull

/* A value of that subsection */
typedef struct StockValue {
    unsigned at;
    uint64_t val;
} StockValue;

/**
 * stock_value - a value of that subsection in a stream
 */
uint64_t stock_value(const char *path, unsigned at);

/**
 * edit_stock - replace that subsection in a stream; for Machine.edit
 * @with: the values that are not 0, ended by one that is
 */
void edit_stock(const char *path, const void *with);

/**
 * edit_mark - likewise, replace the mark by the older one
 */
void edit_mark(const char *path, const void *unused);

/**
 * try_rdmsr, try_wrmsr, try_rdpmc - execute such an instruction
 * @cpl: the privilege at which it is executed
 *
 * Returns: false if it faults.
 */
bool try_rdmsr(Machine *m, uint32_t msr, uint64_t *val);
bool try_wrmsr(Machine *m, uint32_t msr, uint64_t val);
bool try_rdpmc(Machine *m, uint32_t ecx, unsigned cpl, uint64_t *val);

/**
 * rdmsr, wrmsr, rdpmc - execute such an instruction, which must not fault
 */
uint64_t rdmsr(Machine *m, uint32_t msr);
void wrmsr(Machine *m, uint32_t msr, uint64_t val);
uint64_t rdpmc(Machine *m, uint32_t ecx);

#define assert_msr(m, msr, expected) \
    g_assert_cmphex(rdmsr((m), (msr)), ==, (expected))

/**
 * write_cr4, write_efer - write a register that is not the PMU's
 */
void write_cr4(Machine *m, uint64_t val);
void write_efer(Machine *m, uint64_t val);

#define CR4_PCE   BIT64(8)
#define EFER_SVME BIT64(12)

/**
 * init - send INIT to a CPU
 */
void init(Machine *m);

/**
 * cpuid, cpuid_subleaf - execute CPUID
 * @regs: EAX, EBX, ECX and EDX
 */
void cpuid(Machine *m, uint32_t leaf, uint32_t regs[4]);
void cpuid_subleaf(Machine *m, uint32_t leaf, uint32_t subleaf,
                   uint32_t regs[4]);

/**
 * set_lvt - bring the local APIC into x2APIC mode, with an entry for the PMI
 */
void set_lvt(Machine *m, uint32_t lvt);

/**
 * requested - whether an interrupt waits in the local APIC
 */
bool requested(Machine *m, unsigned vector);

/**
 * take_nmi - whether an NMI was pending; clears it
 */
bool take_nmi(Machine *m);

/**
 * evtsel_msr, counter_msr - registers of a general-purpose counter
 */
uint32_t evtsel_msr(unsigned i);
uint32_t counter_msr(unsigned i);

/**
 * start_gp - enable a general-purpose counter
 * @evtsel: the register's value; SEL_EN is added
 */
void start_gp(Machine *m, unsigned i, uint64_t evtsel);

/**
 * arm_gp - let a counter run that overflows after @distance instructions
 * @flags: bits for the register, as SEL_INT
 */
void arm_gp(Machine *m, unsigned i, uint64_t distance, uint64_t flags);

/**
 * x86_read_register, x86_write_register, x86_prepare, x86_select, x86_read,
 * x86_write - implementation of struct Face that vendors share
 */
uint64_t x86_read_register(Machine *m, uint32_t reg);
void x86_write_register(Machine *m, uint32_t reg, uint64_t val);
void x86_prepare(Machine *m);
void x86_select(Machine *m, unsigned counter, uint64_t event, unsigned flags);
uint64_t x86_read(Machine *m, unsigned counter);
void x86_write(Machine *m, unsigned counter, uint64_t val);

/**
 * count_in_all_modes - let events happen, 1 << 4n in mode n
 */
void count_in_all_modes(Machine *m, PmuTally tally);

/**
 * add_x86_cases - add the cases that x86's vendors share
 */
void add_x86_cases(void);

#endif /* VPMU_TEST_X86_H */
