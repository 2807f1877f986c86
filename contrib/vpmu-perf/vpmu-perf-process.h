/*
 * vpmu-perf-process - what the processes of vpmu-perf's guest wait for
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef VPMU_PERF_PROCESS_H
#define VPMU_PERF_PROCESS_H

#include <stdbool.h>

/**
 * call_test_fn - whether a system call is one that the caller looks for
 * @pid: the process
 * @call: the number of the system call
 * @arg: its first three arguments
 */
typedef bool call_test_fn(long pid, long call, const unsigned long *arg);

/**
 * process_waits - whether a thread of a process waits in a system call
 * @pid: the process; one that is gone does not wait
 * @test: which system calls are meant
 */
bool process_waits(long pid, call_test_fn *test);

#endif /* VPMU_PERF_PROCESS_H */
