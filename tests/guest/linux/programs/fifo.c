/*
 * fifo PROGRAM...: execute it until it waits, ahead of all other programs; then
 * its children, each when the earlier ones wait
 *
 * A parent that has started a program thus reaches its wait for the program
 * before that is executed.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <sched.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct sched_param parameters = { .sched_priority = 1 };

    if (argc < 2) {
        fprintf(stderr, "usage: fifo PROGRAM [ARGUMENT...]\n");
        return 2;
    }
    if (sched_setscheduler(0, SCHED_FIFO, &parameters)) {
        perror("fifo: sched_setscheduler");
        return 1;
    }
    execvp(argv[1], argv + 1);
    perror(argv[1]);
    return 127;
}
