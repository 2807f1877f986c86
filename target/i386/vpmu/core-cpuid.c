/*
 * x86 virtual PMU: the caches of a modelled core, in CPUID
 *
 * The core has two levels, and each CPU has both to itself.  What CPUID tells
 * of sharing is therefore that there is none.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/bitops.h"
#include "qemu/units.h"
#include "core-events.h"

/* Kinds of cache in leaves 4 and 0x8000001D */
enum {
    NO_CACHE,
    DATA,
    INSTRUCTIONS,
    UNIFIED,
};

/* EAX of leaf 4: the cores of the package, which are not the caches' */
#define CORES_OF_PACKAGE MAKE_64BIT_MASK(26, 6)

#define SELF_INITIALIZING (1u << 8)

/* Leaf 2: leaf 4 has the caches. */
#define SEE_LEAF_4 0xff

/* Leaf 0x80000006: the leaf 0x8000001D has the ways. */
#define SEE_LEAF_1D 9

/* A subleaf of leaves 4 and 0x8000001D, which have the same form */
static void describe(const PmuCoreCache *c, unsigned kind, unsigned level,
                     uint32_t *eax, uint32_t *ebx, uint32_t *ecx, uint32_t *edx)
{
    *eax |= kind | level << 5 | SELF_INITIALIZING;
    *ebx = (c->ways - 1) << 22 | (c->line - 1);
    *ecx = pmu_core_sets(c) - 1;
    *edx = 0;
}

static void deterministic(const PmuCoreGeometry *g, uint32_t subleaf,
                          uint32_t *eax, uint32_t *ebx, uint32_t *ecx,
                          uint32_t *edx)
{
    switch (subleaf) {
    case 0:
        describe(&g->l1d, DATA, 1, eax, ebx, ecx, edx);
        break;
    case 1:
        describe(&g->l1i, INSTRUCTIONS, 1, eax, ebx, ecx, edx);
        break;
    case 2:
        describe(&g->last, UNIFIED, 2, eax, ebx, ecx, edx);
        break;
    default:
        *eax = *ebx = *ecx = *edx = NO_CACHE;
        break;
    }
}

/* Leaf 0x80000005 has 8 bits for each number. */
static uint32_t first_level(const PmuCoreCache *c)
{
    return MIN(c->size / KiB, UINT8_MAX) << 24 | c->ways << 16 | 1 << 8
           | MIN(c->line, UINT8_MAX);
}

static uint32_t encoded_ways(uint32_t ways)
{
    static const uint8_t codes[][2] = {
        { 1, 1 }, { 2, 2 }, { 4, 4 }, { 8, 6 }, { 16, 8 }, { 32, 0xa },
        { 48, 0xb }, { 64, 0xc },
    };

    for (unsigned i = 0; i < ARRAY_SIZE(codes); i++) {
        if (codes[i][0] == ways) {
            return codes[i][1];
        }
    }
    return SEE_LEAF_1D;
}

/* Leaf 0x80000006 has 16 bits for the size of the second level. */
static uint32_t second_level(const PmuCoreCache *c)
{
    return MIN(c->size / KiB, UINT16_MAX) << 16 | encoded_ways(c->ways) << 12
           | 1 << 8 | MIN(c->line, UINT8_MAX);
}

void x86_vpmu_core_cpuid(const X86CPU *cpu, uint32_t leaf, uint32_t subleaf,
                         uint32_t *eax, uint32_t *ebx, uint32_t *ecx,
                         uint32_t *edx)
{
    const PmuCoreGeometry *g;

    if (!cpu->vpmu || !x86_vpmu_has_core(cpu->vpmu)) {
        return;
    }
    g = &cpu->vpmu_props.core_model->geometry;
    switch (leaf) {
    case 2:
        *eax = *eax ? 1 | SEE_LEAF_4 << 8 : 0;
        *ebx = *ecx = *edx = 0;
        break;
    case 4:
        if (cpu->vpmu->ops->by == PMU_VENDOR_INTEL) {
            *eax &= CORES_OF_PACKAGE;
            deterministic(g, subleaf, eax, ebx, ecx, edx);
        }
        break;
    case 0x80000005:
        *ecx = first_level(&g->l1d);
        *edx = first_level(&g->l1i);
        break;
    case 0x80000006:
        *ecx = second_level(&g->last);
        *edx = 0;
        break;
    case 0x8000001d:
        *eax = 0;
        deterministic(g, subleaf, eax, ebx, ecx, edx);
        break;
    default:
        break;
    }
}
