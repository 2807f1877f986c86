/*
 * Bare-metal test guest: programs of unknown length
 *
 * They are written in C and deterministic, for suite oracle, which compares
 * their counts between modes of TCG.  Each returns a checksum that depends on
 * @arg.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef BARE_PROGRAMS_H
#define BARE_PROGRAMS_H

#include <stdint.h>

uint64_t program_sort(uint64_t arg);
uint64_t program_sieve(uint64_t arg);
uint64_t program_strings(uint64_t arg);
uint64_t program_float(uint64_t arg);
uint64_t program_interpreter(uint64_t arg);
uint64_t program_atomics(uint64_t arg);
uint64_t program_generated_code(uint64_t arg);
uint64_t program_demand_paging(uint64_t arg);
uint64_t program_system_calls(uint64_t arg);
uint64_t program_faults(uint64_t arg);

#endif /* BARE_PROGRAMS_H */
