/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A benchmark of google-benchmark's. */
#include <benchmark/benchmark.h>

extern "C" {
#include "known.h"
}

static void bm_known(benchmark::State &state)
{
    for (auto _ : state) {
        known();
    }
}

BENCHMARK(bm_known);
BENCHMARK_MAIN();
