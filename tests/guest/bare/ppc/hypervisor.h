/*
 * Bare-metal test guest: a hypervisor of two domains
 *
 * It follows a design for Xen on Power.  MMCR0[FCH] is set for each domain, so
 * that the hypervisor's instructions do not count.  A domain announces that it
 * uses the PMU, and has the registers to itself.  A domain that does not use
 * the PMU has to leave the counters frozen and MSR[PMM] clear.  A domain that
 * breaks this rule is a bad domain, and does not affect other domains.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef BARE_PPC_HYPERVISOR_H
#define BARE_PPC_HYPERVISOR_H

#include "pmu.h"

#define NR_DOMAINS 2

/* The registers of a PMU, as far as domains use them. */
struct pmu_state {
    uint64_t mmcr0, mmcr1, mmcr2, mmcra, siar, sier, sdar, pmc[NR_PMCS];
};

/**
 * struct domain - a domain
 * @regs: its registers while it does not run; vector is the reason why it left
 * @srr0, @srr1: its kernel's SRR0 and SRR1
 * @stack: the hypervisor's stack while the domain runs
 * @pmu: its PMU while it does not run
 * @lpid: number of its partition
 * @perf: it uses the PMU
 * @passive: the hypervisor uses the PMU for it, and denies it access
 * @bad: it has broken the rules
 * @done: it has ended
 * @preempted: the number of turns that HDEC has ended
 * @yields: the number of turns that it has ended itself
 * @refused: the number of refused accesses to the PMU
 * @sampled: called when it has left, before its PMU's state is loaded again
 */
struct domain {
    struct regs regs;
    uint64_t srr0, srr1, stack;
    struct pmu_state pmu;
    unsigned lpid;
    bool perf, passive, bad, done;
    uint64_t preempted, yields, refused;
    void (*sampled)(struct domain *domain);
};

#define MAX_ALERTS (1 << MAX_ALERTS_LOG)

/**
 * struct area - data of the domains' kernel, at r13
 * @saved: registers
 * @reload: value for PMC5 after an alert
 * @mmcr0: value for MMCR0 after an alert
 * @count: alerts
 * @alerts: SIAR and SRR0 of each, or only of the last ones
 */
struct area {
    uint64_t saved[4];
    uint64_t reload, mmcr0, count, reserved;
    struct {
        uint64_t siar, nip;
    } alerts[MAX_ALERTS];
};

/**
 * domain_init - prepare a domain
 * @domain: to be written
 * @lpid: its partition
 * @msr: STATE_PRIV or STATE_PROBLEM, and other bits
 * @fn: where it begins
 * @arg: its argument, r3
 * @area: its r13
 *
 * It uses no PMU.
 */
void domain_init(struct domain *domain, unsigned lpid, uint64_t msr,
                 code_fn *fn, uint64_t arg, struct area *area);

/**
 * domain_use_pmu - give a domain a PMU that its kernel has set up
 * @domain: the domain
 * @mmcr0: its MMCR0
 */
void domain_use_pmu(struct domain *domain, uint64_t mmcr0);

/**
 * domain_enter - let a domain run until it leaves for the hypervisor
 * @domain: the domain; its regs.vector is then the reason
 */
void domain_enter(struct domain *domain);

/**
 * domains_run - let domains run in turn until all have ended
 * @domains: NR_DOMAINS of them
 * @ticks: a turn of a domain ends after a random number of ticks below; 0 for
 *     no such end
 */
void domains_run(struct domain *domains, unsigned ticks);

/* Set the hypervisor's vectors. */
void domains_prepare(void);

/* Instructions of CALL_NOTHING in a domain's kernel */
#define DOMAIN_NOTHING_INSNS (NOTHING_INSNS + 2)

#endif /* BARE_PPC_HYPERVISOR_H */
