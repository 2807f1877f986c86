/*
 * vpmu-perf-measure - what the guest of vpmu-perf measures without perf
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "vpmu-perf-measure.h"
#include "vpmu-perf-process.h"

#define MAX_EVENTS 16
#define MAX_CPUS 64
/* For some ten thousand maps */
#define RING_SIZE (2u << 20)

static struct {
    struct perf_event_attr attrs[MAX_EVENTS];
    int fds[MAX_EVENTS];
    unsigned n;
    bool maps, region;
    void *rings[MAX_CPUS];
    unsigned n_rings;
} measured;

/* Where programs ask, who waits for perf, and perf's two FIFOs; or -1 */
static struct {
    int socket, program, commands, answers;
} region = { -1, -1, -1, -1 };

static int perf_event_open(struct perf_event_attr *attr, pid_t pid, int cpu)
{
    return syscall(SYS_perf_event_open, attr, pid, cpu, -1,
                   PERF_FLAG_FD_CLOEXEC);
}

static void add_event(const char *text)
{
    struct perf_event_attr attr = {
        .size = sizeof(attr),
        .disabled = true,
        .inherit = true,
        .enable_on_exec = true,
        .read_format = PERF_FORMAT_TOTAL_TIME_ENABLED |
                       PERF_FORMAT_TOTAL_TIME_RUNNING,
    };
    unsigned int type, user;
    unsigned long long config;

    if (measured.n < MAX_EVENTS &&
        sscanf(text, "%u %llx %u", &type, &config, &user) == 3) {
        attr.type = type;
        attr.config = config;
        attr.exclude_kernel = attr.exclude_hv = user;
        measured.attrs[measured.n++] = attr;
    }
}

bool measure_understand(const char *key, const char *value)
{
    if (!strcmp(key, "count")) {
        add_event(value);
    } else if (!strcmp(key, "maps")) {
        measured.maps = true;
    } else if (!strcmp(key, "region")) {
        measured.region = true;
    } else {
        return false;
    }
    return true;
}

/* On each CPU, of all processes */
void measure_maps(die_fn *die)
{
    struct perf_event_attr attr = {
        .size = sizeof(attr),
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_DUMMY,
        .sample_type = PERF_SAMPLE_TIME,
        .sample_id_all = true,
        .mmap = true,
        .mmap2 = true,
    };
    unsigned n = sysconf(_SC_NPROCESSORS_ONLN);

    if (!measured.maps) {
        return;
    }
    for (unsigned i = 0; i < n && i < MAX_CPUS; i++) {
        int fd = perf_event_open(&attr, -1, i);
        void *ring = fd < 0 ? MAP_FAILED
                     : mmap(NULL, getauxval(AT_PAGESZ) + RING_SIZE,
                            PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

        if (ring == MAP_FAILED) {
            die("maps cannot be followed: %s", strerror(errno));
        }
        measured.rings[measured.n_rings++] = ring;
    }
}

void measure_counts(pid_t pid, die_fn *die)
{
    for (unsigned i = 0; i < measured.n; i++) {
        measured.attrs[i].enable_on_exec = !measured.region;
        measured.fds[i] = perf_event_open(&measured.attrs[i], pid, -1);
        if (measured.fds[i] < 0) {
            die("event %u of %u cannot be counted: %s", i + 1, measured.n,
                strerror(errno));
        }
    }
}

static int open_fifo(const char *path, die_fn *die)
{
    int fd = -1;

    if (mkfifo(path, 0) == 0 && chmod(path, 0666) == 0) {
        fd = open(path, O_RDWR | O_CLOEXEC);
    }
    if (fd < 0) {
        die("%s: %s", path, strerror(errno));
    }
    return fd;
}

void measure_listen(const char *where, bool by_perf, die_fn *die)
{
    struct sockaddr_un name = { .sun_family = AF_UNIX };
    char path[64];

    if (!measured.region) {
        return;
    }
    if (by_perf) {
        snprintf(path, sizeof(path), "%s/commands", where);
        region.commands = open_fifo(path, die);
        snprintf(path, sizeof(path), "%s/answers", where);
        region.answers = open_fifo(path, die);
    }
    snprintf(name.sun_path, sizeof(name.sun_path), "%s/control", where);
    region.socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (region.socket < 0 ||
        bind(region.socket, (struct sockaddr *)&name, sizeof(name)) < 0 ||
        chmod(name.sun_path, 0666) < 0 || listen(region.socket, 64) < 0) {
        die("%s: %s", name.sun_path, strerror(errno));
    }
}

static bool awaits_answer(long pid, long call, const unsigned long *arg)
{
    (void)pid;
    (void)arg;
#ifdef SYS_recv
    if (call == SYS_recv) {
        return true;
    }
#endif
    return call == SYS_recvfrom;
}

/*
 * A program may be counted while it is on its way from its request to the
 * answer, or may not: it waits for the answer first.
 */
static void await_program(int fd)
{
    struct ucred program;
    socklen_t size = sizeof(program);
    int ms = 100;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &program, &size) < 0) {
        return;
    }
    while (ms-- && !process_waits(program.pid, awaits_answer)) {
        usleep(1000);
    }
}

static void answer(int program)
{
    send(program, "", 1, MSG_NOSIGNAL);
    close(program);
}

/* The counters are perf's, which then answers. */
static void ask_perf(bool start)
{
    const char *command = start ? "enable\n" : "disable\n";

    if (write(region.commands, command, strlen(command)) < 0) {
        answer(region.program);
        region.program = -1;
    }
}

static void switch_counters(bool start)
{
    for (unsigned i = 0; i < measured.n; i++) {
        ioctl(measured.fds[i], start ? PERF_EVENT_IOC_ENABLE
                                     : PERF_EVENT_IOC_DISABLE, 0);
    }
}

static void take_request(int fd)
{
    /* A program that only connects is not waited for. */
    struct timeval second = { .tv_sec = 1 };
    char what;

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof(second));
    if (recv(fd, &what, 1, 0) != 1) {
        close(fd);
        return;
    }
    await_program(fd);
    if (region.commands >= 0) {
        region.program = fd;
        ask_perf(what == '+');
    } else {
        switch_counters(what == '+');
        answer(fd);
    }
}

int measure_awaits(void)
{
    return region.program >= 0 ? region.answers : region.socket;
}

void measure_obey(void)
{
    char text[16];

    if (region.program < 0) {
        take_request(accept4(region.socket, NULL, NULL, SOCK_CLOEXEC));
    } else if (read(region.answers, text, sizeof(text)) > 0) {
        answer(region.program);
        region.program = -1;
    }
}

static void report_map(const struct perf_event_header *header, say_fn *say)
{
    const struct {
        struct perf_event_header header;
        uint32_t pid, tid;
        uint64_t start, length, offset;
        uint32_t major, minor;
        uint64_t inode, generation;
        uint32_t protection, flags;
        char path[];
    } *map = (const void *)header;
    const uint64_t *end = (const void *)((const char *)map + header->size);
    char path[2 * 4096 + 1];
    size_t i;

    for (i = 0; map->path[i] && i < 4096; i++) {
        sprintf(path + 2 * i, "%02x", (unsigned char)map->path[i]);
    }
    path[2 * i] = '\0';
    say("map %" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64 " %s\n", end[-1],
        map->start, map->length, map->offset, path);
}

/* Nothing is read before the end, so the ring begins at its beginning. */
static void report_ring(const struct perf_event_mmap_page *ring, say_fn *say)
{
    const char *data = (const char *)ring + getauxval(AT_PAGESZ);
    uint64_t at = 0, end = __atomic_load_n(&ring->data_head, __ATOMIC_ACQUIRE);

    while (at < end) {
        const struct perf_event_header *header = (const void *)(data + at);

        if (header->type == PERF_RECORD_MMAP2) {
            report_map(header, say);
        }
        at += header->size;
    }
    /* What does not fit is noted when something does again: never. */
    if (end + 8192 > RING_SIZE) {
        say("unmapped 1\n");
    }
}

void measure_report(say_fn *say)
{
    uint64_t values[3];

    for (unsigned i = 0; i < measured.n; i++) {
        if (read(measured.fds[i], values, sizeof(values)) == sizeof(values)) {
            say("count %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", values[0],
                values[1], values[2]);
        }
    }
    for (unsigned i = 0; i < measured.n_rings; i++) {
        report_ring(measured.rings[i], say);
    }
}
