/*
 * Suite smc: code that changes code
 *
 * QEMU discards translations that a store hits.  If the store is in the
 * discarded block, QEMU goes on with a new block after the store.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"

/* The code is in .text, which is writable. */

/*
 * The first turn replaces the NOP four instructions ahead, in the same block,
 * by CLC; the second turn restores it.  The number of turns must be even.
 */
CODE("smc_ahead:\n"
     "    mov %rdi, %rcx\n"
     "    mov $0x90, %eax\n"
     "1:  xor $0x90 ^ 0xf8, %al\n"
     "    mov %al, 2f(%rip)\n"
     "    nop\n"
     "    nop\n"
     "    nop\n"
     "2:  nop\n"
     "    dec %rcx\n"
     "    jnz 1b\n"
     "    ret\n");
code_fn smc_ahead;

TEST(smc, same_block)
{
    expect_both("store ahead", smc_ahead, 100, 8 * 100 + 3);
}

/* Change code before the store, in the same block, for the next turn. */
CODE("smc_behind:\n"
     "    mov %rdi, %rcx\n"
     "    mov $0x90, %eax\n"
     "1:  nop\n"
     "    xor $0x90 ^ 0xf8, %al\n"
     "    nop\n"
     "    mov %al, 1b(%rip)\n"
     "    nop\n"
     "    dec %rcx\n"
     "    jnz 1b\n"
     "    ret\n");
code_fn smc_behind;

TEST(smc, behind)
{
    expect_both("store behind", smc_behind, 100, 7 * 100 + 3);
}

/*
 * A function on another page has its NOP replaced by a RET, and restored: it
 * has 3 and 2 instructions in turn.
 */
CODE("smc_other_page:\n"
     "    mov %rdi, %rcx\n"
     "    mov $0x90, %eax\n"
     "1:  xor $0x90 ^ 0xc3, %al\n"
     "    mov %al, smc_victim+1\n"
     "    call smc_victim\n"
     "    dec %rcx\n"
     "    jnz 1b\n"
     "    ret\n"
     "    .balign 4096\n"
     "smc_victim:\n"
     "    nop\n"
     "    nop\n"
     "    ret\n");
code_fn smc_other_page;

TEST(smc, other_page)
{
    expect_both("store to another page", smc_other_page, 100,
                5 * 100 + 5 * 50 + 3);
}

/* A string store overwrites the instructions after it: NOPs by NOPs. */
CODE("smc_string:\n"
     "    mov $0x90, %eax\n"
     "    mov $10, %ecx\n"
     "    lea 1f(%rip), %rdi\n"
     "    nop\n"
     "    rep stosb\n"
     "1:  .rept 10\n"
     "    nop\n"
     "    .endr\n"
     "    ret\n");
code_fn smc_string;

TEST(smc, string)
{
    expect_both("REP STOSB over what follows", smc_string, 0, 16);
}

/* An immediate that grows with every turn: each translation is new. */
CODE("smc_immediate:\n"
     "    mov %rdi, %rcx\n"
     "    xor %edx, %edx\n"
     "    movl $0, 2f+1(%rip)\n"
     "1:  incl 2f+1(%rip)\n"
     "2:  mov $0, %eax\n"
     "    add %rax, %rdx\n"
     "    dec %rcx\n"
     "    jnz 1b\n"
     "    mov %rdx, %rax\n"
     "    ret\n");
code_fn smc_immediate;

TEST(smc, immediate)
{
    expect(measure_kernel(smc_immediate, 200).result, 200 * 201 / 2,
           "sum of the immediates");
    expect_both("changed immediate", smc_immediate, 200, 5 * 200 + 5);
}
