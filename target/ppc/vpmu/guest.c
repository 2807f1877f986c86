/*
 * Power virtual PMU: the description of a guest
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "cpu.h"
#include "helper_regs.h"
#include "system/tcg.h"
#include "hw/pmu/profile/callchain.h"
#include "hw/pmu/compat.h"
#include "guest.h"
#include "modes.h"
#include "monitor.h"

/* MSR[HV] and MSR[PR] */
static const char *const mode_names[PPC_VPMU_NR_MODES] = {
    "problem", "privileged", "hypervisor-problem", "hypervisor",
};

/*
 * Code in hypervisor state is not in a nested guest.  Linux has a PIDR for
 * each process if tables of pages are radix trees.  With hashed ones, as on
 * POWER8, only the contents of the SLB differ between processes, in a way that
 * is Linux's own: here they are all the same address space.
 */
static PmuGuestSpace ppc_space(CPUState *cpu)
{
    const CPUPPCState *env = cpu_env(cpu);

    return (PmuGuestSpace) {
        .guest = FIELD_EX64_HV(env->msr) ? 0 : env->spr[SPR_LPIDR],
        .id = (uint32_t)env->spr[SPR_BOOKS_PID],
    };
}

static char *ppc_space_name(const PmuGuestSpace *space)
{
    return g_strdup_printf("pid=%" PRIu64 ",lpid=%" PRIu64, space->id,
                           space->guest);
}

/*
 * Linux begins programs with 0 in all registers but the stack pointer and, for
 * ABI v2, the address of the first instruction.  r0 may still have the number
 * of the system call that has begun it.
 */
static bool ppc_begins(CPUState *cpu)
{
    const CPUPPCState *env = cpu_env(cpu);
    target_ulong any = env->lr | env->ctr;

    for (unsigned i = 1; i < ARRAY_SIZE(env->gpr); i++) {
        any |= i == 1 || i == 12 ? 0 : env->gpr[i];
    }
    return !any;
}

/*
 * A frame begins with the back chain, to the caller's frame.  There, the
 * called function saves its return address.
 */
static PmuStack ppc_stack(CPUPPCState *env, PmuGuestMemory *memory)
{
    bool is_64_bit = msr_is_64bit(env, env->msr);

    return (PmuStack) {
        .read = pmu_guest_read,
        .opaque = memory,
        .word = is_64_bit ? 8 : 4,
        .big_endian = !FIELD_EX64(env->msr, MSR, LE),
        .return_offset = is_64_bit ? 16 : 4,
        .highest = is_64_bit ? UINT64_MAX : UINT32_MAX,
        .reach = FIELD_EX64(env->msr, MSR, PR) ? PMU_STACK_REACH
                                               : PMU_STACK_REACH_KERNEL,
    };
}

/* An address as the present mode uses it */
static uint64_t effective(CPUPPCState *env, uint64_t addr)
{
    return msr_is_64bit(env, env->msr) ? addr : (uint32_t)addr;
}

/* The callers whose frames are complete */
static unsigned callers_in_memory(CPUState *cpu, uint64_t *callers,
                                  unsigned max)
{
    CPUPPCState *env = cpu_env(cpu);
    PmuGuestMemory memory = { .cpu = cpu };
    PmuStack stack = ppc_stack(env, &memory);
    uint64_t frame = effective(env, env->gpr[1]);

    stack.lowest = frame + 1;
    return pmu_stack_read(&stack, frame, &frame)
           ? pmu_callchain(&stack, frame, callers, max) : 0;
}

/*
 * Linux's convention: a function that calls no other neither saves LR nor
 * makes a frame.  Once LR has been saved it is the same.  In between, and after
 * calls, LR is an address in the function itself, or there is a frame too few.
 */
static unsigned ppc_callchain(CPUState *cpu, uint64_t *callers, unsigned max)
{
    CPUPPCState *env = cpu_env(cpu);
    uint64_t lr = effective(env, env->lr);
    unsigned n;

    if (!tcg_enabled()) {
        /* KVM knows MSR, but not the mode in which QEMU's MMU translates. */
        hreg_compute_hflags(env);
    }
    n = callers_in_memory(cpu, callers, max);
    if (!max || !lr || (n && callers[0] == lr)) {
        return n;
    }
    n = MIN(n, max - 1);
    memmove(callers + 1, callers, n * sizeof(*callers));
    callers[0] = lr;
    return n + 1;
}

/*
 * Linux maps all of its memory at these addresses, whatever its MMU is; without
 * their uppermost bits they are real addresses.
 */
#define LINEAR      0xc000000000000000ull
#define LINEAR_MASK 0xf000000000000000ull

static bool read_kernel(void *opaque, uint64_t addr, void *buf, unsigned size)
{
    CPUState *cpu = opaque;

    return (addr & LINEAR_MASK) == LINEAR
           && address_space_read_ram(cpu->as, addr & ~LINEAR_MASK,
                                     MEMTXATTRS_UNSPECIFIED, buf, size);
}

/* Linux finds the CPU's own data by one register or the other. */
static bool ppc_task(CPUState *cpu, const PmuTaskLayout *layout, PmuTask *task)
{
    const CPUPPCState *env = cpu_env(cpu);
    const PmuTaskMemory memory = {
        .read = read_kernel,
        .opaque = cpu,
        .big_endian = !FIELD_EX64(env->msr, MSR, LE),
        .own = env->spr[FIELD_EX64_HV(env->msr) ? SPR_HSPRG0 : SPR_SPRG1],
    };

    return !ppc_space(cpu).guest && pmu_task_read(&memory, layout, task);
}

const PmuGuestOps ppc_pmu_guest_ops = {
    /* perf does not distinguish between byte orders. */
    .machine = "ppc64le",
    .nr_modes = PPC_VPMU_NR_MODES,
    .mode_names = mode_names,
    .user_modes = 1u << 0 | 1u << PPC_VPMU_MODE_HV,
    .space = ppc_space,
    .space_name = ppc_space_name,
    .begins = ppc_begins,
    .callchain = ppc_callchain,
    .task = ppc_task,
    .raw_event = ppc_vpmu_raw_event,
    .counter_name = ppc_vpmu_counter_name,
    .describe = ppc_vpmu_describe,
};
