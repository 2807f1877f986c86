/*
 * vpmu-perf-guest - the first process of the guest in which vpmu-perf runs perf
 *
 * It prepares everything that does not depend on the command, says "ready", and
 * waits for a job: there vpmu-perf takes its snapshot, from which each run goes
 * on.  Then it mounts the host's files, runs perf there, and carries data and
 * signals between perf and four virtio-serial ports: control, and the three
 * standard streams.  When the host has closed control, the guest ends.
 *
 * A job is a line with its length, and a sequence of KEY=VALUE, each of which
 * ends with a NUL.  Before it there may be lines of another kind, "keep" and a
 * length: the text after one is for keep_files().  After the job, the host
 * sends lines (obey()), and the guest says:
 *
 *   ready                        waits for the job
 *   wants                        a process waits for standard input
 *   stopped N                    perf is stopped by signal N
 *   offset N                     how far a file that is the input has been read
 *   exited N OUT ERR KILLED      perf has ended, with status N
 *   signaled N OUT ERR KILLED    perf was ended by signal N
 *   crashed N                    signal N has ended a child of perf
 *   multiplexed                  events took turns: their counts are estimates
 *   lost TEXT                    why the host has not kept all that was written
 *   error TEXT                   perf cannot be run
 *
 * The arguments are perf's, of which the first is its name; with run=1, they
 * belong to a program that is executed in perf's place.
 * vpmu-perf-measure.h has more fields, and more reports; vpmu-perf-seed.h has a
 * field.
 *
 * OUT and ERR are the numbers of bytes written to the streams; KILLED is the
 * number of processes that the kernel has killed for lack of memory.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/acct.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "vpmu-perf-job.h"
#include "vpmu-perf-keep.h"
#include "vpmu-perf-measure.h"
#include "vpmu-perf-process.h"
#include "vpmu-perf-seed.h"

/* What may be written of them, by numbers */
#define WRITABLE "/writable"
/* Linux's list of processes that have ended */
#define ENDED "/layers/ended"
/* perf's place in the host's tree: /dev is ours. */
#define PERF "/dev/vpmu-perf"

enum { CONTROL, IN, OUT, ERR, PORTS };

static int ports[PORTS];

/*
 * The host
 */

static __attribute__((noreturn)) void power_off(void)
{
    sync();
    reboot(RB_POWER_OFF);
    _exit(1);
}

static __attribute__((format(printf, 1, 2))) void say(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    vdprintf(ports[CONTROL], format, ap);
    va_end(ap);
}

/* Report an error, to the host or to the console, and end. */
static __attribute__((noreturn, format(printf, 1, 2)))
void die(const char *format, ...)
{
    char text[PATH_MAX + 256];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    dprintf(ports[CONTROL] ? ports[CONTROL] : 2, "error %s\n", text);
    /* The host ends the guest. */
    sleep(5);
    power_off();
}

/*
 * The system
 */

static void must_mount(const char *source, const char *target,
                       const char *type, unsigned long flags, const char *data)
{
    if (mount(source, target, type, flags, data) < 0) {
        die("%s cannot be mounted: %s", target, strerror(errno));
    }
}

static void write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0 || write(fd, text, strlen(text)) < 0) {
        die("%s cannot be written: %s", path, strerror(errno));
    }
    close(fd);
}

/* Modules are named in the order of loading. */
static void load_modules(void)
{
    struct dirent **names;
    char path[PATH_MAX];
    int i, fd, n = scandir("/modules", &names, NULL, alphasort);

    for (i = 0; i < n; i++) {
        if (names[i]->d_name[0] == '.') {
            continue;
        }
        snprintf(path, sizeof(path), "/modules/%s", names[i]->d_name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (syscall(SYS_finit_module, fd, "", 0) < 0 && errno != EEXIST) {
            die("%s cannot be loaded: %s", path, strerror(errno));
        }
        close(fd);
    }
}

/* Programs may talk to themselves. */
static void raise_loopback(void)
{
    struct ifreq request = { .ifr_name = "lo", .ifr_flags = IFF_UP };
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    ioctl(fd, SIOCSIFFLAGS, &request);
    close(fd);
}

/* Ports appear some time after their device, whose number Linux chooses. */
static int open_port(int number)
{
    char pattern[32];
    glob_t found;
    int fd, tries;

    snprintf(pattern, sizeof(pattern), "/dev/vport*p%d", number + 1);
    for (tries = 0; tries < 3000; tries++) {
        if (glob(pattern, 0, NULL, &found) == 0) {
            fd = open(found.gl_pathv[0], O_RDWR | O_CLOEXEC);
            globfree(&found);
            if (fd >= 0) {
                return fd;
            }
        }
        usleep(10000);
    }
    die("there is no port %s", pattern);
}

/* Open the three that every process has; perf's replace them later. */
static void keep_standard_fds(void)
{
    int fd;

    do {
        fd = open("/dev/console", O_RDWR);
    } while (fd >= 0 && fd < 2);
}

#define STARTS "/sys/kernel/tracing/events/timer/hrtimer_start/id"
/* Linux starts its timer when events have to take turns. */
#define TAKES_TURNS "function.function == perf_mux_hrtimer_handler"

/* For each CPU, how often perf's events began to take turns */
static int turns[64];
static size_t n_turns;

static void watch_turns(void)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr), .disabled = 1,
    };
    FILE *f = fopen(STARTS, "re");

    if (!f || fscanf(f, "%llu", (unsigned long long *)&attr.config) != 1) {
        die("%s cannot be read", STARTS);
    }
    fclose(f);
    for (; n_turns < (size_t)sysconf(_SC_NPROCESSORS_ONLN); n_turns++) {
        int fd = syscall(SYS_perf_event_open, &attr, -1, n_turns, -1,
                         PERF_FLAG_FD_CLOEXEC);

        if (fd < 0 || ioctl(fd, PERF_EVENT_IOC_SET_FILTER, TAKES_TURNS) < 0 ||
            ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) < 0) {
            die("events cannot be watched: %s", strerror(errno));
        }
        turns[n_turns] = fd;
    }
}

static bool have_taken_turns(void)
{
    uint64_t n = 0;
    size_t i;

    for (i = 0; i < n_turns && !n; i++) {
        read(turns[i], &n, sizeof(n));
    }
    return n;
}

/* Mount the guest's own /dev, /proc and /sys. */
static void prepare_system(void)
{
    int i;

    must_mount("proc", "/proc", "proc", 0, NULL);
    must_mount("sysfs", "/sys", "sysfs", 0, NULL);
    must_mount("dev", "/dev", "devtmpfs", 0, NULL);
    keep_standard_fds();
    mkdir("/dev/pts", 0755);
    mkdir("/dev/shm", 01777);
    must_mount("devpts", "/dev/pts", "devpts", 0, "ptmxmode=666,mode=620");
    must_mount("shm", "/dev/shm", "tmpfs", 0, "mode=1777");
    must_mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, "mode=755");
    symlink("/proc/self/fd", "/dev/fd");
    symlink("/proc/self/fd/0", "/dev/stdin");
    symlink("/proc/self/fd/1", "/dev/stdout");
    symlink("/proc/self/fd/2", "/dev/stderr");
    mkdir(PERF, 0755);
    must_mount("/perf", PERF, NULL, MS_BIND, NULL);
    /* Linux's first file system cannot have another root. */
    must_mount("layers", "/layers", "tmpfs", 0, "mode=755");
    load_modules();
    raise_loopback();
    write_file("/proc/sys/kernel/randomize_va_space", "0");
    write_file("/proc/sys/kernel/perf_event_paranoid", "-1");
    write_file("/proc/sys/kernel/kptr_restrict", "0");
    write_file("/proc/sys/kernel/perf_event_mlock_kb", "65536");
    /* Whoever takes too much memory is ended, and the host is told. */
    write_file("/proc/sys/vm/overcommit_memory", "1");
    /* No sample is left out because the guest's time is slow. */
    write_file("/proc/sys/kernel/perf_event_max_sample_rate", "10000000");
    write_file("/proc/sys/kernel/perf_cpu_time_max_percent", "0");
    watch_turns();
    seed_prepare(die);
    for (i = 0; i < PORTS; i++) {
        ports[i] = open_port(i);
    }
}

/*
 * The job
 */

/* Shared with perf */
static struct job *job;
static int job_fd;

/* Begin a job, before perf is started. */
static void share_job(void)
{
    job_fd = memfd_create("job", MFD_CLOEXEC);
    if (job_fd < 0 || ftruncate(job_fd, JOB_SIZE) < 0 ||
        mmap(JOB_ADDRESS, JOB_SIZE, PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_FIXED_NOREPLACE, job_fd, 0) != JOB_ADDRESS) {
        die("there is no memory for a job: %s", strerror(errno));
    }
    job = JOB_ADDRESS;
    job->used = sizeof(*job);
}

/* Some of the job's memory, which is zero */
static void *take_memory(size_t size)
{
    void *memory = (char *)job + job->used;

    size = (size + 15) & ~15ul;
    if (size > JOB_SIZE - job->used) {
        die("the job is too long");
    }
    job->used += size;
    return memory;
}

/* Each list has room for all fields of the job, and a NULL. */
static void make_lists(size_t fields)
{
    const size_t size = (fields + 1) * sizeof(char *);

    job->argv = take_memory(size);
    job->envp = take_memory(size);
    job->sources = take_memory(size);
    job->targets = take_memory(size);
    job->groups = take_memory(size);
}

static void describe_stream(const char *text)
{
    static const char *const kinds[] = {
        "pipe", "tty", "null", "closed", "path", "same"
    };
    char kind[8];
    long long offset;
    int number, length = 0;
    size_t i;

    if (sscanf(text, "%d %7s %lld %n", &number, kind, &offset, &length) < 3 ||
        number < 0 || number > 2) {
        die("the stream '%s' is not understood", text);
    }
    for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (!strcmp(kind, kinds[i])) {
            job->streams[number] = (struct stream) { i, text + length, offset };
        }
    }
}

static void set_clock(const char *text)
{
    struct timeval now = { };

    sscanf(text, "%ld.%ld", &now.tv_sec, &now.tv_usec);
    settimeofday(&now, NULL);
}

static void set_limit(const char *text)
{
    unsigned long long soft, hard;
    unsigned int which;

    if (sscanf(text, "%u %llu %llu", &which, &soft, &hard) == 3 &&
        which < RLIM_NLIMITS) {
        job->limits[which] = (struct rlimit) { soft, hard };
        job->limited[which] = true;
    }
}

static bool understand_writable(const char *key, const char *value)
{
    if (!strcmp(key, "exports")) {
        job->n_exports = strtoul(value, NULL, 10);
    } else if (!strcmp(key, "from")) {
        job->sources[job->n_sources++] = value;
    } else if (!strcmp(key, "write")) {
        job->targets[job->n_targets++] = value;
    } else {
        return false;
    }
    return true;
}

static void understand(const char *key, const char *value)
{
    if (!strcmp(key, "argument")) {
        job->argv[job->args++] = value;
    } else if (!strcmp(key, "environment")) {
        job->envp[job->envs++] = value;
    } else if (understand_writable(key, value)) {
        /* It is one of its three keys. */
    } else if (!strcmp(key, "group")) {
        job->groups[job->n_groups++] = strtoul(value, NULL, 10);
    } else if (!strcmp(key, "directory")) {
        job->directory = value;
    } else if (!strcmp(key, "stream")) {
        describe_stream(value);
    } else if (!strcmp(key, "window")) {
        sscanf(value, "%hu %hu", &job->window.ws_row, &job->window.ws_col);
    } else if (!strcmp(key, "limit")) {
        set_limit(value);
    } else if (!strcmp(key, "uid")) {
        job->uid = strtoul(value, NULL, 10);
    } else if (!strcmp(key, "gid")) {
        job->gid = strtoul(value, NULL, 10);
    } else if (!strcmp(key, "umask")) {
        job->umask = strtoul(value, NULL, 8);
    } else if (!strcmp(key, "ignored")) {
        sigaddset(&job->ignored, atoi(value));
    } else if (!strcmp(key, "time")) {
        set_clock(value);
    } else if (!strcmp(key, "host")) {
        sethostname(value, strlen(value));
    } else if (!strcmp(key, "aslr")) {
        write_file("/proc/sys/kernel/randomize_va_space", "2");
    } else if (!strcmp(key, "forget")) {
        keep_no_more(value);
    } else if (!strcmp(key, "run")) {
        job->run = true;
    } else if (!measure_understand(key, value) &&
               !seed_understand(key, value, die)) {
        die("the job's '%s' is not understood", key);
    }
}

/* Read all of it; before that, the host leaves only if it is ended. */
static void read_exactly(char *text, size_t size)
{
    ssize_t n;

    for (; size; text += n, size -= n) {
        n = read(ports[CONTROL], text, size);
        if (n <= 0) {
            power_off();
        }
    }
}

/* Lines after the length may be there already; they are read later. */
static size_t read_length(bool *is_job)
{
    char line[20] = "";
    size_t i;

    for (i = 0; i < sizeof(line) - 1; i++) {
        read_exactly(line + i, 1);
        if (line[i] == '\n') {
            *is_job = strncmp(line, "keep ", 5) != 0;
            return strtoul(*is_job ? line : line + 5, NULL, 10);
        }
    }
    die("the job has no length");
}

/* Fetch files that the host will save with this guest. */
static void read_files(size_t size)
{
    char *lines = calloc(size + 1, 1);

    if (!lines) {
        die("there is no memory for names of files");
    }
    read_exactly(lines, size);
    keep_files(lines);
    free(lines);
    say("ready\n");
}

/* The job stays in memory: its fields are kept by address. */
static void read_job(void)
{
    size_t size, fields = 0, i;
    char *text, *equals, *next, *field;
    bool is_job;

    while (size = read_length(&is_job), !is_job) {
        read_files(size);
    }
    text = take_memory(size + 1);
    read_exactly(text, size);
    for (i = 0; i < size; i++) {
        fields += !text[i];
    }
    make_lists(fields);
    for (field = text; *field; field = next) {
        next = field + strlen(field) + 1;
        equals = strchr(field, '=');
        if (!equals) {
            die("the job's '%s' is not understood", field);
        }
        *equals = '\0';
        understand(field, equals + 1);
    }
}

/* The guest is the user's alone, and so are its tracepoints. */
static void give_tracing(void)
{
    char options[64];

    snprintf(options, sizeof(options), "uid=%u,gid=%u,mode=755", job->uid,
             job->gid);
    must_mount("tracefs", "/sys/kernel/tracing", "tracefs", MS_REMOUNT,
               options);
}

/*
 * The host's files
 */

#define OPTIONS_9P "trans=virtio,version=9p2000.L,msize=262144,access=any,"

/*
 * What is written goes to the host at once, so that a program that writes to a
 * full disk finds out.  Only what it writes to shared memory comes later.
 */
static void mount_host_writable(const char *tag, const char *where)
{
    must_mount(tag, where, "9p", 0, OPTIONS_9P "cache=loose,directio");
}

/* Existing files of the host are visible; writes stay in the guest. */
static void mount_layer(const char *target, const char *layer)
{
    static const char *const parts[] = { "", "/upper", "/work" };
    char path[64], options[256];
    size_t i;

    if (access(target, F_OK) < 0 || !access(layer, F_OK)) {
        return;
    }
    for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        snprintf(path, sizeof(path), "%s%s", layer, parts[i]);
        mkdir(path, 0755);
        chmod(path, 01777);
    }
    snprintf(options, sizeof(options),
             "lowerdir=%s,upperdir=%s/upper,workdir=%s/work",
             target, layer, layer);
    must_mount("vpmu-perf", target, "overlay", 0, options);
}

static void mount_writable(const char *from, const char *path)
{
    char source[PATH_MAX], target[PATH_MAX];

    snprintf(source, sizeof(source), WRITABLE "/%s", from);
    snprintf(target, sizeof(target), HOST "%s", path);
    must_mount(source, target, NULL, MS_BIND, NULL);
}

/* Files that a program writes to this directory are kept, also in /tmp. */
static void mount_directory(void)
{
    char source[PATH_MAX], target[PATH_MAX];

    if (strncmp(job->directory, "/tmp/", 5) &&
        strncmp(job->directory, "/var/tmp/", 9)) {
        return;
    }
    snprintf(source, sizeof(source), HOST_FILES "%s", job->directory);
    snprintf(target, sizeof(target), HOST "%s", job->directory);
    must_mount(source, target, NULL, MS_BIND, NULL);
}

#if defined(__powerpc64__)
static bool is_there(const char *path)
{
    return !faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW);
}

/* Mount a directory of the host's with an additional symbolic link. */
static void add_link(const char *target, const char *layer, const char *name,
                     const char *to)
{
    char path[64], options[128];

    snprintf(path, sizeof(path), "%s/%s", target, name);
    if (!is_there(target) || is_there(path)) {
        return;
    }
    mkdir(layer, 0755);
    snprintf(path, sizeof(path), "%s/%s", layer, name);
    if (symlink(to, path) < 0) {
        die("%s: %s", path, strerror(errno));
    }
    snprintf(options, sizeof(options), "lowerdir=%s:%s", layer, target);
    must_mount("vpmu-perf", target, "overlay", MS_RDONLY, options);
}

static bool is_directory(const char *path)
{
    struct stat st;

    return !lstat(path, &st) && S_ISDIR(st.st_mode);
}

/* Mount a directory of the host's with additional files of another one. */
static void add_files(const char *target, const char *from)
{
    char options[128];

    snprintf(options, sizeof(options), "lowerdir=%s:%s", target, from);
    must_mount("vpmu-perf", target, "overlay", MS_RDONLY, options);
}

#define CROSS "/usr/powerpc64le-linux-gnu/lib"
#define MULTIARCH "/usr/lib/powerpc64le-linux-gnu"

/*
 * On a host of another architecture, Debian's libraries for a cross compiler
 * do for dynamic programs: let them be where the dynamic linker expects them.
 * That directory may exist, because the cross compiler's binutils has plugins
 * there; or it has all that programs need, and must not be mixed with others.
 */
static void add_libraries(void)
{
    if (!is_there(HOST CROSS "/ld64.so.2")) {
        return;
    }
    add_link(HOST "/lib64", "/layers/lib64", "ld64.so.2", CROSS "/ld64.so.2");
    if (is_there(HOST MULTIARCH "/libc.so.6")) {
        return;
    }
    if (is_directory(HOST MULTIARCH)) {
        add_files(HOST MULTIARCH, HOST CROSS);
    } else {
        add_link(HOST "/usr/lib", "/layers/lib", "powerpc64le-linux-gnu",
                 CROSS);
    }
}
#else
static void add_libraries(void)
{
}
#endif

#define MAX_EXPORTS 4
/* What is written there is not lost without a word: an open file notices. */
static int writable[MAX_EXPORTS];

/* Mount what may be written where the host has it. */
static void mount_exports(void)
{
    char tag[32], where[32];
    size_t i;

    for (i = 0; i < job->n_exports && i < MAX_EXPORTS; i++) {
        snprintf(tag, sizeof(tag), "vpmu-perf-write%zu", i);
        snprintf(where, sizeof(where), WRITABLE "/%zu", i);
        mkdir(where, 0755);
        mount_host_writable(tag, where);
        writable[i] = open(where, O_RDONLY | O_CLOEXEC);
    }
    for (i = 0; i < job->n_sources && i < job->n_targets; i++) {
        mount_writable(job->sources[i], job->targets[i]);
    }
}

static void mount_layers(void)
{
    mount_layer(HOST "/tmp", "/layers/tmp");
    mount_layer(HOST "/var/tmp", "/layers/var-tmp");
}

/* Mount the host's files, before there is a job. */
static void mount_host(void)
{
    static const char *const own[] = { "/proc", "/sys", "/dev" };
    size_t i;

    must_mount("vpmu-perf-root", HOST, "virtiofs", MS_RDONLY, NULL);
    for (i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
        char target[32];

        snprintf(target, sizeof(target), HOST "%s", own[i]);
        must_mount(own[i], target, NULL, MS_BIND | MS_REC, NULL);
    }
    must_mount(HOST, HOST_FILES, NULL, MS_BIND, NULL);
    mount_layers();
}

static void mount_files(void)
{
    /* A host on which the guest goes on may have more of them. */
    mount_layers();
    add_libraries();
    mount_directory();
    mount_exports();
}

/*
 * Streams
 */

/* Data that has been read and not yet written.  A closed end is -1. */
struct relay {
    int from, to;
    size_t start, end;
    unsigned long long total;
    bool is_port;
    char data[65536];
};

static struct relay relays[3];
static int terminal = -1;
/* Its other end */
static char terminal_name[64];

static void set_nonblocking(int fd)
{
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

static void close_end(int *fd)
{
    if (*fd >= 0 && *fd != terminal) {
        close(*fd);
    }
    *fd = -1;
}

static void fill(struct relay *r)
{
    ssize_t n = read(r->from, r->data, sizeof(r->data));

    if (n > 0) {
        r->start = 0;
        r->end = n;
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        /* The reader of the other end finds its end, unless that is a port. */
        close_end(&r->from);
        if (!r->is_port) {
            close_end(&r->to);
        }
    }
}

static void empty(struct relay *r)
{
    ssize_t n = write(r->to, r->data + r->start, r->end - r->start);

    if (n >= 0) {
        r->start += n;
        r->total += n;
    } else if (errno != EAGAIN && errno != EINTR) {
        r->start = r->end;
        close_end(&r->to);
        close_end(&r->from);
    }
}

static bool is_empty(const struct relay *r)
{
    return r->start == r->end;
}

static struct pollfd await(int fd, short events)
{
    return (struct pollfd) { .fd = fd, .events = events };
}

/* The end, and the event, to wait for */
static struct pollfd wish(const struct relay *r)
{
    return is_empty(r) ? await(r->from, POLLIN) : await(r->to, POLLOUT);
}

/* Make the terminal that a job can have. */
static void make_terminal(void)
{
    terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (terminal < 0 || unlockpt(terminal) < 0 ||
        ptsname_r(terminal, terminal_name, sizeof(terminal_name))) {
        die("there is no terminal: %s", strerror(errno));
    }
    set_nonblocking(terminal);
}

static int open_terminal(void)
{
    return open(terminal_name, O_RDWR | O_NOCTTY | O_CLOEXEC);
}

static void give_terminal_to_job(void)
{
    int slave = open_terminal();

    ioctl(terminal, TIOCSWINSZ, &job->window);
    fchown(slave, job->uid, -1);
    for (int i = 0; i < 3; i++) {
        if (job->streams[i].kind == TTY) {
            job->fds[i] = fcntl(slave, F_DUPFD_CLOEXEC, 0);
        }
    }
    close(slave);
}

static void open_pipe(int number)
{
    int ends[2], ours = number == 0 ? 1 : 0;

    if (pipe2(ends, O_CLOEXEC) < 0) {
        die("there is no pipe: %s", strerror(errno));
    }
    job->fds[number] = ends[!ours];
    /* /dev/stdout is opened anew by name. */
    fchown(ends[!ours], job->uid, job->gid);
    set_nonblocking(ends[ours]);
    if (number == 0) {
        relays[0].to = ends[ours];
    } else {
        relays[number].from = ends[ours];
    }
}

/* Terminals have one end for all output. */
static void connect_terminal(void)
{
    if (job->streams[0].kind == TTY) {
        relays[0].to = terminal;
    }
    if (job->streams[1].kind == TTY) {
        relays[1].from = terminal;
    } else if (job->streams[2].kind == TTY) {
        relays[2].from = terminal;
    }
}

static int open_input(struct stream *stream)
{
    char path[PATH_MAX];
    int fd;

    snprintf(path, sizeof(path), HOST "%s", stream->path);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        die("%s cannot be read: %s", stream->path, strerror(errno));
    }
    lseek(fd, stream->offset, SEEK_SET);
    return fd;
}

static void open_stream(int i)
{
    switch (job->streams[i].kind) {
    case PIPE:
        open_pipe(i);
        break;
    case NOTHING:
        job->fds[i] = open("/dev/null", O_RDWR | O_CLOEXEC);
        break;
    case PATH:
        job->fds[i] = open_input(&job->streams[i]);
        break;
    case SAME:
        job->fds[i] = fcntl(job->fds[1], F_DUPFD_CLOEXEC, 0);
        break;
    case TTY:
    case CLOSED:
        break;
    }
}

static void connect_streams(void)
{
    bool has_terminal = false;
    int i;

    for (i = 0; i < 3; i++) {
        relays[i] = (struct relay) { .from = -1, .to = -1, .is_port = i > 0 };
        job->fds[i] = -1;
        set_nonblocking(ports[IN + i]);
        has_terminal |= job->streams[i].kind == TTY;
    }
    relays[0].from = ports[IN];
    relays[1].to = ports[OUT];
    relays[2].to = ports[ERR];
    if (has_terminal) {
        give_terminal_to_job();
        connect_terminal();
    } else {
        /* Linux takes it from all processes of the session. */
        close(terminal);
        terminal = -1;
    }
    for (i = 0; i < 3; i++) {
        open_stream(i);
    }
    if (relays[0].to < 0) {
        relays[0].from = -1;
    }
}

/*
 * perf
 */

/* Let ld.so load all of perf, which then waits (vpmu-perf-begin.c). */
static __attribute__((noreturn)) void execute_perf(int waker)
{
    static char *const argv[] = {
        PERF "/ld.so", "--argv0", "perf", "--library-path", PERF "/lib",
        "--preload", PERF "/begin.so", PERF "/perf", NULL
    };
    static char *const envp[] = { "LD_BIND_NOW=1", NULL };
    int i, fds[] = { waker, job_fd, ports[CONTROL] };
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    /* Not one over the other */
    for (i = 0; i < 3; i++) {
        fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, WAKER_FD + 3);
    }
    for (i = 0; i < 3; i++) {
        dup2(fds[i], WAKER_FD + i);
    }
    execve(argv[0], argv, envp);
    _exit(127);
}

/*
 * Linux does not stop a process group by the terminal's keys unless one of its
 * processes has a parent in the same session that is not PID 1: a shell,
 * natively, and here this process.  It writes who perf is when that waits for
 * its job; wakes it; writes that it has begun; and then writes its statuses.
 *
 * The terminal is the session's as long as it is open here.  perf has it if it
 * begins after that.
 */
static __attribute__((noreturn)) void lead_session(int first)
{
    int status = 0, wakers[2], slave = open_terminal();
    pid_t perf = -1;

    close(terminal);
    setsid();
    ioctl(slave, TIOCSCTTY, 0);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, wakers) == 0) {
        perf = fork();
    }
    if (!perf) {
        setpgid(0, 0);
        execute_perf(wakers[1]);
    }
    close(wakers[1]);
    /* It comes if the job has no terminal. */
    signal(SIGHUP, SIG_IGN);
    if (read(wakers[0], &status, 1) != 1 ||
        write(first, &perf, sizeof(perf)) < 0 || read(first, &status, 1) != 1) {
        _exit(1);
    }
    tcsetpgrp(slave, perf);
    write(wakers[0], &status, 1);
    /* It closes this when it has its streams. */
    read(wakers[0], &status, 1);
    write(first, &perf, sizeof(perf));
    while (waitpid(perf, &status, WUNTRACED) == perf) {
        write(first, &status, sizeof(status));
        if (!WIFSTOPPED(status)) {
            break;
        }
    }
    _exit(0);
}

static pid_t leader, perf;
/* Where the leader writes */
static int statuses = -1;

static void await_leader(void)
{
    if (read(statuses, &perf, sizeof(perf)) != sizeof(perf)) {
        die("perf cannot be started");
    }
}

/* Start perf, which then waits for its job. */
static void prepare_perf(void)
{
    int ends[2];

    share_job();
    make_terminal();
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
        die("there is no socket: %s", strerror(errno));
    }
    leader = fork();
    if (!leader) {
        lead_session(ends[1]);
    }
    close(ends[1]);
    statuses = ends[0];
    await_leader();
}

/* Let perf begin, counted from its first instruction if it runs a program. */
static void start_measured(void)
{
    measure_maps(die);
    measure_listen(PERF, !job->run, die);
    measure_counts(perf, die);
    if (write(statuses, "", 1) < 0) {
        die("perf cannot be started: %s", strerror(errno));
    }
    await_leader();
}

/*
 * Have Linux list the processes that end: perf stat ends as if its program had
 * succeeded that a signal has ended.
 */
static void list_ended(void)
{
    int fd = open(ENDED, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0 || acct(ENDED) < 0) {
        die("no processes can be listed: %s", strerror(errno));
    }
    close(fd);
}

/* Report the last signal that has ended a child of perf. */
static void report_crash(void)
{
    struct acct_v3 one;
    int number = 0, fd = open(ENDED, O_RDONLY | O_CLOEXEC);

    acct(NULL);
    while (read(fd, &one, sizeof(one)) == sizeof(one)) {
        if (one.ac_ppid == (uint32_t)perf && WIFSIGNALED(one.ac_exitcode)) {
            number = WTERMSIG(one.ac_exitcode);
        }
    }
    close(fd);
    if (number) {
        say("crashed %d\n", number);
    }
}

/*
 * While perf runs
 */

/* A terminal's signals are for all processes there, others are for perf. */
static void send_signal(int number)
{
    bool for_all = number == SIGINT || number == SIGQUIT ||
                   number == SIGTSTP || number == SIGCONT;

    /* It may not be a process group yet. */
    if (!for_all || kill(-perf, number) < 0) {
        kill(perf, number);
    }
}

static void obey_line(const char *line)
{
    struct winsize window = { };
    int number;

    if (sscanf(line, "signal %d", &number) == 1) {
        send_signal(number);
    } else if (sscanf(line, "closed %d", &number) == 1 &&
               (number == 1 || number == 2)) {
        close_end(&relays[number].from);
        relays[number].start = relays[number].end;
    } else if (sscanf(line, "window %hu %hu", &window.ws_row,
                      &window.ws_col) == 2) {
        ioctl(terminal, TIOCSWINSZ, &window);
    }
}

/* Obey the host's lines. */
static void obey(void)
{
    static char text[4096];
    static size_t used;
    char *line = text, *end;
    ssize_t n = read(ports[CONTROL], text + used, sizeof(text) - 1 - used);

    if (n <= 0) {
        power_off();
    }
    used += n;
    text[used] = '\0';
    while ((end = strchr(line, '\n'))) {
        *end = '\0';
        obey_line(line);
        line = end + 1;
    }
    used -= line - text;
    memmove(text, line, used);
}

/* Processes without a parent are ours. */
static void reap(int signals)
{
    struct signalfd_siginfo info;
    pid_t child;
    int status;

    while (read(signals, &info, sizeof(info)) > 0) {
        /* One signal may stand for several. */
    }
    while ((child = waitpid(-1, &status, WNOHANG | WUNTRACED)) > 0) {
        /* A program can stop its parent, which would not report it then. */
        if (child == leader && WIFSTOPPED(status)) {
            kill(leader, SIGCONT);
        }
    }
}

/* Whether perf has ended, with that status */
static bool has_ended(int *status)
{
    if (read(statuses, status, sizeof(*status)) != sizeof(*status)) {
        die("perf is lost");
    }
    if (!WIFSTOPPED(*status)) {
        return true;
    }
    say("stopped %d\n", WSTOPSIG(*status));
    return false;
}

/*
 * Who waits for input
 *
 * What the host's standard input has is for others, too, such as the next
 * command of a shell's loop.  So it is not read before a process here waits for
 * it, in a system call whose number and arguments Linux shows.
 */

/* What processes would read; none if they need not ask. */
static struct stat input;
static bool asks;

static void prepare_to_ask(void)
{
    asks = job->streams[0].kind == PIPE || job->streams[0].kind == TTY;
    if (asks && fstat(job->fds[0], &input) < 0) {
        die("standard input: %s", strerror(errno));
    }
}

static bool is_input(long pid, long fd)
{
    char path[64];
    struct stat st;

    snprintf(path, sizeof(path), "/proc/%ld/fd/%ld", pid, fd);
    if (stat(path, &st) < 0) {
        return false;
    }
    return (st.st_dev == input.st_dev && st.st_ino == input.st_ino) ||
        (job->streams[0].kind == TTY && st.st_rdev == makedev(5, 0));
}

/* Returns how much could be read, or -1. */
static ssize_t read_memory(long pid, unsigned long where, void *data,
                           size_t size)
{
    char path[64];
    ssize_t n;
    int memory;

    snprintf(path, sizeof(path), "/proc/%ld/mem", pid);
    memory = open(path, O_RDONLY | O_CLOEXEC);
    n = pread(memory, data, size, where);
    close(memory);
    return n;
}

/* Whether one of a process's list of descriptors is the input. */
static bool polls_input(long pid, unsigned long where, unsigned long n)
{
    struct pollfd fds[256];
    ssize_t size;

    n = n < 256 ? n : 256;
    size = read_memory(pid, where, fds, n * sizeof(fds[0]));
    for (n = 0; size >= (ssize_t)((n + 1) * sizeof(fds[0])); n++) {
        if ((fds[n].events & POLLIN) && is_input(pid, fds[n].fd)) {
            return true;
        }
    }
    return false;
}

/* The same for one of its sets. */
static bool selects_input(long pid, unsigned long n, unsigned long where)
{
    fd_set set;
    unsigned long fd;

    FD_ZERO(&set);
    read_memory(pid, where, &set, sizeof(set));
    for (fd = 0; fd < n && fd < FD_SETSIZE; fd++) {
        if (FD_ISSET(fd, &set) && is_input(pid, fd)) {
            return true;
        }
    }
    return false;
}

/* The same for a descriptor of epoll's. */
static bool epolls_input(long pid, unsigned long fd)
{
    char line[128];
    bool is_found = false;
    long watched;
    FILE *f;

    snprintf(line, sizeof(line), "/proc/%ld/fdinfo/%lu", pid, fd);
    f = fopen(line, "re");
    while (f && !is_found && fgets(line, sizeof(line), f)) {
        is_found = sscanf(line, "tfd: %ld", &watched) == 1 &&
                   is_input(pid, watched);
    }
    if (f) {
        fclose(f);
    }
    return is_found;
}

static bool waits_for_input(long pid, long call,
                            const unsigned long *arg)
{
    switch (call) {
    case SYS_read:
    case SYS_readv:
    case SYS_splice:
#if defined(__x86_64__)
    case 3: /* read, of 32 bits */
#endif
        return is_input(pid, arg[0]);
    case SYS_sendfile:
        return is_input(pid, arg[1]);
    case SYS_poll:
    case SYS_ppoll:
#if defined(__x86_64__)
    case 168: /* poll, of 32 bits */
#endif
        return polls_input(pid, arg[0], arg[1]);
    case SYS_select:
    case SYS_pselect6:
        return selects_input(pid, arg[0], arg[1]);
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2:
        return epolls_input(pid, arg[0]);
    case SYS_io_uring_enter:
        return true;
    default:
        return false;
    }
}

/* Have the host send its input, if a process waits for it. */
static void ask_for_input(void)
{
    struct dirent *entry;
    DIR *processes = opendir("/proc");

    while (processes && asks && (entry = readdir(processes))) {
        /* Those of the kernel are older, or do not wait for it. */
        if (atol(entry->d_name) > leader &&
            process_waits(atol(entry->d_name), waits_for_input)) {
            asks = false;
            say("wants\n");
        }
    }
    if (processes) {
        closedir(processes);
    }
}

/* In how many milliseconds to look again: a 16th of the time it has been. */
static int next_look(void)
{
    static struct timespec begin;
    struct timespec now;
    long n;

    if (!asks) {
        return -1;
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!begin.tv_sec) {
        begin = now;
    }
    n = ((now.tv_sec - begin.tv_sec) * 1000 +
         (now.tv_nsec - begin.tv_nsec) / 1000000) / 16;
    return n < 10 ? 10 : n > 250 ? 250 : n;
}

/* Read or write, whichever is next. */
static void carry(struct relay *r, short events)
{
    if (events && is_empty(r)) {
        fill(r);
    } else if (events) {
        empty(r);
    }
}

static int follow(void)
{
    sigset_t child;
    int i, signals, status = 0;

    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    for (;;) {
        struct pollfd fds[7];

        for (i = 0; i < 3; i++) {
            fds[i] = wish(&relays[i]);
        }
        fds[3] = await(ports[CONTROL], POLLIN);
        fds[4] = await(signals, POLLIN);
        fds[5] = await(statuses, POLLIN);
        fds[6] = await(measure_awaits(), POLLIN);
        if (!poll(fds, 7, next_look())) {
            ask_for_input();
        }
        for (i = 0; i < 3; i++) {
            carry(&relays[i], fds[i].revents);
        }
        if (fds[3].revents) {
            obey();
        }
        if (fds[6].revents) {
            measure_obey();
        }
        if (fds[4].revents) {
            reap(signals);
        }
        if (fds[5].revents && has_ended(&status)) {
            return status;
        }
    }
}

/* Carry the output that perf has left in its pipes. */
static void drain(struct relay *r)
{
    struct pollfd fd;

    while (r->from >= 0 || !is_empty(r)) {
        fd = wish(r);
        if (fd.fd < 0) {
            return;
        }
        /* The host takes its time; what others may still write is lost. */
        if (poll(&fd, 1, is_empty(r) ? 0 : -1) <= 0) {
            return;
        }
        carry(r, fd.revents);
    }
}

/* Report that the host has not kept something, also if a program knows it. */
static void synchronize(void)
{
    size_t i;

    for (i = 0; i < job->n_exports && i < MAX_EXPORTS; i++) {
        if (writable[i] >= 0 && syncfs(writable[i]) < 0) {
            say("lost %s\n", strerror(errno));
        }
    }
}

static unsigned long killed_processes(void)
{
    char line[128];
    unsigned long n = 0;
    FILE *f = fopen("/proc/vmstat", "r");

    while (f && fgets(line, sizeof(line), f)) {
        if (sscanf(line, "oom_kill %lu", &n) == 1) {
            break;
        }
    }
    if (f) {
        fclose(f);
    }
    return n;
}

/* Report what perf itself does not. */
static void report_job(void)
{
    if (job->streams[0].kind == PATH) {
        say("offset %lld\n", (long long)lseek(job->fds[0], 0, SEEK_CUR));
    }
    report_crash();
    if (have_taken_turns()) {
        say("multiplexed\n");
    }
    synchronize();
    measure_report(say);
}

int main(void)
{
    sigset_t child;
    int status;

    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    prepare_system();
    mount_host();
    prepare_perf();
    list_ended();
    signal(SIGPIPE, SIG_IGN);
    say("ready\n");
    read_job();
    give_tracing();
    mount_files();
    connect_streams();
    prepare_to_ask();
    start_measured();
    for (int i = 0; i < 3; i++) {
        if (job->fds[i] >= 0 && job->streams[i].kind != PATH) {
            close(job->fds[i]);
        }
    }
    status = follow();
    drain(&relays[1]);
    drain(&relays[2]);
    report_job();
    say("%s %d %llu %llu %lu\n", WIFSIGNALED(status) ? "signaled" : "exited",
        WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
        relays[1].total, relays[2].total, killed_processes());
    /* The host ends the guest. */
    pause();
    power_off();
}
