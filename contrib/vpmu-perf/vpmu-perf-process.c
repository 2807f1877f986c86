/*
 * vpmu-perf-process - what the processes of vpmu-perf's guest wait for
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "vpmu-perf-process.h"

static bool thread_waits(long pid, long thread, call_test_fn *test)
{
    char path[64], line[256] = "";
    unsigned long arg[3];
    long call;
    int fd;

    snprintf(path, sizeof(path), "/proc/%ld/task/%ld/syscall", pid, thread);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    read(fd, line, sizeof(line) - 1);
    close(fd);
    return sscanf(line, "%ld %lx %lx %lx", &call, &arg[0], &arg[1],
                  &arg[2]) == 4 && test(pid, call, arg);
}

bool process_waits(long pid, call_test_fn *test)
{
    char path[64];
    struct dirent *entry;
    bool is_found = false;
    DIR *tasks;

    snprintf(path, sizeof(path), "/proc/%ld/task", pid);
    tasks = opendir(path);
    while (tasks && !is_found && (entry = readdir(tasks))) {
        is_found = thread_waits(pid, atol(entry->d_name), test);
    }
    if (tasks) {
        closedir(tasks);
    }
    return is_found;
}
