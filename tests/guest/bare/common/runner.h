/*
 * Bare-metal test guest: what runs the cases, and what it needs of an
 * architecture
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef BARE_RUNNER_H
#define BARE_RUNNER_H

#include "bare.h"

/* What the linker collects: see kernel.ld. */
extern const struct test tests_begin[], tests_end[];

/* The first CPU's program, when the machine is ready; ends the machine. */
void main(void) __attribute__((noreturn));

/* step_trace[@step], if there is room. */
void trace_step(uint64_t step, uint64_t address);

/* ---- What an architecture provides ---------------------------------- */

/* A place in the program to come back to; entry.S knows the layout. */
struct checkpoint;
int checkpoint(struct checkpoint *cp) __attribute__((returns_twice));
void resume(struct checkpoint *cp) __attribute__((noreturn));

/* Any CPU but the first stays in here. */
void park_other_cpu(void);

void put_serial(char c);

/**
 * read_option - read what `run` passes to the guest
 * @name: which
 * @text: where it goes
 * @size: of @text
 *
 * Returns: whether there is one that fits; @text is "" otherwise.
 */
bool read_option(const char *name, char *text, size_t size);

/* Everything but the PMU as a case expects it. */
void reset_machine(void);

/* The PMU as cases of a suite expect it. */
void prepare_pmu(const char *suite);

/* All has been said; @good: no case has failed. */
void end_machine(bool good) __attribute__((noreturn));

#endif /* BARE_RUNNER_H */
