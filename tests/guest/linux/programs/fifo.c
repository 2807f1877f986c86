/*
 * fifo PROGRAM...: execute it until it waits, whoever else is ready; its
 * children, too, each when the ones before it wait
 *
 * Who has just started a program goes on to wait for it, and is not somewhere
 * on its way there while the program is executed.
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
