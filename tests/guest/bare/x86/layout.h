/*
 * Bare-metal test guest: numbers that C and assembly share
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef BARE_LAYOUT_H
#define BARE_LAYOUT_H

/* The ROM is mapped below 4 GiB; it copies the kernel to KERNEL_BASE. */
#define ROM_SIZE        0x40000
#define KERNEL_BASE     0x100000

/* Pages for code that starts in real mode. */
#define TRAMPOLINE_BASE 0x8000
#define SMBASE          0x30000
#define SMI_ENTRY       (SMBASE + 0x8000)

#define MAX_CPUS        4
#define STACK_SIZE      0x4000

/*
 * Selectors. SYSCALL takes its kernel pair from KERNEL_CS, SYSRET its user
 * pair from BOOT_CS32: the order of the five segments is SYSRET's.
 */
#define KERNEL_CS       0x08
#define KERNEL_DS       0x10
#define BOOT_CS32       0x18
#define USER_DS         0x23
#define USER_CS         0x2b
#define TSS_SEL         0x30

/* Offsets in struct percpu; lib.c asserts them. */
#define PERCPU_SELF     0
#define PERCPU_RESULT   8
#define PERCPU_USTACK   16
#define PERCPU_SCRATCH  24
#define PERCPU_RSP0     36

/*
 * Two mebibytes of 4 KiB pages, all unmapped to begin with, for programs
 * that fault. Everything else is mapped one to one, for user mode too.
 */
#define WINDOW_BASE     0x40000000
#define WINDOW_PAGES    512

/* Vectors of our own. */
#define VEC_SYSCALL     0x80
#define VEC_USER_EXIT   0x81
#define VEC_PMI         0x40
#define VEC_TIMER       0x41
#define VEC_IPI         0x42
#define VEC_SPURIOUS    0xff

#define MSR_GLOBAL_CTRL 0x38f

#endif /* BARE_LAYOUT_H */
