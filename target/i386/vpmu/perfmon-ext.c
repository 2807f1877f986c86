/*
 * x86 virtual PMU: Intel's extended architectural performance monitoring
 *
 * As in the SDM, volume 2A, "CPUID".  Of its parts there are the counters and
 * the events; there is neither automatic reload of counters (subleaf 2) nor
 * architectural PEBS (subleaves 4 and 5).
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "core-events.h"
#include "intel-events.h"
#include "perfmon-ext.h"

/* Subleaf 0, EAX: the subleaves that there are; EBX: the bits of selectors */
#define SUBLEAF_COUNTERS 1
#define SUBLEAF_EVENTS   3
#define SUBLEAVES (1u << 0 | 1u << SUBLEAF_COUNTERS | 1u << SUBLEAF_EVENTS)
#define EBX_UMASK2 (1u << 0)
#define EBX_EQ     (1u << 1)

static uint64_t perfmon_ext_offers(X86CPU *cpu, FeatureWord w)
{
    return w == FEAT_7_1_EAX && x86_vpmu_wants_extended(cpu)
           ? CPUID_7_1_EAX_ARCH_PERFMON_EXT : 0;
}

/* The leaf is not passed on from the host. */
static uint64_t perfmon_ext_lacks(const X86CPU *cpu, FeatureWord w)
{
    return w == FEAT_7_1_EAX ? CPUID_7_1_EAX_ARCH_PERFMON_EXT : 0;
}

void x86_vpmu_extended_cpuid(X86CPU *cpu, uint32_t subleaf, uint32_t *eax,
                             uint32_t *ebx, uint32_t *ecx)
{
    const X86VPmu *v = cpu->vpmu;

    if (!(cpu->env.features[FEAT_7_1_EAX] & CPUID_7_1_EAX_ARCH_PERFMON_EXT)) {
        return;
    }
    switch (subleaf) {
    case 0:
        *eax = SUBLEAVES;
        *ebx = v->version >= 6 ? EBX_UMASK2 | EBX_EQ : 0;
        *ecx = intel_model(cpu->env.cpuid_version)->told_slots;
        break;
    case SUBLEAF_COUNTERS:
        *eax = x86_vpmu_low_bits(v->nr_gp);
        *ebx = x86_vpmu_low_bits(v->nr_fixed);
        break;
    case SUBLEAF_EVENTS:
        *eax = x86_vpmu_low_bits(intel_nr_arch_events(v))
               & ~intel_unavailable_events(v);
        break;
    default:
        break;
    }
}

const X86VPmuFeature intel_perfmon_ext = {
    .offers = perfmon_ext_offers,
    .lacks = perfmon_ext_lacks,
};
