/*
 * vpmu-perf-begin - perf waits for its job where its main() would begin
 *
 * ld.so loads this library before perf's own, so that perf's start files call
 * it, when all libraries are ready.  It is linked without a C library, because
 * perf's is another one than the compiler's.  The functions that it calls have
 * been in both for long.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vpmu-perf-job.h"

/* Report an error to the host, which ends the guest. */
static __attribute__((noreturn)) void fail(const char *what)
{
    dprintf(CONTROL_FD, "error %s: %s\n", what, strerror(errno));
    for (;;) {
        pause();
    }
}

static struct job *await_job(void)
{
    struct job *job;
    char byte = 0;

    if (write(WAKER_FD, &byte, 1) != 1 || read(WAKER_FD, &byte, 1) != 1) {
        _exit(127);
    }
    job = mmap(JOB_ADDRESS, JOB_SIZE, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_FIXED, JOB_FD, 0);
    if (job == MAP_FAILED) {
        fail("the job");
    }
    return job;
}

/* Take the first process's descriptors. */
static void arrange_streams(const struct job *job)
{
    int i, fd, first = syscall(SYS_pidfd_open, 1, 0);

    for (i = 0; i < 3; i++) {
        if (job->fds[i] < 0) {
            close(i);
            continue;
        }
        fd = syscall(SYS_pidfd_getfd, first, job->fds[i], 0);
        if (fd < 0 || dup2(fd, i) < 0) {
            fail("a stream");
        }
        close(fd);
    }
    close(first);
}

static void become_user(const struct job *job)
{
    size_t i;

    for (i = 0; i < RLIM_NLIMITS; i++) {
        if (job->limited[i]) {
            /* The host may allow more than this guest does. */
            setrlimit(i, &job->limits[i]);
        }
    }
    umask(job->umask);
    for (i = 1; i < NSIG; i++) {
        if (sigismember(&job->ignored, i) == 1) {
            signal(i, SIG_IGN);
        }
    }
    if (chroot(HOST) < 0 || chdir("/") < 0) {
        fail("/");
    }
    if (setgroups(job->n_groups, job->groups) < 0 ||
        setresgid(job->gid, job->gid, job->gid) < 0 ||
        setresuid(job->uid, job->uid, job->uid) < 0) {
        fail("the user");
    }
    /* Otherwise, its files in /proc would be the superuser's. */
    prctl(PR_SET_DUMPABLE, 1);
    if (chdir(job->directory) < 0) {
        fail(job->directory);
    }
}

/* Does not return; its status is that of a shell that cannot do it. */
static __attribute__((noreturn)) void execute(const struct job *job)
{
    int status;

    execvp(job->argv[0], (char **)job->argv);
    status = errno == ENOENT ? 127 : 126;
    dprintf(2, "vpmu-perf: %s: %s\n", job->argv[0], strerror(errno));
    _exit(status);
}

/* Returns when there is a job for perf. */
static const struct job *begin(void)
{
    const struct job *job = await_job();

    arrange_streams(job);
    become_user(job);
    close_range(WAKER_FD, ~0u, 0);
    environ = (char **)job->envp;
    if (job->run) {
        execute(job);
    }
    /* It would be ld.so's. */
    prctl(PR_SET_NAME, "perf");
    return job;
}

#define MAIN "__libc_start_main"

/* The start files' arguments are passed on, other than argc and argv. */
#if defined(__powerpc64__)
typedef int start_fn(int, char **, char **, void *, void *, void *, void *);

int __libc_start_main(int argc, char **argv, char **envp, void *auxv,
                      void *end_loader, void *functions, void *stack);
int __libc_start_main(int argc, char **argv, char **envp, void *auxv,
                      void *end_loader, void *functions, void *stack)
{
    start_fn *start = (start_fn *)dlsym(RTLD_NEXT, MAIN);
    const struct job *job = begin();

    (void)argc, (void)argv, (void)envp;
    return start(job->args, (char **)job->argv, environ, auxv, end_loader,
                 functions, stack);
}
#else
typedef int start_fn(void *, int, char **, void *, void *, void *, void *);

int __libc_start_main(void *function, int argc, char **argv, void *init,
                      void *fini, void *end_loader, void *stack);
int __libc_start_main(void *function, int argc, char **argv, void *init,
                      void *fini, void *end_loader, void *stack)
{
    start_fn *start = (start_fn *)dlsym(RTLD_NEXT, MAIN);
    const struct job *job = begin();

    (void)argc, (void)argv;
    return start(function, job->args, (char **)job->argv, init, fini,
                 end_loader, stack);
}
#endif
