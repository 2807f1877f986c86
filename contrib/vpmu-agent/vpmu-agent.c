/*
 * vpmu-agent - get this guest's profile from QEMU, with its processes
 *
 *   vpmu-agent PORT [COMMAND [ARGUMENT...]]
 *
 * PORT is a virtio-serial port that is connected to a pmu-profile.  Through it,
 * the agent reports where Linux has the current task, and which files processes
 * map.  The samples that QEMU takes while COMMAND runs, or until the agent is
 * interrupted, are written to standard output, for `perf report -i -`.  If QEMU
 * does not answer a request to end, the agent ends after a second signal, or
 * after five seconds.
 *
 * Needs BTF (/sys/kernel/btf/vmlinux), and to be root in the first PID namespace,
 * that of the kernel's own pids: in a container, pids are others.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#define _GNU_SOURCE
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* How long to wait for QEMU */
#define PATIENCE_MS 5000

/*
 * Output
 */

static void await_room(int port)
{
    struct pollfd fd = { port, POLLOUT, 0 };

    if (poll(&fd, 1, PATIENCE_MS) == 0) {
        errx(1, "QEMU does not listen");
    }
}

/* Whether QEMU has closed the port; its reader is also told. */
static bool is_closed(int port)
{
    struct pollfd fd = { port, 0, 0 };

    return poll(&fd, 1, 0) > 0 && fd.revents & POLLHUP;
}

static void write_line(int port, const char *line, size_t length)
{
    while (length && !is_closed(port)) {
        ssize_t n = write(port, line, length);

        if (n >= 0) {
            line += n;
            length -= n;
        } else if (errno == EAGAIN) {
            await_room(port);
        } else if (errno != EINTR) {
            err(1, "the port");
        }
    }
}

static void __attribute__((format(printf, 2, 3)))
say(int port, const char *format, ...)
{
    va_list args;
    char *line;
    int length;

    va_start(args, format);
    length = vasprintf(&line, format, args);
    va_end(args);
    if (length < 0) {
        err(1, "a line of text");
    }
    write_line(port, line, length);
    free(line);
}

/*
 * BTF, see Documentation/bpf/btf.rst
 */

#define BTF_PATH  "/sys/kernel/btf/vmlinux"
#define BTF_MAGIC 0xeb9f

enum {
    KIND_INT = 1, KIND_PTR, KIND_ARRAY, KIND_STRUCT, KIND_UNION, KIND_ENUM,
    KIND_FWD, KIND_TYPEDEF, KIND_VOLATILE, KIND_CONST, KIND_RESTRICT,
    KIND_FUNC, KIND_FUNC_PROTO, KIND_VAR, KIND_DATASEC, KIND_FLOAT,
    KIND_DECL_TAG, KIND_TYPE_TAG, KIND_ENUM64,
};

typedef struct BtfHeader {
    uint16_t magic;
    uint8_t version, flags;
    uint32_t header_size, types_at, types_size, names_at, names_size;
} BtfHeader;

typedef struct BtfType {
    uint32_t name, info, size;
} BtfType;

typedef struct BtfMember {
    uint32_t name, type, offset;
} BtfMember;

/* All types, by number; 0 is not a type. */
typedef struct Btf {
    const char *names;
    const BtfType **types;
    uint32_t nr_types;
} Btf;

static unsigned kind_of(const BtfType *t)
{
    return t->info >> 24 & 0x1f;
}

static unsigned length_of(const BtfType *t)
{
    return t->info & 0xffff;
}

/* The size of the data that follow a type, in bytes */
static size_t size_behind(const BtfType *t)
{
    switch (kind_of(t)) {
    case KIND_INT:
    case KIND_VAR:
    case KIND_DECL_TAG:
        return 4;
    case KIND_ARRAY:
        return 12;
    case KIND_STRUCT:
    case KIND_UNION:
    case KIND_DATASEC:
    case KIND_ENUM64:
        return 12 * length_of(t);
    case KIND_ENUM:
    case KIND_FUNC_PROTO:
        return 8 * length_of(t);
    default:
        return 0;
    }
}

/* The size of a file in sysfs is not known before it is read. */
static char *read_whole(const char *path, size_t *read_size)
{
    size_t size = 0, room = 1 << 24;
    char *bytes = malloc(room);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    if (fd < 0 || !bytes) {
        err(1, "%s", path);
    }
    while ((n = read(fd, bytes + size, room - size)) > 0) {
        size += n;
        if (size == room) {
            room *= 2;
            bytes = realloc(bytes, room);
            if (!bytes) {
                err(1, "%s", path);
            }
        }
    }
    if (n < 0) {
        err(1, "%s", path);
    }
    close(fd);
    *read_size = size;
    return bytes;
}

static void index_types(Btf *btf, const char *at, const char *end)
{
    /* No type is smaller than this. */
    btf->types = calloc((end - at) / sizeof(BtfType) + 1,
                        sizeof(*btf->types));
    if (!btf->types) {
        err(1, BTF_PATH);
    }
    btf->nr_types = 1;
    while (at < end) {
        const BtfType *t = (const BtfType *)at;

        btf->types[btf->nr_types++] = t;
        at += sizeof(*t) + size_behind(t);
    }
}

static Btf read_btf(void)
{
    size_t size;
    char *bytes = read_whole(BTF_PATH, &size);
    const BtfHeader *header = (const BtfHeader *)bytes;
    const char *body;
    Btf btf;

    if (size < sizeof(*header) || header->magic != BTF_MAGIC) {
        errx(1, "%s is no BTF", BTF_PATH);
    }
    body = bytes + header->header_size;
    btf.names = body + header->names_at;
    index_types(&btf, body + header->types_at,
                body + header->types_at + header->types_size);
    return btf;
}

static bool is_compound(const BtfType *t)
{
    return kind_of(t) == KIND_STRUCT || kind_of(t) == KIND_UNION;
}

static const BtfType *find_struct(const Btf *btf, const char *name)
{
    for (uint32_t i = 1; i < btf->nr_types; i++) {
        const BtfType *t = btf->types[i];

        if (kind_of(t) == KIND_STRUCT && !strcmp(btf->names + t->name, name)) {
            return t;
        }
    }
    return NULL;
}

/* If there are bit fields, the upper byte of an offset is their size. */
static uint32_t offset_of(const BtfType *t, const BtfMember *m)
{
    return t->info >> 31 ? m->offset & 0xffffff : m->offset;
}

/* In bits, also for members of unnamed members.  -1 if not found. */
static int64_t find_member(const Btf *btf, const BtfType *t, const char *name)
{
    const BtfMember *m = (const BtfMember *)(t + 1);

    for (unsigned i = 0; i < length_of(t); i++) {
        const BtfType *type = btf->types[m[i].type];
        int64_t inner = -1;

        if (!strcmp(btf->names + m[i].name, name)) {
            return offset_of(t, &m[i]);
        }
        if (!btf->names[m[i].name] && type && is_compound(type)) {
            inner = find_member(btf, type, name);
        }
        if (inner >= 0) {
            return offset_of(t, &m[i]) + inner;
        }
    }
    return -1;
}

static uint64_t member(const Btf *btf, const char *type, const char *name)
{
    const BtfType *t = find_struct(btf, type);
    int64_t offset = t ? find_member(btf, t, name) : -1;

    if (offset < 0) {
        errx(1, "this kernel has no %s.%s", type, name);
    }
    return offset / 8;
}

/*
 * The current task
 */

#if defined(__x86_64__)

/* Returns: 0 if the symbol does not exist */
static uint64_t kernel_symbol(const char *name)
{
    FILE *f = fopen("/proc/kallsyms", "re");
    uint64_t addr = 0, found = 0;
    char line[512], word[256];

    if (!f) {
        err(1, "/proc/kallsyms");
    }
    while (!found && fgets(line, sizeof(line), f)) {
        if (sscanf(line, "%" SCNx64 " %*c %255s", &addr, word) == 2
            && !strcmp(word, name)) {
            found = addr;
        }
    }
    fclose(f);
    return found;
}

/* From the base of GS: a per-CPU variable, in some kernels within pcpu_hot */
static uint64_t find_current(const Btf *btf)
{
    uint64_t hot = kernel_symbol("pcpu_hot");
    uint64_t current = hot ? hot + member(btf, "pcpu_hot", "current_task")
                           : kernel_symbol("current_task");

    if (!current) {
        errx(1, "/proc/kallsyms has no current_task; who reads it must be "
             "root");
    }
    return current;
}

#elif defined(__powerpc64__)

static uint64_t find_current(const Btf *btf)
{
    return member(btf, "paca_struct", "__current");
}

#else
#error Where is the current task on this architecture?
#endif

static void say_tasks(int port)
{
    Btf btf = read_btf();

    say(port, "task 0x%" PRIx64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
        find_current(&btf), member(&btf, "task_struct", "pid"),
        member(&btf, "task_struct", "tgid"),
        member(&btf, "task_struct", "comm"));
}

/*
 * Processes that already run
 */

#define MAX_PATH 3000

/*
 * A program can choose the names of the files that it maps: a name must not add
 * lines.  A path in /proc/PID/maps has no control characters, one in perf's
 * records may.
 */
static void say_map(int port, uint64_t age, uint32_t pid, uint64_t start,
                    uint64_t length, uint64_t offset, const char *path)
{
    char shown[MAX_PATH + 1];
    size_t i;

    for (i = 0; i < MAX_PATH && path[i]; i++) {
        shown[i] = (unsigned char)path[i] < ' ' ? '?' : path[i];
    }
    shown[i] = '\0';
    say(port, "map %" PRIu64 " %" PRIu32 " 0x%" PRIx64 " 0x%" PRIx64
        " 0x%" PRIx64 " %s\n", age, pid, start, length, offset, shown);
}

static void say_old_map(int port, uint32_t pid, const char *line)
{
    uint64_t start, end, offset;
    char mode[5];
    int path = 0;

    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n",
               &start, &end, mode, &offset, &path) == 4
        && path && line[path] && strchr(mode, 'x')) {
        say_map(port, 0, pid, start, end - start, offset, line + path);
    }
}

static void say_old_maps_of(int port, const char *pid)
{
    char path[64], line[4096];
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%.20s/maps", pid);
    f = fopen(path, "re");
    if (!f) {
        return;         /* It has ended. */
    }
    while (fgets(line, sizeof(line), f)) {
        line[strcspn(line, "\n")] = '\0';
        say_old_map(port, atoi(pid), line);
    }
    fclose(f);
}

static void say_old_maps(int port)
{
    DIR *proc = opendir("/proc");
    const struct dirent *entry;

    if (!proc) {
        err(1, "/proc");
    }
    while ((entry = readdir(proc))) {
        if (atoi(entry->d_name)) {
            say_old_maps_of(port, entry->d_name);
        }
    }
    closedir(proc);
}

/*
 * Processes that map more, and new ones: perf's events report these.  An event
 * that counts nothing is opened on each CPU that is online.
 */

#define PAGE       ((size_t)sysconf(_SC_PAGESIZE))
#define RING_PAGES 64

typedef struct Ring {
    int fd;
    struct perf_event_mmap_page *control;
    uint64_t tail;
} Ring;

typedef struct Record {
    struct perf_event_header header;
    char body[65536];
} Record;

static int open_event(int cpu)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof(attr),
        .config = PERF_COUNT_SW_DUMMY,
        .sample_type = PERF_SAMPLE_TIME,
        .mmap = 1,
        .task = 1,
        .sample_id_all = 1,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
        .wakeup_events = 1,
    };

    return syscall(SYS_perf_event_open, &attr, -1, cpu, -1,
                   PERF_FLAG_FD_CLOEXEC);
}

/* Returns: false if the CPU is offline, or does not exist */
static bool open_ring(int cpu, Ring *ring)
{
    *ring = (Ring) { .fd = open_event(cpu) };
    if (ring->fd < 0 && errno == ENODEV) {
        return false;
    }
    if (ring->fd >= 0) {
        ring->control = mmap(NULL, (1 + RING_PAGES) * PAGE,
                             PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
    }
    if (ring->fd < 0 || ring->control == MAP_FAILED) {
        err(1, "perf_event_open on CPU %d", cpu);
    }
    return true;
}

/* Returns: how many there are; their numbers may have gaps */
static unsigned open_rings(Ring *rings, unsigned nr_cpus)
{
    unsigned count = 0;

    for (unsigned cpu = 0; cpu < nr_cpus; cpu++) {
        count += open_ring(cpu, &rings[count]);
    }
    return count;
}

static void copy_from(const Ring *ring, uint64_t at, void *to, size_t size)
{
    const char *data = (const char *)ring->control + PAGE;

    for (size_t i = 0; i < size; i++) {
        ((char *)to)[i] = data[(at + i) % (RING_PAGES * PAGE)];
    }
}

static bool next_record(Ring *ring, Record *record)
{
    uint64_t head = __atomic_load_n(&ring->control->data_head,
                                    __ATOMIC_ACQUIRE);

    if (ring->tail == head) {
        return false;
    }
    copy_from(ring, ring->tail, &record->header, sizeof(record->header));
    copy_from(ring, ring->tail, record, record->header.size);
    ring->tail += record->header.size;
    __atomic_store_n(&ring->control->data_tail, ring->tail, __ATOMIC_RELEASE);
    return true;
}

/* The age of a record, whose time is at its end */
static uint64_t age_of(const Record *record)
{
    struct timespec now;
    uint64_t then, at;

    clock_gettime(CLOCK_MONOTONIC, &now);
    memcpy(&then, (const char *)record + record->header.size - sizeof(then),
           sizeof(then));
    at = now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
    return at > then ? at - then : 0;
}

typedef struct MapBody {
    uint32_t pid, tid;
    uint64_t start, length, offset;
    char path[];
} MapBody;

typedef struct ForkBody {
    uint32_t pid, parent, tid, ptid;
} ForkBody;

typedef struct LostBody {
    uint64_t id, count;
} LostBody;

static void say_record(int port, const Record *record)
{
    const MapBody *map = (const MapBody *)record->body;
    const ForkBody *fork = (const ForkBody *)record->body;
    const LostBody *lost = (const LostBody *)record->body;

    if (record->header.type == PERF_RECORD_MMAP) {
        say_map(port, age_of(record), map->pid, map->start, map->length,
                map->offset, map->path);
    } else if (record->header.type == PERF_RECORD_FORK
               && fork->pid != fork->parent) {
        say(port, "fork %" PRIu64 " %" PRIu32 " %" PRIu32 "\n",
            age_of(record), fork->pid, fork->parent);
    } else if (record->header.type == PERF_RECORD_LOST) {
        warnx("%" PRIu64 " maps were lost", lost->count);
    }
}

static void say_news(int port, Ring *ring)
{
    static Record record;

    while (next_record(ring, &record)) {
        say_record(port, &record);
    }
}

/*
 * The stream
 */

#define HEADER_SIZE   16
#define FINISHED_INIT 82

typedef struct Stream {
    size_t length;
    bool begun;
    char bytes[1 << 18];
} Stream;

static void write_whole(const char *bytes, size_t size)
{
    while (size) {
        ssize_t n = write(STDOUT_FILENO, bytes, size);

        if (n < 0 && errno != EINTR) {
            err(1, "standard output");
        }
        bytes += n < 0 ? 0 : n;
        size -= n < 0 ? 0 : n;
    }
}

/* The size of the first record; 0 if it is not complete */
static size_t record_size(const Stream *s, size_t at)
{
    struct perf_event_header header;
    size_t size = HEADER_SIZE;

    if (s->begun) {
        if (s->length - at < sizeof(header)) {
            return 0;
        }
        memcpy(&header, s->bytes + at, sizeof(header));
        size = header.size;
    }
    return size <= s->length - at ? size : 0;
}

static bool is_end(const Stream *s, size_t at)
{
    uint32_t type;

    memcpy(&type, s->bytes + at, sizeof(type));
    return s->begun && type == FINISHED_INIT;
}

/* Pass on whole records only.  Returns: false after the answer to `flush` */
static bool pass_on(Stream *s)
{
    size_t size, at = 0;
    bool ended = false;

    while (!ended && (size = record_size(s, at))) {
        ended = is_end(s, at);
        at += ended ? 0 : size;
        s->begun = true;
    }
    write_whole(s->bytes, at);
    s->length -= at;
    memmove(s->bytes, s->bytes + at, s->length);
    return !ended;
}

static bool receive(int port, Stream *s)
{
    ssize_t n = read(port, s->bytes + s->length, sizeof(s->bytes) - s->length);

    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return true;
    }
    if (n < 0) {
        err(1, "the port");
    }
    if (n == 0) {
        errx(1, "QEMU has closed the port");
    }
    s->length += n;
    return pass_on(s);
}

/*
 * The end: the agent asks QEMU for it once.  If QEMU does not answer, because
 * the port leads elsewhere or the stream has ended already, the agent ends at a
 * second signal, or when nothing has come for some time.
 */

/**
 * struct Ending - the request to QEMU to end the stream
 * @asked: the request was sent
 * @interrupts: how often the agent was interrupted
 * @heard_ms: when the last of the stream came, or the request was sent
 */
typedef struct Ending {
    bool asked;
    unsigned interrupts;
    int64_t heard_ms;
} Ending;

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

/* Returns: the timeout for poll() */
static int patience(const Ending *ending)
{
    int64_t waited = now_ms() - ending->heard_ms;

    if (!ending->asked) {
        return -1;
    }
    if (ending->interrupts > 1 || waited >= PATIENCE_MS) {
        errx(1, "QEMU does not answer");
    }
    return PATIENCE_MS - waited;
}

static void ask_for_end(int port, Ending *ending)
{
    if (!ending->asked) {
        say(port, "flush\n");
        ending->asked = true;
        ending->heard_ms = now_ms();
    }
}

/*
 * The command
 */

static int watch_signals(sigset_t *old)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigprocmask(SIG_BLOCK, &set, old);
    return signalfd(-1, &set, SFD_CLOEXEC);
}

/* Its output must not go to perf.  Returns: 0 if there is no command */
static pid_t start_command(char **command, const sigset_t *mask)
{
    pid_t pid;

    if (!*command) {
        return 0;
    }
    pid = fork();
    if (pid < 0) {
        err(1, "fork");
    }
    if (pid == 0) {
        sigprocmask(SIG_SETMASK, mask, NULL);
        dup2(STDERR_FILENO, STDOUT_FILENO);
        execvp(*command, command);
        err(127, "%s", *command);
    }
    return pid;
}

/* Returns: whether that was the end; sets the exit status */
static bool has_ended(int signals, pid_t pid, Ending *ending, int *status)
{
    struct signalfd_siginfo info;
    int how;

    if (read(signals, &info, sizeof(info)) != sizeof(info)) {
        err(1, "signalfd");
    }
    if (info.ssi_signo != SIGCHLD) {
        ending->interrupts++;
        return true;
    }
    if (!pid || waitpid(pid, &how, WNOHANG) != pid) {
        return false;
    }
    *status = WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
    return true;
}

/* Descriptors: the port, signals, and the rings. */
static int follow(int port, int signals, Ring *rings, unsigned nr_rings,
                  pid_t pid)
{
    static Stream stream;
    struct pollfd fds[2 + nr_rings];
    Ending ending = { };
    int status = 0;

    fds[0] = (struct pollfd) { port, POLLIN, 0 };
    fds[1] = (struct pollfd) { signals, POLLIN, 0 };
    for (unsigned i = 0; i < nr_rings; i++) {
        fds[2 + i] = (struct pollfd) { rings[i].fd, POLLIN, 0 };
    }
    for (;;) {
        if (poll(fds, 2 + nr_rings, patience(&ending)) < 0
            && errno != EINTR) {
            err(1, "poll");
        }
        for (unsigned i = 0; i < nr_rings; i++) {
            say_news(port, &rings[i]);
        }
        if (fds[1].revents && has_ended(signals, pid, &ending, &status)) {
            ask_for_end(port, &ending);
        }
        if (fds[0].revents) {
            if (!receive(port, &stream)) {
                return status;
            }
            ending.heard_ms = now_ms();
        }
    }
}

int main(int argc, char **argv)
{
    unsigned nr_cpus = sysconf(_SC_NPROCESSORS_CONF), nr_rings;
    Ring rings[nr_cpus];
    sigset_t mask;
    int port, signals;

    if (argc < 2) {
        errx(2, "use: vpmu-agent PORT [COMMAND [ARGUMENT...]]");
    }
    port = open(argv[1], O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (port < 0) {
        err(1, "%s", argv[1]);
    }
    nr_rings = open_rings(rings, nr_cpus);
    say_tasks(port);
    say_old_maps(port);
    signals = watch_signals(&mask);
    return follow(port, signals, rings, nr_rings,
                  start_command(argv + 2, &mask));
}
