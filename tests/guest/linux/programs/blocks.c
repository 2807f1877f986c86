/*
 * blocks - single-step a child, as debuggers do, and count its stops
 *
 * `blocks branches` makes it stop after each taken branch (PTRACE_SINGLEBLOCK),
 * `blocks instructions` after each instruction.  Prints the number of stops in
 * run(), and how many of these were at the target of each of its branches:
 *
 *     stops ALL ODD LEAF BEHIND LOOP DONE
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#define _GNU_SOURCE

#include <err.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

/* 999 rounds; in every second one, a branch is not taken. */
asm("run:\n"
    "    mov $1000, %ecx\n"
    "run_loop:\n"
    "    dec %ecx\n"
    "    jz run_done\n"
    "    test $1, %cl\n"
    "    jnz run_odd\n"
    "    nop\n"
    "run_odd:\n"
    "    call run_leaf\n"
    "run_behind:\n"
    "    jmp run_loop\n"
    "    nop\n"
    "run_done:\n"
    "    ret\n"
    "run_leaf:\n"
    "    ret\n"
    "run_end:\n");

#define ADDRESS_OF(label) ({                                \
    long address_;                                          \
                                                            \
    asm("lea " #label "(%%rip), %0" : "=r" (address_));     \
    address_;                                               \
})

#define NR_PLACES 5

static long places[NR_PLACES], at[NR_PLACES], all;

static void find_places(void)
{
    places[0] = ADDRESS_OF(run_odd);
    places[1] = ADDRESS_OF(run_leaf);
    places[2] = ADDRESS_OF(run_behind);
    places[3] = ADDRESS_OF(run_loop);
    places[4] = ADDRESS_OF(run_done);
}

static void note_stop(pid_t child)
{
    errno = 0;
    long rip = ptrace(PTRACE_PEEKUSER, child,
                      offsetof(struct user_regs_struct, rip), NULL);

    if (errno) {
        err(2, "ptrace");
    }
    if (rip < ADDRESS_OF(run) || rip >= ADDRESS_OF(run_end)) {
        return;
    }
    all++;
    for (unsigned i = 0; i < NR_PLACES; i++) {
        at[i] += rip == places[i];
    }
}

static void be_traced(void)
{
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL)) {
        err(2, "ptrace");
    }
    raise(SIGSTOP);
    ((void (*)(void))ADDRESS_OF(run))();
    _exit(0);
}

int main(int argc, char **argv)
{
    int how = argc == 2 && !strcmp(argv[1], "branches") ? PTRACE_SINGLEBLOCK
              : argc == 2 && !strcmp(argv[1], "instructions")
              ? PTRACE_SINGLESTEP : 0;
    pid_t child;
    int status;

    if (!how) {
        errx(1, "usage: blocks branches|instructions");
    }
    find_places();
    child = fork();
    if (child < 0) {
        err(2, "fork");
    }
    if (!child) {
        be_traced();
    }
    while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
        note_stop(child);
        if (ptrace(how, child, NULL, NULL)) {
            err(2, "ptrace");
        }
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status)) {
        errx(2, "the child has ended with status 0x%x", status);
    }
    printf("stops %ld", all);
    for (unsigned i = 0; i < NR_PLACES; i++) {
        printf(" %ld", at[i]);
    }
    printf("\n");
    return 0;
}
