/*
 * debugger - count conditional branches as a record-and-replay debugger does
 *
 * Such a debugger finds a moment in a program by the number of conditional
 * branches before it: it programs the counter to interrupt there, with a
 * signal.  rr checks a PMU in this way when it starts; see perf_event_open(2)
 * and fcntl(2) for the interfaces.  Prints
 *
 *     counted BRANCHES COUNT           of a loop that was counted
 *     ready STATUS                     poll(2), after PERF_EVENT_IOC_PERIOD
 *     signal PERIOD COUNT LEFT PLACE CODE SIGNALS
 *                                      of a loop with PERIOD branches and half
 *                                      as many more, at the time of the signal:
 *                                      the count, the number of branches left,
 *                                      and the distance from the beginning of
 *                                      the loop; si_code is CODE
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#define _GNU_SOURCE

#include <err.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#define NEVER 0xffffffffull
#define SIGNAL SIGSTKFLT

/* Values that the signal handler stores */
static volatile struct {
    int signals;
    int code;
    int fd;
    uint64_t count;
    greg_t left;
    greg_t place;
} seen;

static int counter;

static int open_counter(uint64_t config)
{
    struct perf_event_attr attr = {
        .size = sizeof(attr),
        .type = PERF_TYPE_RAW,
        .config = config,
        .sample_period = NEVER,
        .disabled = 1,
        .pinned = 1,
        .exclude_kernel = 1,
        .exclude_guest = 1,
    };
    int fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1,
                     PERF_FLAG_FD_CLOEXEC);

    if (fd < 0) {
        err(2, "perf_event_open");
    }
    return fd;
}

/* Direct the signal to this thread. */
static void want_signal(int fd)
{
    struct f_owner_ex owner = { F_OWNER_TID, syscall(SYS_gettid) };

    if (fcntl(fd, F_SETOWN_EX, &owner) || fcntl(fd, F_SETSIG, SIGNAL)
        || fcntl(fd, F_SETFL, O_ASYNC)) {
        err(2, "fcntl");
    }
}

static void set_period(int fd, uint64_t period)
{
    if (ioctl(fd, PERF_EVENT_IOC_RESET, 0)
        || ioctl(fd, PERF_EVENT_IOC_PERIOD, &period)) {
        err(2, "ioctl");
    }
}

static uint64_t read_counter(int fd)
{
    uint64_t count = 0;

    if (read(fd, &count, sizeof(count)) != sizeof(count)) {
        err(2, "read");
    }
    return count;
}

/* Where the loop of run_branches() begins. */
static intptr_t loop_of_branches;

/*
 * Execute so many conditional branches while the counter is on.  No other
 * conditional branch is between the two system calls.
 */
static void run_branches(int fd, long branches)
{
    asm volatile("lea 1f(%%rip), %%rax\n\t"
                 "mov %%rax, %[loop]\n\t"
                 "mov %[ioctl], %%eax\n\t"
                 "mov %[enable], %%esi\n\t"
                 "xor %%edx, %%edx\n\t"
                 "syscall\n\t"
                 "mov %[branches], %%rcx\n"
                 "1: dec %%rcx\n\t"
                 "jnz 1b\n\t"
                 "mov %[ioctl], %%eax\n\t"
                 "mov %[disable], %%esi\n\t"
                 "syscall"
                 : [loop] "=m"(loop_of_branches)
                 : "D"(fd), [branches] "r"(branches), [ioctl] "i"(SYS_ioctl),
                   [enable] "i"(PERF_EVENT_IOC_ENABLE),
                   [disable] "i"(PERF_EVENT_IOC_DISABLE)
                 : "rax", "rcx", "rdx", "rsi", "r11", "memory", "cc");
}

/* A system call without a conditional branch. */
static inline long call_kernel(long number, long a, long b, long c)
{
    long status;

    asm volatile("syscall" : "=a"(status)
                 : "a"(number), "D"(a), "S"(b), "d"(c)
                 : "rcx", "r11", "memory");
    return status;
}

static void handler(int signal, siginfo_t *info, void *context)
{
    const ucontext_t *c = context;
    uint64_t count = 0;

    call_kernel(SYS_read, counter, (intptr_t)&count, sizeof(count));
    call_kernel(SYS_ioctl, counter, PERF_EVENT_IOC_DISABLE, 0);
    seen.signals++;
    seen.count = count;
    seen.code = info->si_code;
    seen.fd = info->si_fd;
    seen.left = c->uc_mcontext.gregs[REG_RCX];
    seen.place = c->uc_mcontext.gregs[REG_RIP];
}

static void count_branches(int fd, long branches)
{
    set_period(fd, NEVER);
    run_branches(fd, branches);
    printf("counted %ld %llu\n", branches,
           (unsigned long long)read_counter(fd));
}

static void signal_at(int fd, long period)
{
    seen.signals = 0;
    set_period(fd, period);
    run_branches(fd, period + period / 2);
    if (seen.signals && seen.fd != fd) {
        errx(1, "the signal names descriptor %d", seen.fd);
    }
    printf("signal %ld %llu %lld %lld %d %d\n", period,
           (unsigned long long)seen.count, (long long)seen.left,
           (long long)(seen.place - loop_of_branches), seen.code,
           seen.signals);
}

/* Use a counter that sends no signal.  A changed period must take effect. */
static void ready(uint64_t config)
{
    int fd = open_counter(config);
    struct pollfd pfd = { fd, POLLIN };

    set_period(fd, 1);
    run_branches(fd, 500);
    printf("ready %d\n", poll(&pfd, 1, 0));
    close(fd);
}

int main(int argc, char **argv)
{
    static const long periods[] = {
        2, 3, 50, 499, 500, 501, 4999, 100000, 12345678
    };
    struct sigaction action = {
        .sa_sigaction = handler,
        .sa_flags = SA_SIGINFO,
    };
    uint64_t config;
    size_t i;

    if (argc != 2) {
        errx(2, "debugger CODE-OF-CONDITIONAL-BRANCHES");
    }
    config = strtoull(argv[1], NULL, 16);
    ready(config);
    counter = open_counter(config);
    count_branches(counter, 1);
    count_branches(counter, 500);
    count_branches(counter, 1000000);
    if (sigaction(SIGNAL, &action, NULL)) {
        err(2, "sigaction");
    }
    want_signal(counter);
    for (i = 0; i < sizeof(periods) / sizeof(periods[0]); i++) {
        signal_at(counter, periods[i]);
    }
    return 0;
}
