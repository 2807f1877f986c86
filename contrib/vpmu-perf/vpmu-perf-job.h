/*
 * vpmu-perf-job - memory that perf shares with the first process of its guest
 *
 * perf is started before there is a job, and waits for it where its main() would
 * begin, so that a guest that has been saved goes on there.  The first process
 * reads the job into memory that both have at the same address.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef VPMU_PERF_JOB_H
#define VPMU_PERF_JOB_H

#include <signal.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/types.h>

/* The host's files, which will be perf's root */
#define HOST "/host"

/* Descriptors that perf begins with: of its leader, the job, and the host */
#define WAKER_FD 3
#define JOB_FD 4
#define CONTROL_FD 5

/* Where the job is, far from what Linux maps by itself */
#define JOB_ADDRESS ((struct job *)0x200000000000)
/* More than Linux would let a program have as arguments and variables */
#define JOB_SIZE (64ul << 20)

enum kind { PIPE, TTY, NOTHING, CLOSED, PATH, SAME };

struct stream {
    enum kind kind;
    const char *path;
    off_t offset;
};

/**
 * struct job - a command of the user's, and its surroundings
 * @fds: descriptors of the first process, perf's standard streams; -1 if closed
 * @used: how much of the memory is in use, with this structure
 *
 * Lists end with NULL.
 */
struct job {
    const char *directory;
    const char **argv, **envp, **sources, **targets;
    gid_t *groups;
    size_t args, envs, n_sources, n_targets, n_groups, n_exports;
    uid_t uid;
    gid_t gid;
    mode_t umask;
    sigset_t ignored;
    bool run;
    struct stream streams[3];
    struct winsize window;
    struct rlimit limits[RLIM_NLIMITS];
    bool limited[RLIM_NLIMITS];
    int fds[3];
    size_t used;
};

#endif /* VPMU_PERF_JOB_H */
