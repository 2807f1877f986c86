/*
 * Performance monitoring unit: where the stream of a profile goes
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/error-report.h"
#include "qemu/main-loop.h"
#include "qapi/error.h"
#include "qapi/qapi-commands-misc.h"
#include "chardev/char-fe.h"
#include "hw/pmu/compat.h"
#include "hw/pmu/profile/stream.h"
#include "chardev.h"
#include "sink.h"
#include "sink-file.h"

/* On hosts without O_NONBLOCK, opening a file does not wait. */
#ifndef O_NONBLOCK
#define O_NONBLOCK 0
#endif
#ifndef O_CLOEXEC
#define O_CLOEXEC 0
#endif
#ifndef O_NOCTTY
#define O_NOCTTY 0
#endif

/* A sink with a larger backlog is busy. */
#define MAX_BACKLOG (64 * 1024 * 1024)

/* How often a chardev that is to end is asked whether it takes more. */
#define CHARDEV_POLL_US 1000

/* How much it is offered: its log also gets bytes that it refuses. */
#define CHARDEV_PART 4096

/* All sinks together make QEMU wait PATIENCE_MS of each TURN_MS at most. */
#define PATIENCE_MS 1000
#define TURN_MS     5000

/* But each sink may wait so long in any case, as it may be about to end. */
#define LEAST_MS 20

/**
 * struct PmuSink - the destination of a stream
 * @ops, @opaque: the owner
 * @chr: the chardev, if the sink writes to one
 * @own: the owner's own chardev, if the sink writes to the guest
 * @is_started: calls to the owner are allowed
 * @is_open: the guest has opened the device of @own
 * @hangs_up: the reader gets no more than @pending
 * @hang_up: ends the connection of @chr then
 * @pending: bytes that the chardev is still to take, from the beginning of a
 *           record on
 * @taken: how many of these it has taken already
 * @watch: calls back when it takes more
 * @is_late: flush() has waited in vain for the reader, which has taken nothing
 *           since
 * @file: a file or a pipe, if the sink writes to one
 * @fail: reports to the owner that something cannot be written
 * @error: the errno of that, negative
 * @is_told: it was reported to the owner
 */
struct PmuSink {
    const PmuSinkOps *ops;
    void *opaque;
    CharBackend chr;
    PmuChardev *own;
    bool is_started;
    bool is_open;
    bool hangs_up;
    QEMUBH *hang_up;
    GByteArray *pending;
    size_t taken;
    guint watch;
    bool is_late;
    PmuFile *file;
    QEMUBH *fail;
    int error;
    bool is_told;
};

/* The sinks that write to a chardev other than their owner's own */
static GSList *chardev_sinks;

/* How many bytes the chardev is still to take */
static size_t backlog_of(const PmuSink *sink)
{
    return sink->pending->len - sink->taken;
}

bool pmu_sink_is_busy(PmuSink *sink)
{
    size_t backlog = sink->file ? pmu_file_backlog(sink->file)
                                : backlog_of(sink);

    return backlog > MAX_BACKLOG;
}

/*
 * How long QEMU waits for readers, and for disks
 */

static struct {
    int64_t turn_end_us;
    int64_t left_us;
} patience;

static int64_t left_patience_us(void)
{
    int64_t now_us = g_get_monotonic_time();

    if (now_us >= patience.turn_end_us) {
        patience.turn_end_us = now_us + TURN_MS * 1000;
        patience.left_us = PATIENCE_MS * 1000;
    }
    return patience.left_us;
}

static void has_waited_since(int64_t begin_us)
{
    patience.left_us -= MIN(g_get_monotonic_time() - begin_us,
                            patience.left_us);
}

/*
 * Files and pipes
 */

/* A pipe's reader that has left (EPIPE) did not want the rest. */
static void tell_unwritten(PmuSink *sink)
{
    GByteArray *bytes;

    while ((bytes = pmu_file_take_unwritten(sink->file))) {
        if (pmu_file_error(sink->file) != -EPIPE) {
            sink->ops->unwritten(sink->opaque, bytes->data, bytes->len);
        }
        g_byte_array_unref(bytes);
    }
}

static void tell_error(PmuSink *sink)
{
    Error *err = NULL;

    if (!sink->is_told) {
        sink->is_told = true;
        error_setg_errno(&err, -sink->error, "The profile cannot be written");
        sink->ops->failed(sink->opaque, err, sink->error == -EPIPE);
    }
}

/*
 * The profile may have stopped, so that its state has another reason; or QEMU
 * ends, and no monitor is left that gets the event.
 */
static void tell_last_failure(PmuSink *sink)
{
    if (sink->error && sink->error != -EPIPE && !sink->is_told) {
        warn_report("The end of a profile cannot be written: %s",
                    strerror(-sink->error));
    }
    if (sink->error) {
        tell_error(sink);
    }
}

static void tell_failure(void *opaque)
{
    PmuSink *sink = opaque;

    if (sink->file) {
        sink->error = pmu_file_error(sink->file);
        tell_unwritten(sink);
    }
    if (sink->hangs_up) {
        tell_last_failure(sink);
    } else {
        tell_error(sink);
    }
}

/*
 * The file is checked after it was opened, when its name can no longer be given
 * to another file.  Without O_NONBLOCK, open() would wait for a pipe's reader.
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

/* From several writable descriptors, QEMU takes the last one of this list. */
static int flags_of_writable(const FdsetFdInfoList *fds)
{
    int writable = O_WRONLY;

#ifndef _WIN32
    for (; fds; fds = fds->next) {
        int flags = fcntl(fds->value->fd, F_GETFL);

        if (flags >= 0 && (flags & O_ACCMODE) != O_RDONLY) {
            writable = flags;
        }
    }
#endif
    return writable;
}

/*
 * The flags of a descriptor that the user has opened are to stay:
 * qemu_open() would remove flags that the caller does not pass.
 */
static int open_given(const char *path, Error **errp)
{
    g_autoptr(FdsetInfoList) sets = qmp_query_fdsets(&error_abort);
    int flags = O_WRONLY;

    for (const FdsetInfoList *set = sets; set; set = set->next) {
        g_autofree char *name = g_strdup_printf("/dev/fdset/%" PRId64,
                                                set->value->fdset_id);

        if (g_str_equal(name, path)) {
            flags = flags_of_writable(set->value->fds);
        }
    }
    return qemu_open(path, flags, errp);
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

static PmuSink *new_sink(const PmuSinkOps *ops, void *opaque)
{
    PmuSink *sink = g_new0(PmuSink, 1);

    sink->ops = ops;
    sink->opaque = opaque;
    sink->pending = g_byte_array_new();
    sink->fail = qemu_bh_new(tell_failure, sink);
    return sink;
}

PmuSink *pmu_sink_new_file(const char *path, const PmuSinkOps *ops,
                           void *opaque, Error **errp)
{
    int fd = open_file(path, errp);
    PmuSink *sink;

    if (fd < 0) {
        return NULL;
    }
    sink = new_sink(ops, opaque);
    sink->file = pmu_file_new(fd, sink->fail);
    return sink;
}

/* A disk may be slow, or not answer at all; a pipe's reader may not read. */
static void free_file(PmuSink *sink)
{
    int64_t begin_us = g_get_monotonic_time();
    int most_ms = left_patience_us() / 1000;
    int error;

    pmu_file_end(sink->file);
    error = pmu_file_await(sink->file, MAX(most_ms, LEAST_MS));
    has_waited_since(begin_us);
    tell_unwritten(sink);
    if (error == -EINPROGRESS) {
        warn_report("The end of a profile is still being written; it is lost "
                    "if QEMU ends first");
    } else {
        sink->error = error;
    }
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

/* The connection may have ended, and the watch is for its descriptor. */
static void drop(PmuSink *sink)
{
    if (sink->watch) {
        g_source_remove(sink->watch);
        sink->watch = 0;
    }
    g_byte_array_set_size(sink->pending, 0);
    sink->taken = 0;
}

/* Removes whole records only, and seldom, as it has to move all later bytes. */
static void remove_taken(PmuSink *sink, size_t count)
{
    sink->taken += count;
    if (sink->taken > sink->pending->len / 2) {
        size_t whole = pmu_stream_whole(sink->pending->data, sink->taken);

        g_byte_array_remove_range(sink->pending, 0, whole);
        sink->taken -= whole;
    }
}

static bool is_pty(const PmuSink *sink)
{
    return object_dynamic_cast(OBJECT(sink->chr.chr), TYPE_CHARDEV_PTY);
}

/* These chardevs report that the reader has gone, and another may come. */
static bool may_come_back(const PmuSink *sink)
{
    return is_pty(sink)
           || qemu_chr_has_feature(sink->chr.chr,
                                   QEMU_CHAR_FEATURE_RECONNECTABLE);
}

/* A record of which the chardev has taken a part is lost, too. */
static void lose_pending(PmuSink *sink, int error)
{
    size_t whole = pmu_stream_whole(sink->pending->data, sink->taken);

    sink->error = error;
    sink->ops->unwritten(sink->opaque, sink->pending->data + whole,
                         sink->pending->len - whole);
    drop(sink);
}

/* Chardevs do not report the cause of an error. */
static void fail_chardev(PmuSink *sink)
{
    lose_pending(sink, -EIO);
    qemu_bh_schedule(sink->fail);
}

/* Returns: whether the chardev has taken some of the next @most bytes. */
static bool offer_to_chardev(PmuSink *sink, size_t most)
{
    int done = qemu_chr_fe_write(&sink->chr, sink->pending->data + sink->taken,
                                 MIN(backlog_of(sink), most));

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
    if (backlog_of(sink)) {
        sink->watch = qemu_chr_fe_add_watch(&sink->chr, G_IO_OUT | G_IO_HUP,
                                            takes_more, sink);
        if (!sink->watch) {
            drop(sink);
        }
    }
    if (sink->hangs_up && !backlog_of(sink)) {
        qemu_bh_schedule(sink->hang_up);
    }
}

/* A socket without a connection may be about to connect: leave it alone. */
static void disconnect(PmuSink *sink)
{
    if (qemu_chr_fe_backend_open(&sink->chr)) {
        qemu_chr_fe_disconnect(&sink->chr);
    }
}

/* The reader has all bytes then; without this, it would wait for more. */
static void hang_up(void *opaque)
{
    PmuSink *sink = opaque;

    if (sink->hangs_up && !backlog_of(sink)) {
        disconnect(sink);
    }
}

static void write_to_guest(PmuSink *sink)
{
    remove_taken(sink, pmu_chardev_write(sink->own,
                                         sink->pending->data + sink->taken,
                                         backlog_of(sink)));
    if (sink->hangs_up && !backlog_of(sink)) {
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

/* When QEMU ends, it removes chardevs before profiles. */
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
        sink->hangs_up = false;
        if (!sink->ops->opened(sink->opaque)) {
            pmu_sink_hang_up(sink);
        }
    } else if (event == CHR_EVENT_CLOSED) {
        drop(sink);
        /* A reader that has left by itself did not want the rest. */
        sink->is_late &= is_being_removed(OBJECT(sink->chr.chr));
        sink->ops->closed(sink->opaque);
    }
}

static void free_sink(PmuSink *sink)
{
    g_byte_array_unref(sink->pending);
    if (sink->hang_up) {
        qemu_bh_delete(sink->hang_up);
    }
    qemu_bh_delete(sink->fail);
    g_free(sink);
}

/*
 * A multiplexer has other writers.  A hub has other readers: one that comes
 * later would begin in the middle of a stream.
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
        sink->hang_up = qemu_bh_new(hang_up, sink);
        chardev_sinks = g_slist_prepend(chardev_sinks, sink);
        return sink;
    }
    free_sink(sink);
    return NULL;
}

/*
 * A pty reports that its reader has gone only to a frontend that reads its
 * input.  A socket reports it in any case; if its input were read, a peer that
 * closes only its own sending side would be taken for gone.
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
    bool is_read = is_pty(sink);

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

/* Without the hang-up, the reader would wait for a stream that never begins. */
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
 * Sinks of all kinds
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
    sink->hangs_up = true;
    if (sink->file) {
        pmu_file_end(sink->file);
    } else {
        write_pending(sink);
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
    } else if (sink->file) {
        sink->ops->opened(sink->opaque);
    } else {
        start_chardev(sink);
    }
}

void pmu_sink_write(PmuSink *sink, GByteArray *bytes)
{
    if (sink->file) {
        pmu_file_write(sink->file, bytes);
        return;
    }
    if (sink->error) {
        sink->ops->unwritten(sink->opaque, bytes->data, bytes->len);
    } else {
        g_byte_array_append(sink->pending, bytes->data, bytes->len);
        write_pending(sink);
    }
    g_byte_array_unref(bytes);
}

/* Returns: whether any sink has taken some bytes; sets @more if any has more */
static bool offer_to_all(GSList *sinks, bool *more)
{
    bool taken = false;

    *more = false;
    for (; sinks; sinks = sinks->next) {
        PmuSink *sink = sinks->data;

        taken |= backlog_of(sink) && offer_to_chardev(sink, CHARDEV_PART);
        *more |= backlog_of(sink) > 0;
    }
    return taken;
}

static void give_up(GSList *sinks)
{
    for (; sinks; sinks = sinks->next) {
        PmuSink *sink = sinks->data;

        sink->is_late |= backlog_of(sink) > 0;
    }
}

static void flush(GSList *sinks)
{
    int64_t begin_us = g_get_monotonic_time();
    int64_t end_us = begin_us + MAX(left_patience_us(), LEAST_MS * 1000);
    bool more;

    do {
        if (!offer_to_all(sinks, &more) && more) {
            g_usleep(CHARDEV_POLL_US);
        }
    } while (more && g_get_monotonic_time() < end_us);
    has_waited_since(begin_us);
    give_up(sinks);
}

void pmu_sink_flush_all(void)
{
    flush(chardev_sinks);
}

/* When QEMU ends, its chardevs have ended: their readers seem to have left. */
static bool is_cut(PmuSink *sink)
{
    return sink->is_late
           && (backlog_of(sink) || !qemu_chr_fe_backend_connected(&sink->chr));
}

static void free_chardev(PmuSink *sink)
{
    GSList alone = { .data = sink };

    flush(&alone);
    if (is_cut(sink) && !sink->error) {
        lose_pending(sink, -ETIMEDOUT);
    }
    drop(sink);
    chardev_sinks = g_slist_remove(chardev_sinks, sink);
    qemu_chr_fe_set_handlers(&sink->chr, NULL, NULL, NULL, NULL, NULL, NULL,
                             true);
    disconnect(sink);
    qemu_chr_fe_deinit(&sink->chr, false);
}

void pmu_sink_free(PmuSink *sink)
{
    if (!sink) {
        return;
    }
    if (sink->own) {
        pmu_chardev_free(sink->own);
    } else if (sink->file) {
        free_file(sink);
    } else {
        free_chardev(sink);
    }
    tell_last_failure(sink);
    if (sink->file) {
        pmu_file_leave(sink->file);
    }
    free_sink(sink);
}
