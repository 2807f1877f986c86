/*
 * vpmu-perf-seed - let the kernel hand out the same random bytes in each run
 *
 * With a field seed=N of the job, all that processes get from the kernel as
 * random depends on N, on which process it is, and on how much it had before:
 * AT_RANDOM, getrandom(), /dev/random and /dev/urandom.  The guest has to be
 * booted with SEEDED=1, and so be another one than those without a seed.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef VPMU_PERF_SEED_H
#define VPMU_PERF_SEED_H

#include "vpmu-perf-measure.h"

/**
 * seed_prepare - prepare the kernel, if there will be seeds
 * @die: called if that is not possible
 */
void seed_prepare(die_fn *die);

/**
 * seed_understand - take a field of the job
 * @key: its name
 * @value: its value
 * @die: called if the seed cannot be set
 *
 * Returns: false if it is not the seed.
 */
bool seed_understand(const char *key, const char *value, die_fn *die);

#endif /* VPMU_PERF_SEED_H */
