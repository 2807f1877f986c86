/*
 * x86 virtual PMU: what is told of a guest
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "hw/pmu/pmu-callchain.h"
#include "guest.h"
#include "internal.h"

static const char *const mode_names[X86_VPMU_NR_MODES] = {
    "kernel", "user", "guest-kernel", "guest-user",
    "smm", "smm-user", "guest-smm", "guest-smm-user",
};

/* Tables of pages begin at a multiple of their size; below are flags. */
static uint64_t page_tables(const CPUX86State *env)
{
    if (!(env->cr[0] & CR0_PG_MASK)) {
        return 0;
    }
    if (env->hflags & HF_LMA_MASK) {
        return env->cr[3] & MAKE_64BIT_MASK(12, 40);
    }
    return (uint32_t)env->cr[3] & (env->cr[4] & CR4_PAE_MASK ? -32 : -4096);
}

/*
 * Which of the guest's own guests: by the tables of its memory, or if it has
 * none by its VMCB.  All of these are pages.  Under KVM neither is known.
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
    const CPUX86State *env = cpu_env(cpu);

    return (PmuGuestSpace) {
        .guest = guests_guest(env),
        .id = page_tables(env),
    };
}

static char *x86_space_name(const PmuGuestSpace *space)
{
    if (!space->guest) {
        return g_strdup_printf("cr3 0x%" PRIx64, space->id);
    }
    return g_strdup_printf("guest 0x%" PRIx64 " cr3 0x%" PRIx64,
                           space->guest & ~IS_GUEST, space->id);
}

/*
 * A frame begins with the caller's frame pointer, below the address of return.
 * Programs are not to see memory of their kernel, which has the upper half of
 * 64-bit addresses.
 */
static PmuStack stack64(const CPUX86State *env, PmuGuestMemory *memory)
{
    return (PmuStack) {
        .read = pmu_guest_read,
        .opaque = memory,
        .word = 8,
        .return_offset = 8,
        .lowest = env->regs[R_ESP],
        .highest = env->hflags & HF_CPL_MASK ? INT64_MAX : UINT64_MAX,
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
    };
}

/* Of nested guests, QEMU's debuggers cannot read the memory either. */
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
    .space = x86_space,
    .space_name = x86_space_name,
    .callchain = x86_callchain,
};
