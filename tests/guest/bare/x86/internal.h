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
    uint64_t rip, rsp, rbx, rbp, r12, r13, r14, r15;
};

/* Called by the assembly stubs */
void trap(struct regs *regs);
void cpu_main(unsigned index);

/* Fixups, which the linker collects: see kernel.ld. */
extern const struct fixup {
    uint64_t from, to;
} fixups_begin[], fixups_end[];

/* In assembly. */
extern uint64_t gdt[];
extern volatile uint32_t cpus_started; /* by each CPU that starts */
extern const char trap_stubs[256][16];
LABEL(user_exit_gate);
LABEL(stepped_return);
LABEL(trampoline);
LABEL(trampoline_end);
code_fn stepped_call;

#endif /* BARE_INTERNAL_H */
