/*
 * Bare-metal test guest: the runner of cases, and functions that each
 * architecture provides
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef BARE_RUNNER_H
#define BARE_RUNNER_H

#include "bare.h"

/* All cases, which the linker collects: see kernel.ld. */
extern const struct test tests_begin[], tests_end[];

/* The first CPU's program, which runs all cases and ends the machine */
void main(void) __attribute__((noreturn));

/* Set step_trace[@step], if there is room. */
void trace_step(uint64_t step, uint64_t address);

/* ---- Functions of the architecture ---------------------------------- */

/* A point in the program to return to; entry.S knows the layout. */
struct checkpoint;
int checkpoint(struct checkpoint *cp) __attribute__((returns_twice));
void resume(struct checkpoint *cp) __attribute__((noreturn));

/* Stop here, unless this is the first CPU. */
void park_other_cpu(void);

void put_serial(char c);

/**
 * read_option - read an option that `run` passes to the guest
 * @name: the option's name
 * @text: a buffer for its value
 * @size: the size of @text
 *
 * Returns: whether the option exists and fits; @text is "" otherwise.
 */
bool read_option(const char *name, char *text, size_t size);

/* Prepare everything but the PMU for a case. */
void reset_machine(void);

/* Prepare the PMU for a case of a suite. */
void prepare_pmu(const char *suite);

/* End the machine after all output; @good: no case has failed. */
void end_machine(bool good) __attribute__((noreturn));

#endif /* BARE_RUNNER_H */
