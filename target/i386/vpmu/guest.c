/*
 * x86 virtual PMU: the description of a guest
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "hw/pmu/profile/callchain.h"
#include "hw/pmu/compat.h"
#include "guest.h"
#include "internal.h"
#include "monitor.h"

static const char *const mode_names[X86_VPMU_NR_MODES] = {
    "kernel", "user", "guest-kernel", "guest-user",
    "smm", "smm-user", "guest-smm", "guest-smm-user",
};

/* The bits of CR3 and of an entry that are the address of a table */
#define TABLE MAKE_64BIT_MASK(12, 40)

/* The first half of a top table is the program's, the second the kernel's. */
#define NR_PROGRAM_ENTRIES 256

static bool read_entries(CPUState *cpu, hwaddr addr, uint64_t *entries,
                         unsigned count)
{
    return address_space_read_ram(cpu_get_address_space(cpu, X86ASIdx_MEM),
                                  addr, MEMTXATTRS_UNSPECIFIED, entries,
                                  count * sizeof(*entries));
}

/* Returns: the first entry that leads somewhere; @count without one */
static unsigned first_present(const uint64_t *entries, unsigned count)
{
    unsigned i = 0;

    while (i < count && !(le64_to_cpu(entries[i]) & PG_PRESENT_MASK)) {
        i++;
    }
    return i;
}

/* Whether two tables belong to the same program: share the tables below */
static bool are_of_one_program(CPUState *cpu, hwaddr table, hwaddr other)
{
    uint64_t entries[NR_PROGRAM_ENTRIES], entry;
    unsigned i;

    if (!read_entries(cpu, table, entries, NR_PROGRAM_ENTRIES)) {
        return false;
    }
    i = first_present(entries, NR_PROGRAM_ENTRIES);
    return i < NR_PROGRAM_ENTRIES
           && read_entries(cpu, other + i * sizeof(entry), &entry, 1)
           && !(le64_to_cpu(entry ^ entries[i]) & TABLE);
}

/*
 * Against Meltdown, Linux has two tables for each process, in two pages: first
 * the kernel's, then the program's.  They are one address space.
 */
#define ISOLATED 0x1000

static uint64_t tables_of_process(CPUState *cpu)
{
    const CPUX86State *env = cpu_env(cpu);
    uint64_t table = env->cr[3] & TABLE;

    return table & ISOLATED && !(env->hflags & HF_GUEST_MASK)
           && are_of_one_program(cpu, table, table - ISOLATED)
           ? table - ISOLATED : table;
}

/* Tables of pages begin at a multiple of their size; lower bits are flags. */
static uint64_t page_tables(CPUState *cpu)
{
    const CPUX86State *env = cpu_env(cpu);

    if (!(env->cr[0] & CR0_PG_MASK)) {
        return 0;
    }
    if (env->hflags & HF_LMA_MASK) {
        return tables_of_process(cpu);
    }
    return (uint32_t)env->cr[3] & (env->cr[4] & CR4_PAE_MASK ? -32 : -4096);
}

/*
 * Identifies a nested guest: by the tables of its memory or, without nested
 * paging, by its VMCB.  Both are pages.  Under KVM neither is known.
 */
#define IS_GUEST 1

static uint64_t guests_guest(const CPUX86State *env)
{
    if (!(env->hflags & HF_GUEST_MASK)) {
        return 0;
    }
    return IS_GUEST
           | (env->hflags2 & HF2_NPT_MASK ? env->nested_cr3 : env->vm_vmcb);
}

static PmuGuestSpace x86_space(CPUState *cpu)
{
    return (PmuGuestSpace) {
        .guest = guests_guest(cpu_env(cpu)),
        .id = page_tables(cpu),
    };
}

static char *x86_space_name(const PmuGuestSpace *space)
{
    if (!space->guest) {
        return g_strdup_printf("cr3=0x%" PRIx64, space->id);
    }
    return g_strdup_printf("guest=0x%" PRIx64 ",cr3=0x%" PRIx64,
                           space->guest & ~IS_GUEST, space->id);
}

/*
 * Linux begins programs with 0 in all registers but the stack pointer, which no
 * program has later on.
 */
static bool x86_begins(CPUState *cpu)
{
    const CPUX86State *env = cpu_env(cpu);
    target_ulong any = 0;

    for (unsigned i = 0; i < CPU_NB_REGS; i++) {
        any |= i == R_ESP ? 0 : env->regs[i];
    }
    return !any;
}

/*
 * A frame begins with the caller's frame pointer; above it is the return
 * address.  The callchain of a program must not read memory of the kernel,
 * which has the upper half of 64-bit addresses.
 */
static PmuStack stack64(const CPUX86State *env, PmuGuestMemory *memory)
{
    bool user = env->hflags & HF_CPL_MASK;

    return (PmuStack) {
        .read = pmu_guest_read,
        .opaque = memory,
        .word = 8,
        .return_offset = 8,
        .lowest = env->regs[R_ESP],
        .highest = user ? INT64_MAX : UINT64_MAX,
        .reach = user ? PMU_STACK_REACH : PMU_STACK_REACH_KERNEL,
    };
}

static PmuStack stack32(const CPUX86State *env, PmuGuestMemory *memory)
{
    return (PmuStack) {
        .read = pmu_guest_read,
        .opaque = memory,
        .word = 4,
        .return_offset = 4,
        .lowest = (uint32_t)env->regs[R_ESP],
        .highest = UINT32_MAX,
        .reach = env->hflags & HF_CPL_MASK ? PMU_STACK_REACH
                                           : PMU_STACK_REACH_KERNEL,
    };
}

/* QEMU cannot read the memory of nested guests, not for debuggers either. */
static bool has_frames(const CPUX86State *env)
{
    return env->hflags & (HF_CS64_MASK | HF_CS32_MASK)
           && !(env->hflags & HF_GUEST_MASK);
}

static unsigned x86_callchain(CPUState *cpu, uint64_t *callers, unsigned max)
{
    const CPUX86State *env = cpu_env(cpu);
    PmuGuestMemory memory = { .cpu = cpu };
    bool is_64_bit = env->hflags & HF_CS64_MASK;
    PmuStack stack = is_64_bit ? stack64(env, &memory) : stack32(env, &memory);
    uint64_t frame = env->regs[R_EBP];

    return has_frames(env) ? pmu_callchain(&stack,
                                           is_64_bit ? frame : (uint32_t)frame,
                                           callers, max) : 0;
}

/*
 * Programs must not read Linux's own data, which their tables do not even map.
 * So the kernel's tables are walked for it, without checks of privilege.
 */
typedef struct KernelMemory {
    CPUState *cpu;
    uint64_t table;
} KernelMemory;

static bool find_in_tables(const KernelMemory *m, uint64_t addr, hwaddr *phys)
{
    bool has_5_levels = cpu_env(m->cpu)->cr[4] & CR4_LA57_MASK;
    uint64_t table = m->table, entry;

    for (unsigned level = has_5_levels ? 5 : 4; level; level--) {
        unsigned shift = 3 + 9 * level;

        if (!read_entries(m->cpu, table + (addr >> shift & 511) * sizeof(entry),
                          &entry, 1)
            || !(le64_to_cpu(entry) & PG_PRESENT_MASK)) {
            return false;
        }
        table = le64_to_cpu(entry) & TABLE;
        if (level == 1 || (level < 4 && le64_to_cpu(entry) & PG_PSE_MASK)) {
            *phys = (table & -(1ull << shift)) | (addr & ((1ull << shift) - 1));
            return true;
        }
    }
    return false;
}

static bool read_kernel(void *memory, uint64_t addr, void *buf, unsigned size)
{
    const KernelMemory *m = memory;
    hwaddr phys;

    return find_in_tables(m, addr, &phys)
           && address_space_read_ram(cpu_get_address_space(m->cpu,
                                                           X86ASIdx_MEM),
                                     phys, MEMTXATTRS_UNSPECIFIED, buf, size);
}

/*
 * In the kernel, Linux has the CPU's variables at the base of GS, which is in
 * the upper half.  While programs run, that base is where SWAPGS swaps it from.
 */
static uint64_t variables_of_cpu(const CPUX86State *env)
{
#ifdef TARGET_X86_64
    uint64_t base = env->segs[R_GS].base;

    return env->hflags & HF_CPL_MASK || !(base >> 63) ? env->kernelgsbase
                                                      : base;
#else
    return 0;
#endif
}

static bool x86_task(CPUState *cpu, const PmuTaskLayout *layout, PmuTask *task)
{
    const CPUX86State *env = cpu_env(cpu);
    KernelMemory kernel = { .cpu = cpu };
    const PmuTaskMemory memory = {
        .read = read_kernel,
        .opaque = &kernel,
        .own = variables_of_cpu(env),
    };

    if (!(env->hflags & HF_LMA_MASK) || env->hflags & HF_GUEST_MASK) {
        return false;
    }
    kernel.table = tables_of_process(cpu);
    return pmu_task_read(&memory, layout, task);
}

/* As x86_vpmu_kvm_before_run() has read it */
static unsigned x86_kvm_mode(CPUState *cpu)
{
    return x86_vpmu_mode(cpu_env(cpu)->hflags);
}

const PmuGuestOps x86_pmu_guest_ops = {
#ifdef TARGET_X86_64
    .machine = "x86_64",
#else
    .machine = "i686",
#endif
    .nr_modes = X86_VPMU_NR_MODES,
    .mode_names = mode_names,
    .user_modes = X86_VPMU_MODES_USER,
    .nested_modes = X86_VPMU_MODES_GUEST,
    .counted_by_host = true,
    .kvm_mode = x86_kvm_mode,
    .space = x86_space,
    .space_name = x86_space_name,
    .begins = x86_begins,
    .callchain = x86_callchain,
    .task = x86_task,
    .raw_event = x86_vpmu_raw_event,
    .counter_name = x86_vpmu_counter_name,
    .describe = x86_vpmu_describe,
    .host_first = x86_vpmu_host_first,
};
