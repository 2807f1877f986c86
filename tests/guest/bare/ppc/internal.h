/*
 * Bare-metal test guest: interfaces between parts of the library
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef BARE_INTERNAL_H
#define BARE_INTERNAL_H

#include "runner.h"

/* A point in the program to return to; entry.S knows the layout. */
struct checkpoint {
    uint64_t lr, cr, sp, toc, gpr[18];
};

/* Called by the assembly stubs */
void trap(struct regs *regs);
void start_machine(const void *fdt) __attribute__((noreturn));

/* Initialize the machine once; reset_machine() does the rest. */
void init_machine(void);

/* In assembly: end QEMU, which prints the address. */
void stop_machine(void) __attribute__((noreturn));

#endif /* BARE_INTERNAL_H */
