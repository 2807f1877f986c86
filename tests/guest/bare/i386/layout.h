/*
 * Guest of 32 bits: addresses and numbers
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef LAYOUT_H
#define LAYOUT_H

/* The processor begins with a code segment at 4 GiB - 64 KiB. */
#define RESET_OFFSET 0xff00
#define STACK_TOP 0x90000
#define USER_STACK_TOP 0x98000

#define KERNEL_CS 0x08
#define KERNEL_DS 0x10
#define USER_CS (0x18 | 3)
#define USER_DS (0x20 | 3)
#define TASK 0x28

#define VECTOR_UD 6
#define VECTOR_PMI 0x40
#define VECTOR_LEAVE 0x41

/* Instructions of run() and run_user(): CALL; three moves and WRMSR. */
#define OVERHEAD 5
/* INT; and IRET, ADD, JMP, the same moves and WRMSR. */
#define OVERHEAD_OF_USER 1
#define OVERHEAD_OF_KERNEL 7
/* ADD and IRET. */
#define OVERHEAD_OF_UD 2

#define NR_NOPS 64

#endif
