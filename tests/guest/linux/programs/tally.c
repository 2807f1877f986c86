/*
 * tally - count events of a program, as `perf stat -x ,` does
 *
 *     tally -x , -o FILE -e EVENT,... -- PROGRAM ARGUMENT...
 *
 * Starts faster than perf, which matters where QEMU executes slowly.  Knows the
 * few events that the tests name, all with :u; they are counted all the time or
 * not at all, and include the program's children.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <err.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_EVENTS 8

struct event {
    const char *name;
    int fd;
};

static int open_event(const char *name, pid_t pid)
{
    struct perf_event_attr attr = {
        .size = sizeof(attr),
        .type = PERF_TYPE_HARDWARE,
        .disabled = 1,
        .enable_on_exec = 1,
        .inherit = 1,
        .exclude_kernel = 1,
        .exclude_hv = 1,
        .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED
                       | PERF_FORMAT_TOTAL_TIME_RUNNING,
    };
    unsigned raw;
    int fd;

    if (!strcmp(name, "instructions:u")) {
        attr.config = PERF_COUNT_HW_INSTRUCTIONS;
    } else if (!strcmp(name, "branches:u")) {
        attr.config = PERF_COUNT_HW_BRANCH_INSTRUCTIONS;
    } else if (sscanf(name, "r%x:u", &raw) == 1) {
        attr.type = PERF_TYPE_RAW;
        attr.config = raw;
    } else {
        errx(2, "%s is not known", name);
    }
    fd = syscall(SYS_perf_event_open, &attr, pid, -1, -1,
                 PERF_FLAG_FD_CLOEXEC);
    if (fd < 0) {
        err(2, "%s", name);
    }
    return fd;
}

static void print_event(FILE *f, const struct event *event)
{
    uint64_t count_enabled_running[3];
    uint64_t *v = count_enabled_running;

    if (read(event->fd, v, sizeof(count_enabled_running)) < 0) {
        err(2, "%s", event->name);
    }
    fprintf(f, "%llu,,%s,%llu,%.2f,,\n", (unsigned long long)v[0],
            event->name, (unsigned long long)v[2],
            v[1] ? 100.0 * v[2] / v[1] : 0);
}

/* Start a program that waits until the caller closes @go, or writes to it. */
static pid_t start(char **argv, int *go)
{
    int fds[2];
    pid_t pid;
    char c;

    if (pipe(fds)) {
        err(2, "pipe");
    }
    pid = fork();
    if (pid < 0) {
        err(2, "fork");
    }
    if (!pid) {
        close(fds[1]);
        if (read(fds[0], &c, 1) < 0) {
            err(2, "pipe");
        }
        close(fds[0]);
        execvp(argv[0], argv);
        err(127, "%s", argv[0]);
    }
    close(fds[0]);
    *go = fds[1];
    return pid;
}

int main(int argc, char **argv)
{
    struct event events[MAX_EVENTS];
    char *names = NULL, *name;
    int nr = 0, status, go, i, option;
    FILE *output = stderr;
    pid_t pid;

    while ((option = getopt(argc, argv, "+x:o:e:")) != -1) {
        switch (option) {
        case 'o':
            output = fopen(optarg, "w");
            if (!output) {
                err(2, "%s", optarg);
            }
            break;
        case 'e':
            names = optarg;
            break;
        }
    }
    if (!names || optind == argc) {
        errx(2, "tally -x , -o FILE -e EVENT,... -- PROGRAM ARGUMENT...");
    }
    pid = start(argv + optind, &go);
    for (name = strtok(names, ","); name && nr < MAX_EVENTS;
         name = strtok(NULL, ",")) {
        events[nr].name = name;
        events[nr++].fd = open_event(name, pid);
    }
    close(go);
    if (waitpid(pid, &status, 0) < 0) {
        err(2, "wait");
    }
    for (i = 0; i < nr; i++) {
        print_event(output, &events[i]);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
