/*
 * Performance monitoring unit: cores like those of processors
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "hw/pmu/pmu-core.h"

/*
 * Presets.  Vendors publish neither how their predictors work, nor the latency
 * of memory in cycles.  So all presets have Cachegrind's predictor, except for
 * the number of returns, and memory takes 200 cycles.  The processors' level 2
 * is not modelled: an access that misses the first level goes to the last one.
 */

/* The values of Cachegrind in Valgrind 3.19 */
#define CACHEGRIND_HISTORY 7
#define CACHEGRIND_PLACES  7
#define CACHEGRIND_TARGETS 512

static const PmuCorePreset presets[] = {
    {
        /*
         * Intel 64 and IA-32 Architectures Optimization Reference Manual,
         * Skylake client: tables "Cache Parameters" and "TLB Parameters": L3
         * 2 MB a core, here of four, 44 cycles where L1D has 4; second level
         * TLB of 1536 entries, for code and data there.  The number of returns
         * and the cost of a misprediction are known from measurements.
         */
        .name = "skylake",
        .geometry = {
            .l1i = { 32 << 10, 8, 64 },
            .l1d = { 32 << 10, 8, 64 },
            .last = { 8 << 20, 16, 64 },
            .itlb = { 1536, 12 },
            .dtlb = { 1536, 12 },
            .page = 4096,
            .history = CACHEGRIND_HISTORY,
            .places = CACHEGRIND_PLACES,
            .targets = CACHEGRIND_TARGETS,
            .returns = 16,
            .align = 1,
        },
        .penalties = { .insn = 1, .l1 = 40, .last = 200, .tlb = 30,
                       .branch = 16 },
    },
    {
        /*
         * Caches: as in QEMU's EPYC-Genoa and in CPUID of the processor.
         * Others: Software Optimization Guide for the AMD Zen4
         * Microarchitecture (57647): L2 DTLB of 3072 and L2 ITLB of 512
         * entries, return stack of 32, L3 50 cycles where L1D has 4, and 13
         * cycles for a usual misprediction.  The ways of the ITLB are chosen.
         */
        .name = "zen4",
        .geometry = {
            .l1i = { 32 << 10, 8, 64 },
            .l1d = { 32 << 10, 8, 64 },
            .last = { 32 << 20, 16, 64 },
            .itlb = { 512, 4 },
            .dtlb = { 3072, 24 },
            .page = 4096,
            .history = CACHEGRIND_HISTORY,
            .places = CACHEGRIND_PLACES,
            .targets = CACHEGRIND_TARGETS,
            .returns = 32,
            .align = 1,
        },
        .penalties = { .insn = 1, .l1 = 46, .last = 200, .tlb = 30,
                       .branch = 13 },
    },
    {
        /*
         * POWER9 Processor User's Manual (OpenPOWER), "POWER9 core": caches
         * of 128-byte lines, L3 of 10 MB with 20 ways, TLB of 1024 entries
         * with 4 ways, for code and data there.  The size of pages is Linux's,
         * and the penalties are chosen.
         */
        .name = "power9",
        .geometry = {
            .l1i = { 32 << 10, 8, 128 },
            .l1d = { 32 << 10, 8, 128 },
            .last = { 10 << 20, 20, 128 },
            .itlb = { 1024, 4 },
            .dtlb = { 1024, 4 },
            .page = 65536,
            .history = CACHEGRIND_HISTORY,
            .places = CACHEGRIND_PLACES,
            .targets = CACHEGRIND_TARGETS,
            .returns = 32,
            .align = 4,
        },
        .penalties = { .insn = 1, .l1 = 40, .last = 200, .tlb = 30,
                       .branch = 13 },
    },
};

const PmuCorePreset *pmu_core_preset(unsigned index)
{
    return index < G_N_ELEMENTS(presets) ? &presets[index] : NULL;
}

const PmuCorePreset *pmu_core_find_preset(const char *name)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(presets); i++) {
        if (!strcmp(presets[i].name, name)) {
            return &presets[i];
        }
    }
    return NULL;
}
