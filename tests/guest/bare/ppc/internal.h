/*
 * Bare-metal test guest: what the parts of the library need of each other
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef BARE_INTERNAL_H
#define BARE_INTERNAL_H

#include "runner.h"

/* A place in the program to come back to; entry.S knows the layout. */
struct checkpoint {
    uint64_t lr, cr, sp, toc, gpr[18];
};

/* From the assembly stubs. */
void trap(struct regs *regs);
void start_machine(const void *fdt) __attribute__((noreturn));

/* The first time; reset_machine() does the rest. */
void init_machine(void);

/* In assembly: QEMU ends, and says where. */
void stop_machine(void) __attribute__((noreturn));

#endif /* BARE_INTERNAL_H */
