/*
 * refused - what Linux tells a program that writes registers of the PMU which
 * it may not write
 *
 * Prints the si_code of each SIGILL; sigaction(2).
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#define _GNU_SOURCE

#include <signal.h>
#include <stdio.h>
#include <ucontext.h>

static volatile int code;  /* by the handler */

static void on_signal(int number, siginfo_t *info, void *context)
{
    ucontext_t *interrupted = context;

    code = info->si_code;
    interrupted->uc_mcontext.regs->nip += 4;
}

int main(void)
{
    struct sigaction action = {
        .sa_sigaction = on_signal,
        .sa_flags = SA_SIGINFO,
    };

    sigaction(SIGILL, &action, NULL);
    asm volatile("mtspr 771, %0" : : "r"(0));
    printf("PMC1 %d\n", code);
    code = 0;
    asm volatile("mtspr 768, %0" : : "r"(0));
    printf("SIER %d\n", code);
    code = 0;
    asm volatile(".long 0");
    printf("illegal %d\n", code);
    return 0;
}
