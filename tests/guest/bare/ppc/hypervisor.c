/*
 * Bare-metal test guest: a hypervisor of two domains
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "hypervisor.h"

_Static_assert(offsetof(struct domain, srr0) == DOMAIN_SRR0, "layout.h");
_Static_assert(offsetof(struct domain, srr1) == DOMAIN_SRR1, "layout.h");
_Static_assert(offsetof(struct domain, stack) == DOMAIN_STACK, "layout.h");
_Static_assert(offsetof(struct area, saved) == AREA_SAVED, "layout.h");
_Static_assert(offsetof(struct area, reload) == AREA_RELOAD, "layout.h");
_Static_assert(offsetof(struct area, mmcr0) == AREA_MMCR0, "layout.h");
_Static_assert(offsetof(struct area, count) == AREA_COUNT, "layout.h");
_Static_assert(offsetof(struct area, alerts) == AREA_ALERTS, "layout.h");
_Static_assert(sizeof(((struct area *)0)->alerts[0]) == 1 << ALERT_SIZE_LOG,
               "layout.h");

LABEL(domain_hdec);
LABEL(domain_call);
LABEL(domain_refused);
LABEL(domain_alert);

/* All counters are frozen. */
#define MMCR0_NOBODY (MMCR0_FC | MMCR0_FCH)

#define FAR_AWAY 0x1a000000000ull

/* ---- The PMU at a switch -------------------------------------------- */

static void save_pmu(struct pmu_state *pmu)
{
    pmu->mmcr0 = mfspr(SPR_MMCR0);
    mtspr(SPR_MMCR0, MMCR0_NOBODY);
    pmu->mmcr1 = mfspr(SPR_MMCR1);
    pmu->mmcr2 = mfspr(SPR_MMCR2);
    pmu->mmcra = mfspr(SPR_MMCRA);
    pmu->siar = mfspr(SPR_SIAR);
    pmu->sier = mfspr(SPR_SIER);
    pmu->sdar = mfspr(SPR_SDAR);
    for (unsigned i = 0; i < NR_PMCS; i++) {
        pmu->pmc[i] = read_pmc(i + 1);
    }
}

static void load_pmu(const struct pmu_state *pmu)
{
    mtspr(SPR_MMCR1, pmu->mmcr1);
    mtspr(SPR_MMCR2, pmu->mmcr2);
    mtspr(SPR_MMCRA, pmu->mmcra);
    mtspr(SPR_SIAR, pmu->siar);
    mtspr(SPR_SIER, pmu->sier);
    mtspr(SPR_SDAR, pmu->sdar);
    for (unsigned i = 0; i < NR_PMCS; i++) {
        write_pmc(i + 1, pmu->pmc[i]);
    }
    mtspr(SPR_MMCR0, pmu->mmcr0);
}

static void switch_to(struct domain *domain)
{
    mtspr(SPR_LPIDR, domain->lpid);
    if (domain->passive) {
        mtspr(SPR_HFSCR, mfspr(SPR_HFSCR) & ~FSCR_PM);
    }
    if (domain->perf || domain->passive) {
        load_pmu(&domain->pmu);
    }
}

/* A domain with FCECE may have frozen its counters, so PMAO is tested, too. */
static bool breaks_rules(const struct domain *domain, uint64_t mmcr0)
{
    const uint64_t in_use = MMCR0_FC | MMCR0_PMAE | MMCR0_PMAO;

    if (domain->perf || domain->passive) {
        return !(mmcr0 & MMCR0_FCH);
    }
    return (mmcr0 & in_use) != MMCR0_FC || domain->regs.msr & MSR_PMM;
}

static void switch_from(struct domain *domain)
{
    if (breaks_rules(domain, mfspr(SPR_MMCR0))) {
        domain->bad = true;
    }
    if (domain->perf || domain->passive) {
        save_pmu(&domain->pmu);
        domain->pmu.mmcr0 |= MMCR0_FCH;
    }
    mtspr(SPR_MMCR0, MMCR0_NOBODY);
    mtspr(SPR_HFSCR, mfspr(SPR_HFSCR) | FSCR_PM);
    if (domain->sampled) {
        domain->sampled(domain);
    }
}

/* ---- Domains -------------------------------------------------------- */

void domain_init(struct domain *domain, unsigned lpid, uint64_t msr,
                 code_fn *fn, uint64_t arg, struct area *area)
{
    memset(domain, 0, sizeof(*domain));
    domain->lpid = lpid;
    domain->regs.nip = (uint64_t)fn;
    domain->regs.msr = msr;
    domain->regs.gpr[3] = arg;
    domain->regs.gpr[13] = (uint64_t)area;
}

void domain_use_pmu(struct domain *domain, uint64_t mmcr0)
{
    domain->perf = true;
    domain->pmu.mmcr0 = mmcr0;
}

static void call(struct domain *domain)
{
    switch (domain->regs.gpr[0]) {
    case CALL_YIELD:
        domain->yields++;
        break;
    case CALL_PERF:
        domain->perf = domain->regs.gpr[3];
        domain->pmu = (struct pmu_state) { .mmcr0 = MMCR0_NOBODY };
        break;
    case CALL_DONE:
        domain->done = true;
        break;
    default:
        fail("domain %u: hypercall %lx", domain->lpid, domain->regs.gpr[0]);
    }
}

/* The domain reads 0. */
static void refuse(struct domain *domain)
{
    domain->refused++;
    domain->regs.gpr[3] = 0;
    skip_insn(&domain->regs);
}

static void handle(struct domain *domain)
{
    switch (domain->regs.vector) {
    case VEC_HDEC:
        domain->preempted++;
        break;
    case VEC_HV_FACILITY:
        refuse(domain);
        break;
    default:
        call(domain);
    }
}

static void take_turn(struct domain *domain, unsigned ticks)
{
    mtspr(SPR_HDEC, ticks ? random() % ticks : FAR_AWAY);
    switch_to(domain);
    domain_enter(domain);
    switch_from(domain);
    handle(domain);
}

void domains_prepare(void)
{
    set_vector(VEC_HDEC, domain_hdec);
    set_vector(VEC_SYSCALL, domain_call);
    set_vector(VEC_HV_FACILITY, domain_refused);
    set_vector(VEC_PERFM, domain_alert);
    mtspr(SPR_HDEC, FAR_AWAY);
    mtspr(SPR_LPCR, mfspr(SPR_LPCR) | LPCR_HDICE);
    mtspr(SPR_MMCR0, MMCR0_NOBODY);
}

void domains_run(struct domain *domains, unsigned ticks)
{
    bool more = true;

    while (more) {
        more = false;
        for (unsigned i = 0; i < NR_DOMAINS; i++) {
            if (!domains[i].done) {
                more = true;
                take_turn(&domains[i], ticks);
            }
        }
    }
    mtspr(SPR_HDEC, FAR_AWAY);
}
