/*
 * vpmu-perf-measure - what the guest of vpmu-perf measures without perf
 *
 * Fields of a job:
 *
 *   count=TYPE CONFIG 1  count an event of the program and its children, as
 *                        perf_event_open() has it, in user mode; with 0, in all
 *   region=1             count, or have perf count, only while the program asks
 *                        for it (vpmu-perf.h)
 *   maps=1               report the files that programs map to execute them
 *
 * Reports, before the end:
 *
 *   count VALUE ENABLED RUNNING      in the order of the fields
 *   map TIME START LENGTH OFFSET PATH
 *                                    all in hexadecimal
 *   unmapped 1                       not all maps are reported
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef VPMU_PERF_MEASURE_H
#define VPMU_PERF_MEASURE_H

#include <stdbool.h>
#include <sys/types.h>

/* Print to the host. */
typedef void say_fn(const char *format, ...)
    __attribute__((format(printf, 1, 2)));
/* End with an error; does not return. */
typedef void die_fn(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/**
 * measure_understand - take a field of the job
 * @key: its name
 * @value: its value
 *
 * Returns: false if it is no field of these.
 */
bool measure_understand(const char *key, const char *value);

/**
 * measure_maps - begin to note what is mapped
 * @die: called if that is not possible
 */
void measure_maps(die_fn *die);

/**
 * measure_counts - count from the moment at which a process executes a program
 * @pid: the process, which waits
 * @die: called if that is not possible
 */
void measure_counts(pid_t pid, die_fn *die);

/**
 * measure_listen - let programs start and stop the counters, if the job says so
 * @where: a directory, for the socket "control"
 * @by_perf: the counters are perf's, which has --control with FIFOs "commands"
 *           and "answers" in this directory
 * @die: called if that is not possible
 */
void measure_listen(const char *where, bool by_perf, die_fn *die);

/**
 * measure_awaits - where the next request comes, or perf's answer
 *
 * Returns: a descriptor, or -1.
 */
int measure_awaits(void);

/**
 * measure_obey - do what a program asks for, as soon as that descriptor is ready
 */
void measure_obey(void);

/**
 * measure_report - report all of it
 * @say: prints to the host
 */
void measure_report(say_fn *say);

#endif /* VPMU_PERF_MEASURE_H */
