/*
 * vpmu-perf.h - count a part of a program
 *
 *     prepare();
 *     vpmu_perf_start();
 *     work();
 *     vpmu_perf_stop();
 *
 * and "vpmu-perf --region stat ./program" counts work(), and the same
 * instructions of these calls each time.  Without vpmu-perf they do nothing.
 * Parts add up.  Nothing has to be linked.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef VPMU_PERF_H
#define VPMU_PERF_H

#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static inline void vpmu_perf_request(char what)
{
    struct sockaddr_un name;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

    memset(&name, 0, sizeof(name));
    name.sun_family = AF_UNIX;
    strcpy(name.sun_path, "/dev/vpmu-perf/control");
    if (fd < 0) {
        return;
    }
    if (connect(fd, (struct sockaddr *)&name, sizeof(name)) == 0 &&
        send(fd, &what, 1, 0) == 1) {
        /* It is done when there is an answer. */
        (void)!recv(fd, &what, 1, 0);
    }
    close(fd);
}

/* Start to count. */
static inline void vpmu_perf_start(void)
{
    vpmu_perf_request('+');
}

/* Stop. */
static inline void vpmu_perf_stop(void)
{
    vpmu_perf_request('-');
}

#endif /* VPMU_PERF_H */
