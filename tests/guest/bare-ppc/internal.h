/*
 * Bare-metal test guest for Power: what the parts of the library need of each
 * other
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef BARE_PPC_INTERNAL_H
#define BARE_PPC_INTERNAL_H

#include "bare.h"

/* A place in the program to come back to; entry.S knows the layout. */
struct checkpoint {
    uint64_t lr, cr, sp, toc, gpr[18];
};

int checkpoint(struct checkpoint *cp) __attribute__((returns_twice));
void resume(struct checkpoint *cp) __attribute__((noreturn));

/* From the assembly stubs. */
void trap(struct regs *regs);
void main(const void *fdt) __attribute__((noreturn));

/* What the linker collects: see kernel.ld. */
extern const struct test tests_begin[], tests_end[];

void stop_machine(void) __attribute__((noreturn));

/* Everything but the PMU as a test expects it; the first time and later. */
void init_machine(void);
void reset_machine(void);

#endif /* BARE_PPC_INTERNAL_H */
