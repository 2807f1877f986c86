/*
 * Fuzzer of the virtual PMU: Power's faces
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/bitops.h"
#include "cpu.h"
#include "helper_regs.h"
#include "hw/pmu/pmu-tcg.h"
#include "hw/ppc/ppc.h"
#include "vpmu/internal.h"
#include "fuzz.h"
#include "core-reference.h"
#include "ppc-reference.h"

#define NR_MODES 4

/* The address of the CPU, which executes nothing. */
#define NIP 0x1000

/*
 * Faces
 */

#define EVENT(code, counted, ...) \
    { code, COUNTS_##counted, REF_##__VA_ARGS__ },
#define EVENT_IN(code, counted, state) \
    { code, COUNTS_##counted, REF_IN + MODE_##state },
#define EVENTS(list) ((const RefEvent[]) { CODES_##list(EVENT) { } })
#define EVENTS_IN(list, states) \
    ((const RefEvent[]) { CODES_##list(EVENT) CODES_##states(EVENT_IN) { } })
#define MODE_PRIVILEGED    REF_PRIVILEGED
#define MODE_HYPERVISOR    (REF_HV | REF_PRIVILEGED)
#define MODE_PROBLEM_OF_HV REF_HV

static const uint32_t denied[] = { 0x02, 0x200f4, 0x600f4, 0 };

#define RAW(code) "{\"format\":\"raw\",\"code\":" #code "}"
#define DENY                                                              \
    "-object '{\"qom-type\":\"kvm-pmu-filter\",\"id\":\"f\","               \
    "\"action\":\"deny\",\"events\":["                                      \
    RAW(2) "," RAW(131316) "," RAW(393460) "]}' "

#define PSERIES "-accel tcg -machine pseries -cpu "
#define POWERNV "-m 2G -accel tcg -machine powernv"
#define PMU(level, list, ...) \
    &(const RefPpc) { .isa = level, .cpi = 1000, .events = EVENTS(list), \
                      __VA_ARGS__ }
#define PMU_310(...) \
    PMU(310, POWER10, .events = EVENTS_IN(POWER10, POWER10_STATES), \
        __VA_ARGS__)

/*
 * Events of the core come first, as on x86.  A program of its own would begin
 * wherever the registers are 0, which they always are here.
 */
#define CORE "-object pmu-core,id=core0,state=shared," REF_CORE " "
#define CODES_POWER9_WITH_CORE(E) CODES_POWER9_CORE(E) CODES_POWER9(E)

static const FuzzFace faces[] = {
    { "power7", PSERIES "POWER7", PMU(206, POWER7) },
    { "power8", PSERIES "POWER8", PMU(207, POWER8) },
    { "power9", PSERIES "POWER9", PMU(300, POWER9) },
    { "power10", PSERIES "POWER10", PMU_310() },
    { "power11", PSERIES "POWER11", PMU_310() },
    { "power9-cpi", PSERIES "POWER9,pmu-cpi=1500",
      PMU(300, POWER9, .cpi = 1500) },
    { "power9-deny", DENY "-accel tcg,pmu-filter=f -machine pseries "
      "-cpu POWER9", PMU(300, POWER9, .denied = denied) },
    { "powernv8", POWERNV "8",
      PMU(207, POWER8, .hv = true) },
    { "powernv9", POWERNV "9",
      PMU(300, POWER9, .hv = true) },
    { "powernv10", POWERNV "10",
      PMU_310(.hv = true) },
    { "power9-core", CORE PSERIES "POWER9,pmu-core=core0",
      PMU(300, POWER9_WITH_CORE) },
    { "power9-off", PSERIES "POWER9,pmu=off", NULL },
};

static const RefPpc *pmu;

static PowerPCCPU *cpu(void)
{
    return POWERPC_CPU(fuzz_cpu);
}

static CPUPPCState *env(void)
{
    return &cpu()->env;
}

/*
 * Registers
 */

static const uint16_t registers[] = {
    SPR_MMCR0, SPR_MMCR1, SPR_MMCRA, SPR_SIAR, SPR_SDAR,
    SPR_PMC1, SPR_PMC1 + 1, SPR_PMC1 + 2, SPR_PMC1 + 3, SPR_PMC1 + 4, SPR_PMC6,
    /* since Power ISA 2.07 */
    SPR_MMCR2, SPR_SIER,
    /* since Power ISA 3.1 */
    SPR_MMCR3, SPR_SIER2, SPR_SIER3,
};

static unsigned nr_registers(void)
{
    unsigned isa = pmu ? pmu->isa : 300;

    return isa == 206 ? 11 : isa < 310 ? 13 : 16;
}

static const char *name_of(const char *what, unsigned spr)
{
    static char name[40];

    snprintf(name, sizeof(name), "%s %u", what, spr);
    return name;
}

/* In problem state, use the numbers for that; others are always refused. */
static unsigned number_for(uint64_t spr)
{
    spr %= REF_NR_SPRS;
    return ref_state.mode & REF_PRIVILEGED ? spr : spr & ~16u;
}

/* Check an access that no hypervisor restricts. */
static RefAccess access_to(unsigned spr, bool write)
{
    switch (ppc_vpmu_check_access(env(), spr, write)) {
    case PPC_VPMU_ALLOWED:
        return REF_ALLOWED;
    case PPC_VPMU_UNAVAILABLE:
        return REF_UNAVAILABLE;
    case PPC_VPMU_ILLEGAL:
        return REF_ILLEGAL;
    default:
        return -1;
    }
}

static uint64_t mfspr(unsigned spr)
{
    uint64_t val = 0;

    if (cpu()->vpmu) {
        fuzz_begin_read();
        pmu_tcg_before_insn(fuzz_cpu);
        val = ppc_vpmu_read(cpu()->vpmu, spr);
        pmu_tcg_after_insn(fuzz_cpu);
        fuzz_end_read();
    }
    return val;
}

static void check_pending(void)
{
    uint32_t pending = env()->pending_interrupts;

    fuzz_expect("pending PERFM", !!(pending & PPC_INTERRUPT_PERFM),
                ref_state.perfm);
    fuzz_expect("pending EBB", !!(pending & PPC_INTERRUPT_EBB),
                ref_state.ebb);
    fuzz_expect("BESCR", env()->spr[SPR_BESCR], ref_state.bescr);
}

static unsigned any_register(FuzzRandom *r)
{
    unsigned spr = registers[fuzz_below(r, nr_registers())];

    return fuzz_chance(r, 6) ? spr - 16
           : fuzz_chance(r, 4) ? SPR_MMCR0 : spr;
}

static void make_mfspr(FuzzRandom *r, uint64_t *arg)
{
    arg[0] = any_register(r);
}

static bool is_known(unsigned spr)
{
    for (unsigned i = 0; i < nr_registers(); i++) {
        if (registers[i] == (spr | 16)) {
            return true;
        }
    }
    return false;
}

static void run_mfspr(const uint64_t *arg)
{
    unsigned spr = number_for(arg[0]);
    RefAccess access = ref_access(spr, false);

    if (!is_known(spr)) {
        return;
    }
    fuzz_expect(name_of("reading", spr), access_to(spr, false), access);
    if (access == REF_ALLOWED) {
        fuzz_expect(name_of("register", spr), mfspr(spr), ref_read(spr));
    }
}

static bool is_counted_by(const RefEvent *e, unsigned pmc)
{
    return e->code >> 16 == pmc && (e->tallies || e->when == REF_MARKED);
}

/* For each counter, choose an event that the reference knows. */
static uint64_t any_mmcr1(FuzzRandom *r)
{
    uint64_t val = fuzz_chance(r, 20) ? fuzz_random(r) & 0x0000ffff00000000
                                      : 0;
    unsigned nr = 0;

    while (pmu->events[nr].code) {
        nr++;
    }
    for (unsigned pmc = 1; pmc <= 4; pmc++) {
        const RefEvent *e;

        do {
            e = &pmu->events[fuzz_below(r, nr)];
        } while (!is_counted_by(e, pmc) && !fuzz_chance(r, 40));
        val |= (uint64_t)(e->code & 0xff) << 8 * (4 - pmc);
        val |= (uint64_t)(e->code >> 12 & 0xf) << (64 - 4 * pmc);
    }
    return val;
}

/* Choose a value with which counters mostly run. */
static uint64_t any_mmcr0(FuzzRandom *r)
{
    uint64_t freeze = REF_BIT(32) | REF_BIT(33) | REF_BIT(34) | REF_BIT(35)
                      | REF_BIT(36) | REF_BIT(58) | REF_BIT(59) | REF_BIT(62)
                      | REF_BIT(63) | REF_BIT(51);
    uint64_t val = fuzz_bits(r, 0xfffcfbb3);

    if (!fuzz_chance(r, 4)) {
        val &= ~(freeze & ~(fuzz_random(r) & fuzz_random(r) & fuzz_random(r)));
    }
    return val;
}

static void make_mtspr(FuzzRandom *r, uint64_t *arg)
{
    arg[0] = any_register(r);
    switch (arg[0] | 16) {
    case SPR_MMCR0:
        arg[1] = any_mmcr0(r);
        break;
    case SPR_MMCR1:
        arg[1] = pmu ? any_mmcr1(r) : fuzz_number(r);
        break;
    case SPR_MMCR2:
        arg[1] = fuzz_random(r) & fuzz_random(r) & fuzz_random(r);
        break;
    case SPR_PMC1 ... SPR_PMC6:
        arg[1] = fuzz_chance(r, 4) ? fuzz_number(r)
                 : 0x80000000 - fuzz_below(r, 1 << fuzz_below(r, 9));
        break;
    default:
        arg[1] = fuzz_number(r);
    }
}

static void run_mtspr(const uint64_t *arg)
{
    unsigned spr = number_for(arg[0]);
    RefAccess access = ref_access(spr, true);

    if (!is_known(spr)) {
        return;
    }
    fuzz_expect(name_of("writing", spr), access_to(spr, true), access);
    if (access == REF_ALLOWED) {
        ref_write(spr, arg[1]);
        if (cpu()->vpmu) {
            ppc_vpmu_write(cpu()->vpmu, spr, arg[1]);
        }
    }
    check_pending();
}

/*
 * Events
 */

static const PmuTally retired[] = {
    PMU_TALLY_COND_TAKEN, PMU_TALLY_COND_NOT_TAKEN, PMU_TALLY_JUMPS,
    PMU_TALLY_INDIRECT_JUMPS, PMU_TALLY_CALLS, PMU_TALLY_RETURNS,
    PMU_TALLY_LOADS, PMU_TALLY_STORES, PMU_TALLY_FAILED_STORES,
};

static const PmuTally other[] = {
    PMU_TALLY_INTERRUPTS, PMU_TALLY_DTLB_LOAD_MISSES,
    PMU_TALLY_DTLB_STORE_MISSES, PMU_TALLY_ITLB_MISSES,
};

static void set_msr(void)
{
    env()->msr = (ref_state.mode & REF_PRIVILEGED ? 0 : 1ull << MSR_PR)
                 | (ref_state.mode & REF_HV ? 1ull << MSR_HV : 0)
                 | (ref_state.pmm ? 1ull << MSR_PMM : 0);
    hreg_compute_hflags(env());
    ppc_vpmu_state_changed(env());
}

static void make_msr(FuzzRandom *r, uint64_t *arg)
{
    arg[0] = fuzz_chance(r, 2) ? REF_PRIVILEGED : fuzz_below(r, NR_MODES);
    arg[1] = fuzz_chance(r, 4);
}

static void run_msr(const uint64_t *arg)
{
    ref_state.mode = arg[0] % NR_MODES & ~(pmu && pmu->hv ? 0 : REF_HV);
    ref_state.pmm = arg[1] & 1;
    set_msr();
    check_pending();
}

/* Set the run latch of a core with one thread. */
static void set_run(bool run)
{
    env()->spr[SPR_CTRL] = run ? CTRL_ALONE : 0;
    ppc_vpmu_state_changed(env());
}

static void make_run(FuzzRandom *r, uint64_t *arg)
{
    arg[0] = !fuzz_chance(r, 3);
}

static void run_run(const uint64_t *arg)
{
    ref_state.run = arg[0] & 1;
    set_run(ref_state.run);
    check_pending();
}

static void make_bescr(FuzzRandom *r, uint64_t *arg)
{
    arg[0] = fuzz_random(r) & (REF_BIT(0) | REF_BIT(31) | REF_BIT(62)
                               | REF_BIT(63));
}

static void run_bescr(const uint64_t *arg)
{
    if (pmu && pmu->isa > 206) {
        env()->spr[SPR_BESCR] = arg[0];
        ppc_vpmu_update_ebb(env());
        ref_write_bescr(arg[0]);
        check_pending();
    }
}

static const struct {
    PmuBranchKind kind;
    RefBranch is;
} branches[] = {
    { PMU_BRANCH_JUMP, { } },
    { PMU_BRANCH_CALL, { .call = true } },
    { PMU_BRANCH_CALL_NEXT, { } },
    { PMU_BRANCH_INDIRECT_JUMP, { .indirect = true } },
    { PMU_BRANCH_INDIRECT_CALL, { .indirect = true, .call = true } },
    { PMU_BRANCH_RETURN, { .indirect = true } },
    { PMU_BRANCH_FAR, { .interrupt = true } },
};

/* An instruction's address, which is never 0 */
static uint64_t address(uint64_t number)
{
    return (number & ~3ull) ?: 4;
}

static void make_branch(FuzzRandom *r, uint64_t *arg)
{
    arg[0] = fuzz_below(r, ARRAY_SIZE(branches) * NR_MODES * 2);
    arg[1] = address(fuzz_random(r));
    arg[2] = fuzz_target_of(r, arg[1]);
}

static void run_branch(const uint64_t *arg)
{
    unsigned mode = arg[0] % NR_MODES;
    unsigned n = arg[0] / NR_MODES / 2 % ARRAY_SIZE(branches);
    RefBranch is = branches[n].is;
    PmuBranch branch = { .kind = branches[n].kind };

    is.conditional = arg[0] / NR_MODES % 2 && !is.interrupt;
    is.from = branch.from = address(arg[1]);
    is.to = branch.to = address(arg[2]);
    branch.kind |= is.conditional ? PMU_BRANCH_CONDITIONAL : 0;
    fuzz_take_branch(&branch, mode);
    ref_branch(&is, mode);
}

static bool has_bhrb(void)
{
    return pmu && pmu->isa > 206;
}

/* Use the BHRB as helper_mfbhrbe() and helper_clrbhrb() do. */
static void make_bhrb(FuzzRandom *r, uint64_t *arg)
{
    arg[0] = fuzz_chance(r, 4);
}

static void run_bhrb(const uint64_t *arg)
{
    bool clear = arg[0] & 1;

    if (has_bhrb()) {
        if (clear) {
            ppc_vpmu_bhrb_clear(env());
        }
        ppc_vpmu_bhrb_used(env());
        ref_use_bhrb(clear);
    }
}

static void check_bhrb(void)
{
    for (unsigned n = 0; n < BHRB_MAX_NUM_ENTRIES && has_bhrb(); n++) {
        fuzz_expect(name_of("BHRB entry", n), ppc_vpmu_bhrb_entry(env(), n),
                    ref_bhrb_entry(n));
    }
}

/* Set all state explicitly that a reset of the CPU leaves alone. */
static void run_reset(const uint64_t *arg)
{
    cpu_reset(fuzz_cpu);
    fuzz_cpu->halted = 0;
    env()->nip = NIP;
    env()->spr[SPR_HFSCR] = UINT64_MAX;
    env()->spr[SPR_BESCR] = 0;
    ref_state = (RefPpcState) {
        .mode = REF_PRIVILEGED, .run = true, .nip = NIP,
    };
    ref_reset();
    set_msr();
    set_run(true);
}

static const FuzzVerb verbs[] = {
    { "mtspr", 2, 60, make_mtspr, run_mtspr },
    { "mfspr", 1, 20, make_mfspr, run_mfspr },
    { "insns", 2, 25, fuzz_make_insns, fuzz_run_insns },
    { "retire", 3, 25, fuzz_make_retire, fuzz_run_retire },
    { "other", 3, 15, fuzz_make_other, fuzz_run_other },
    { "step", 3, 40, fuzz_make_step, fuzz_run_step },
    { "msr", 2, 12, make_msr, run_msr },
    { "run", 1, 8, make_run, run_run },
    { "bescr", 1, 6, make_bescr, run_bescr },
    { "branch", 3, 20, make_branch, run_branch },
    { "bhrb", 1, 4, make_bhrb, run_bhrb },
    { "reset", 0, 1, NULL, run_reset },
    { }
};

/*
 * The machine
 */

static void start(const FuzzFace *face)
{
    pmu = face->data;
    ref_init(pmu);
    g_assert(!pmu == !cpu()->vpmu);
}

static void begin(void)
{
    run_reset(NULL);
    fuzz_align_cycles();
}

/* Read as a debugger does, which changes nothing, then as the guest does. */
static void check(void)
{
    for (unsigned i = 0; i < nr_registers() && pmu; i++) {
        fuzz_expect(name_of("debugger's register", registers[i]),
                    ppc_vpmu_debug_read(env(), registers[i]),
                    ref_peek(registers[i]));
    }
    for (unsigned i = 0; i < nr_registers(); i++) {
        run_mfspr(&(const uint64_t) { registers[i] });
    }
    check_bhrb();
    check_pending();
}

/* Check for later features, which a changed stream can contain. */
static void check_nothing_of_later(void)
{
    if (env()->spr[SPR_POWER_MMCR2]) {
        fprintf(stderr, "there is an MMCR2\n");
        abort();
    }
    if (env()->pending_interrupts & PPC_INTERRUPT_EBB) {
        fprintf(stderr, "an event-based branch is pending\n");
        abort();
    }
}

static void check_legal(void)
{
    if (pmu && pmu->isa == 206) {
        check_nothing_of_later();
    }
    for (unsigned i = 0; i < nr_registers() && pmu; i++) {
        uint64_t val = ppc_vpmu_peek(cpu()->vpmu, registers[i]);

        if (val & ~ref_writable(registers[i])) {
            fprintf(stderr, "register %u holds 0x%" PRIx64 "\n", registers[i],
                    val);
            abort();
        }
    }
}

/* Empty the BHRB and the core: a stream without them does not change them. */
static void empty_memories(void)
{
    if (cpu()->vpmu) {
        pmu_cpu_was_reset(cpu()->vpmu->unit);
        ppc_vpmu_bhrb_clear(env());
        env()->bhrb_offset = 0;
        cpu()->vpmu->bhrb_unread = PPC_VPMU_BHRB_UNUSED;
    }
}

const FuzzTarget fuzz_target = {
    .faces = faces,
    .nr_faces = ARRAY_SIZE(faces),
    .verbs = verbs,
    .vmsd = &vmstate_ppc_cpu,
    .sections = (const char *const[]) { "cpu/vpmu", "cpu/bhrb", NULL },
    /* Unused, GPRs, CR, NIP; then SPRs */
    .fixed_section = 8 + 32 * 8 + 8 * 4 + 8 + SPR_SIER2 * 8,
    .fixed_size = (SPR_BESCR + 1 - SPR_SIER2) * 8,
    .nr_modes = NR_MODES,
    .retired = retired,
    .nr_retired = ARRAY_SIZE(retired),
    .other = other,
    .nr_other = ARRAY_SIZE(other),
    .start = start,
    .happen = ref_happen,
    .step = ref_step,
    .begin_cycle = ref_begin_cycle,
    .check_interrupts = check_pending,
    .begin = begin,
    .check = check,
    .check_legal = check_legal,
    .remember = ref_remember,
    .recall = ref_recall,
    .before_load = empty_memories,
    .moved = ref_moved,
};
