/*
 * Performance monitoring unit: where the stream of a profile goes
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/error-report.h"
#include "qemu/main-loop.h"
#include "qemu/thread.h"
#include "qapi/error.h"
#include "chardev/char-fe.h"
#include "hw/pmu/compat.h"
#include "chardev.h"
#include "sink.h"

/* Where there are none, what has a name among files does not wait. */
#ifndef O_NONBLOCK
#define O_NONBLOCK 0
#endif
#ifndef O_CLOEXEC
#define O_CLOEXEC 0
#endif
#ifndef O_NOCTTY
#define O_NOCTTY 0
#endif

/* So much may wait to be written. */
#define MAX_BACKLOG (64 * 1024 * 1024)

/* How often a thread that waits for a pipe looks whether it is to end. */
#define POLL_MS 100

/* How often we look whether a chardev that is to end takes more. */
#define CHARDEV_POLL_US 1000

/* And how much it is offered then: a chardev's log has what it refuses, too. */
#define CHARDEV_PART 4096

/* How long it waits for the pipe then; and we, for a chardev. */
#define PATIENCE_MS 1000

/**
 * struct PmuSink - where a stream goes
 * @ops, @opaque: the owner
 * @backlog: bytes that are left to be written
 * @chr: the chardev, if it is one
 * @own: the chardev that the owner itself is, instead
 * @is_started: the owner is ready to be told
 * @is_open: somebody reads @own
 * @hangs_up: there will not be more than @pending for them
 * @pending: what the chardev has not taken yet
 * @taken: how much of the beginning of @pending it has
 * @watch: tells when it takes more
 * @is_late: who reads it has let pmu_sink_flush() wait in vain, and has taken
 *           nothing since
 * @fd: the file otherwise; -1 if there is none
 * @is_regular: it is no pipe
 * @written: where the next write to a file begins
 * @queue: of GByteArray, for @writer; an empty one is the end
 * @writer: the thread that writes
 * @closing: it is to end
 * @fail: tells the owner that nothing more can be written
 * @error: the errno of that, negative
 * @is_told: the owner knows
 */
struct PmuSink {
    const PmuSinkOps *ops;
    void *opaque;
    size_t backlog;
    CharBackend chr;
    PmuChardev *own;
    bool is_started;
    bool is_open;
    bool hangs_up;
    GByteArray *pending;
    size_t taken;
    guint watch;
    bool is_late;
    int fd;
    bool is_regular;
    off_t written;
    GAsyncQueue *queue;
    QemuThread writer;
    bool closing;
    QEMUBH *fail;
    int error;
    bool is_told;
};

bool pmu_sink_is_busy(PmuSink *sink)
{
    return qatomic_read(&sink->backlog) > MAX_BACKLOG;
}

/*
 * Files and pipes, in the thread that writes
 */

static bool wait_for_room(PmuSink *sink, int *waited_ms)
{
    GPollFD fd = { .fd = sink->fd, .events = G_IO_OUT };

    if (g_poll(&fd, 1, POLL_MS) == 0 && qatomic_read(&sink->closing)) {
        *waited_ms += POLL_MS;
    }
    return *waited_ms < PATIENCE_MS;
}

/* Returns: 0, or a negative errno. */
static int write_whole(PmuSink *sink, const GByteArray *bytes)
{
    size_t done = 0;
    int waited_ms = 0;

    while (done < bytes->len) {
        ssize_t n = write(sink->fd, bytes->data + done, bytes->len - done);

        if (n >= 0) {
            done += n;
            waited_ms = n ? 0 : waited_ms;
        } else if (errno == EAGAIN) {
            if (!wait_for_room(sink, &waited_ms)) {
                return -ETIMEDOUT;
            }
        } else if (errno != EINTR) {
            return -errno;
        }
    }
    return 0;
}

/* What a reader finds in a file are whole records, whatever happens. */
static void cut_file(PmuSink *sink)
{
    if (sink->is_regular && ftruncate(sink->fd, sink->written) < 0) {
        /* Then it ends in the middle of a record, which perf says. */
        return;
    }
}

static void write_bytes(PmuSink *sink, const GByteArray *bytes)
{
    int error = sink->error ?: write_whole(sink, bytes);

    if (!error) {
        sink->written += bytes->len;
    } else if (!sink->error) {
        sink->error = error;
        cut_file(sink);
        qemu_bh_schedule(sink->fail);
    }
    qatomic_fetch_sub(&sink->backlog, bytes->len);
}

static void *write_queue(void *opaque)
{
    PmuSink *sink = opaque;
    bool end = false;

    while (!end) {
        GByteArray *bytes = g_async_queue_pop(sink->queue);

        end = !bytes->len;
        write_bytes(sink, bytes);
        g_byte_array_unref(bytes);
    }
    return NULL;
}

static void tell_failure(void *opaque)
{
    PmuSink *sink = opaque;
    Error *err = NULL;

    sink->is_told = true;
    error_setg_errno(&err, -sink->error, "The profile cannot be written");
    sink->ops->failed(sink->opaque, err, sink->error == -EPIPE);
}

/* Some disks say only now that they are full. */
static void close_file(PmuSink *sink)
{
    if (qemu_close(sink->fd) < 0 && !sink->error) {
        sink->error = -errno;
    }
}

static void end_writer(PmuSink *sink)
{
    qatomic_set(&sink->closing, true);
    g_async_queue_push(sink->queue, g_byte_array_new());
    qemu_thread_join(&sink->writer);
    g_async_queue_unref(sink->queue);
    close_file(sink);
}

/*
 * Only what is open is sure to be what it is.  Without O_NONBLOCK a pipe that
 * nobody reads would hold up QEMU.
 */
static int open_existing(const char *path, Error **errp)
{
    ERRP_GUARD();
    struct stat st;
    int fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    if (fd < 0) {
        error_setg_errno(errp, errno, "%s cannot be opened", path);
        if (errno == ENXIO) {
            error_append_hint(errp, "Begin to read the pipe first.\n");
        }
        return -1;
    }
    if (fstat(fd, &st) < 0 || S_ISREG(st.st_mode) || S_ISBLK(st.st_mode)) {
        error_setg(errp, "The file %s exists", path);
        error_append_hint(errp, "A profile is written to a new file, a pipe "
                          "or a character device.\n");
        close(fd);
        return -1;
    }
    return fd;
}

/* What the user has opened is theirs: it is written from where it stands. */
static int open_given(const char *path, Error **errp)
{
    return qemu_open(path, O_WRONLY | O_NONBLOCK, errp);
}

static int open_file(const char *path, Error **errp)
{
    Error *err = NULL;
    int fd;

    if (g_str_has_prefix(path, "/dev/fdset/")) {
        return open_given(path, errp);
    }
    fd = qemu_create(path, O_WRONLY | O_EXCL, 0600, &err);
    if (fd < 0 && errno == EEXIST) {
        error_free(err);
        return open_existing(path, errp);
    }
    error_propagate(errp, err);
    return fd;
}

PmuSink *pmu_sink_new_file(const char *path, const PmuSinkOps *ops,
                           void *opaque, Error **errp)
{
    int fd = open_file(path, errp);
    struct stat st;
    PmuSink *sink;

    if (fd < 0) {
        return NULL;
    }
    sink = g_new0(PmuSink, 1);
    sink->ops = ops;
    sink->opaque = opaque;
    sink->fd = fd;
    sink->is_regular = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    sink->written = sink->is_regular ? lseek(fd, 0, SEEK_CUR) : 0;
    sink->queue = g_async_queue_new();
    sink->fail = qemu_bh_new(tell_failure, sink);
    qemu_thread_create(&sink->writer, "pmu-profile", write_queue, sink,
                       QEMU_THREAD_JOINABLE);
    return sink;
}

/*
 * Chardevs
 */

static void write_pending(PmuSink *sink);

static gboolean takes_more(void *unused, GIOCondition condition, void *opaque)
{
    PmuSink *sink = opaque;

    sink->watch = 0;
    write_pending(sink);
    return G_SOURCE_REMOVE;
}

/* The connection may be no more, and the watch is of its descriptor. */
static void drop(PmuSink *sink)
{
    if (sink->watch) {
        g_source_remove(sink->watch);
        sink->watch = 0;
    }
    g_byte_array_set_size(sink->pending, 0);
    sink->taken = 0;
    sink->backlog = 0;
}

/* What is behind is moved seldom: it may be much. */
static void remove_taken(PmuSink *sink, size_t count)
{
    sink->taken += count;
    if (sink->taken > sink->pending->len / 2) {
        g_byte_array_remove_range(sink->pending, 0, sink->taken);
        sink->taken = 0;
    }
    sink->backlog = sink->pending->len - sink->taken;
}

/* Of these we are told that the reader has gone, and another may come. */
static bool may_come_back(const PmuSink *sink)
{
    return CHARDEV_IS_PTY(sink->chr.chr)
           || qemu_chr_has_feature(sink->chr.chr,
                                   QEMU_CHAR_FEATURE_RECONNECTABLE);
}

/* Chardevs do not say why. */
static void fail_chardev(PmuSink *sink)
{
    sink->error = -EIO;
    drop(sink);
    qemu_bh_schedule(sink->fail);
}

/* Returns: whether it has taken some of the next @most bytes. */
static bool offer_to_chardev(PmuSink *sink, size_t most)
{
    int done = qemu_chr_fe_write(&sink->chr, sink->pending->data + sink->taken,
                                 MIN(sink->pending->len - sink->taken, most));

    if (done < 0 && errno != EAGAIN && !may_come_back(sink)) {
        fail_chardev(sink);
    } else {
        remove_taken(sink, MAX(done, 0));
    }
    if (done > 0) {
        sink->is_late = false;
    }
    return done > 0;
}

static void write_to_chardev(PmuSink *sink)
{
    if (sink->watch) {
        return;
    }
    offer_to_chardev(sink, SIZE_MAX);
    if (sink->backlog) {
        sink->watch = qemu_chr_fe_add_watch(&sink->chr, G_IO_OUT | G_IO_HUP,
                                            takes_more, sink);
        if (!sink->watch) {
            drop(sink);
        }
    }
}

static void write_to_guest(PmuSink *sink)
{
    remove_taken(sink, pmu_chardev_write(sink->own,
                                         sink->pending->data + sink->taken,
                                         sink->pending->len - sink->taken));
    if (sink->hangs_up && !sink->backlog) {
        pmu_chardev_connect(sink->own, false);
    }
}

static void write_pending(PmuSink *sink)
{
    if (sink->own) {
        write_to_guest(sink);
    } else {
        write_to_chardev(sink);
    }
}

/* As chardevs are when QEMU ends, before profiles. */
static bool is_being_removed(const Object *obj)
{
    return !obj->parent;
}

static void chardev_event(void *opaque, QEMUChrEvent event)
{
    PmuSink *sink = opaque;

    if (event == CHR_EVENT_OPENED) {
        drop(sink);
        sink->is_late = false;
        sink->ops->opened(sink->opaque);
    } else if (event == CHR_EVENT_CLOSED) {
        drop(sink);
        /* Whoever leaves by himself misses nothing. */
        sink->is_late &= is_being_removed(OBJECT(sink->chr.chr));
        sink->ops->closed(sink->opaque);
    }
}

static PmuSink *new_sink(const PmuSinkOps *ops, void *opaque)
{
    PmuSink *sink = g_new0(PmuSink, 1);

    sink->ops = ops;
    sink->opaque = opaque;
    sink->fd = -1;
    sink->pending = g_byte_array_new();
    sink->fail = qemu_bh_new(tell_failure, sink);
    return sink;
}

static void free_sink(PmuSink *sink)
{
    if (sink->pending) {
        g_byte_array_unref(sink->pending);
    }
    qemu_bh_delete(sink->fail);
    g_free(sink);
}

/*
 * A multiplexer has other writers, and a hub other readers: who begins to read
 * would be in the middle of a stream.
 */
static bool is_shared(Chardev *chr)
{
    return object_dynamic_cast(OBJECT(chr), TYPE_CHARDEV_MUX)
           || object_dynamic_cast(OBJECT(chr), TYPE_CHARDEV_HUB);
}

static Chardev *find_chardev(const char *id, Error **errp)
{
    ERRP_GUARD();
    Chardev *chr = qemu_chr_find(id);

    if (!chr) {
        error_setg(errp, "There is no chardev %s", id);
    } else if (is_shared(chr)) {
        error_setg(errp, "The chardev %s is shared", id);
        error_append_hint(errp, "A profile needs one without mux=on, and no "
                          "hub.\n");
        chr = NULL;
    } else if (object_dynamic_cast(OBJECT(chr), TYPE_CHARDEV_UDP)) {
        error_setg(errp, "The chardev %s sends datagrams", id);
        error_append_hint(errp, "A profile is a stream: choose a socket, or "
                          "file=.\n");
        chr = NULL;
    }
    return chr;
}

PmuSink *pmu_sink_new_chardev(const char *id, const PmuSinkOps *ops,
                              void *opaque, Error **errp)
{
    Chardev *chr = find_chardev(id, errp);
    PmuSink *sink = new_sink(ops, opaque);

    if (chr && qemu_chr_fe_init(&sink->chr, chr, errp)) {
        return sink;
    }
    free_sink(sink);
    return NULL;
}

/*
 * A pty tells that its reader has gone only to who reads what they say.  A
 * socket does so anyway, and would take one who will say nothing for gone.
 */
static int may_say(void *unused)
{
    return CHR_READ_BUF_LEN;
}

static void ignore_said(void *unused, const uint8_t *bytes, int size)
{
}

static void start_chardev(PmuSink *sink)
{
    bool is_read = CHARDEV_IS_PTY(sink->chr.chr);

    qemu_chr_fe_set_handlers(&sink->chr, is_read ? may_say : NULL,
                             is_read ? ignore_said : NULL, chardev_event, NULL,
                             sink, NULL, true);
}

/*
 * The owner as a chardev, whose other end is a device of the guest's
 */

static void answer(PmuSink *sink)
{
    sink->hangs_up = false;
    pmu_chardev_connect(sink->own, true);
}

/* Nobody is to wait for what will not come. */
static void guest_opened(void *opaque)
{
    PmuSink *sink = opaque;

    sink->is_open = true;
    drop(sink);
    answer(sink);
    if (sink->is_started && !sink->ops->opened(sink->opaque)) {
        pmu_sink_hang_up(sink);
    }
}

static void guest_closed(void *opaque)
{
    PmuSink *sink = opaque;

    sink->is_open = false;
    drop(sink);
    answer(sink);
    sink->ops->closed(sink->opaque);
}

static void guest_said(void *opaque, const uint8_t *bytes, size_t size)
{
    PmuSink *sink = opaque;

    sink->ops->said(sink->opaque, bytes, size);
}

static void guest_ready(void *opaque)
{
    write_to_guest(opaque);
}

static const PmuChardevOps own_ops = {
    .opened = guest_opened,
    .closed = guest_closed,
    .said = guest_said,
    .ready = guest_ready,
};

PmuSink *pmu_sink_new_guest(const char *id, const PmuSinkOps *ops,
                            void *opaque, Error **errp)
{
    PmuSink *sink = new_sink(ops, opaque);

    sink->own = pmu_chardev_new(id, &own_ops, sink, errp);
    if (!sink->own) {
        g_clear_pointer(&sink, free_sink);
    }
    return sink;
}

/*
 * Any
 */

bool pmu_sink_is_used(const PmuSink *sink)
{
    return sink->own && pmu_chardev_is_used(sink->own);
}

static void start_guest(PmuSink *sink)
{
    sink->is_started = true;
    if (sink->is_open) {
        sink->ops->opened(sink->opaque);
    }
}

void pmu_sink_hang_up(PmuSink *sink)
{
    if (sink->own) {
        sink->hangs_up = true;
        write_to_guest(sink);
    }
}

void pmu_sink_restart(PmuSink *sink)
{
    drop(sink);
    answer(sink);
    start_guest(sink);
}

void pmu_sink_go_on(PmuSink *sink)
{
    if (!sink->hangs_up) {
        start_guest(sink);
    }
}

void pmu_sink_start(PmuSink *sink)
{
    if (sink->own) {
        start_guest(sink);
    } else if (sink->fd < 0) {
        start_chardev(sink);
    } else {
        sink->ops->opened(sink->opaque);
    }
}

void pmu_sink_write(PmuSink *sink, GByteArray *bytes)
{
    if (sink->fd < 0 && !sink->error) {
        g_byte_array_append(sink->pending, bytes->data, bytes->len);
        sink->backlog = sink->pending->len - sink->taken;
        g_byte_array_unref(bytes);
        write_pending(sink);
    } else if (sink->fd >= 0 && bytes->len) {
        qatomic_fetch_add(&sink->backlog, bytes->len);
        g_async_queue_push(sink->queue, bytes);
    } else {
        g_byte_array_unref(bytes);
    }
}

void pmu_sink_flush(PmuSink *sink)
{
    bool is_chardev = sink->fd < 0 && !sink->own;
    int64_t last_us = g_get_monotonic_time();

    while (is_chardev && sink->backlog
           && g_get_monotonic_time() - last_us < PATIENCE_MS * 1000) {
        if (offer_to_chardev(sink, CHARDEV_PART)) {
            last_us = g_get_monotonic_time();
        } else {
            g_usleep(CHARDEV_POLL_US);
        }
    }
    if (is_chardev && sink->backlog) {
        sink->is_late = true;
    }
}

/* When QEMU ends, nobody may be left who hears of events. */
static void tell_last_failure(PmuSink *sink)
{
    if (sink->error && !sink->is_told) {
        warn_report("The end of a profile cannot be written: %s",
                    strerror(-sink->error));
        tell_failure(sink);
    }
}

/* When QEMU ends, its chardevs have ended: their readers seem to have left. */
static bool is_cut(PmuSink *sink)
{
    return sink->is_late
           && (sink->backlog || !qemu_chr_fe_backend_connected(&sink->chr));
}

static void free_chardev(PmuSink *sink)
{
    pmu_sink_flush(sink);
    if (is_cut(sink) && !sink->error) {
        sink->error = -ETIMEDOUT;
    }
    drop(sink);
    if (sink->own) {
        pmu_chardev_free(sink->own);
    } else {
        qemu_chr_fe_deinit(&sink->chr, false);
    }
}

void pmu_sink_free(PmuSink *sink)
{
    if (!sink) {
        return;
    }
    if (sink->fd < 0) {
        free_chardev(sink);
    } else {
        end_writer(sink);
    }
    tell_last_failure(sink);
    free_sink(sink);
}
