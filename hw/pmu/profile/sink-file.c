/*
 * Performance monitoring unit: a file that a thread of its own writes
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/error-report.h"
#include "qemu/lockable.h"
#include "qemu/main-loop.h"
#include "qemu/thread.h"
#include "hw/pmu/profile/stream.h"
#include "sink-file.h"

/* How often a thread that waits for a pipe checks whether it has to end. */
#define POLL_MS 100

/* If poll() reports room, a write of this size does not wait. */
#define PART 4096

/**
 * struct PmuFile - a file that a thread of its own writes
 * @fd: the file
 * @is_regular: it is neither a pipe nor a device
 * @written: the end of the last record that was written; a regular file is cut
 *           there after an error
 * @backlog: how many bytes are in @queue, or are being written
 * @error: why @unwritten is in use, or why closing failed
 * @ended: posted when the thread has closed the file
 * @lock: protects what follows
 * @has_more: signalled when @queue has more, or has its end
 * @queue: of GByteArray, for the thread
 * @has_end: nothing more comes to @queue
 * @unwritten: of GByteArray, from the thread
 * @is_left: pmu_file_leave() was called
 * @failed: scheduled when there is more in @unwritten, unless @is_left
 * @is_closed: the thread does not need the file any more
 */
struct PmuFile {
    int fd;
    bool is_regular;
    off_t written;
    size_t backlog;
    int error;
    QemuSemaphore ended;
    QemuMutex lock;
    QemuCond has_more;
    GQueue *queue;
    bool has_end;
    GQueue *unwritten;
    bool is_left;
    QEMUBH *failed;
    bool is_closed;
};

static void unref_bytes(void *bytes)
{
    g_byte_array_unref(bytes);
}

static void free_file(PmuFile *f)
{
    g_queue_free_full(f->queue, unref_bytes);
    g_queue_free_full(f->unwritten, unref_bytes);
    qemu_sem_destroy(&f->ended);
    qemu_cond_destroy(&f->has_more);
    qemu_mutex_destroy(&f->lock);
    g_free(f);
}

/*
 * The thread
 */

static bool wait_for_room(PmuFile *f)
{
    GPollFD fd = { .fd = f->fd, .events = G_IO_OUT };

    while (!qatomic_read(&f->is_left)) {
        if (g_poll(&fd, 1, POLL_MS) > 0) {
            return true;
        }
    }
    return false;
}

/* Returns: as write(), which waits for a disk as long as that takes. */
static ssize_t write_part(PmuFile *f, const uint8_t *bytes, size_t size)
{
    if (f->is_regular) {
        return write(f->fd, bytes, size);
    }
    if (!wait_for_room(f)) {
        errno = ETIMEDOUT;
        return -1;
    }
    return write(f->fd, bytes, MIN(size, PART));
}

/* Returns: how many bytes were written; if not all, @error says why. */
static size_t write_whole(PmuFile *f, const GByteArray *bytes)
{
    size_t done = 0;

    while (done < bytes->len && !f->error) {
        ssize_t n = write_part(f, bytes->data + done, bytes->len - done);

        if (n >= 0) {
            done += n;
        } else if (errno != EAGAIN && errno != EINTR) {
            qatomic_set(&f->error, -errno);
        }
    }
    return done;
}

/* A regular file is to hold whole records only, even after an error. */
static void cut_file(PmuFile *f)
{
    if (f->is_regular && ftruncate(f->fd, f->written) < 0) {
        /* Then it ends in the middle of a record, which perf reports. */
        return;
    }
}

/* With the lock held */
static void report_failure(PmuFile *f)
{
    if (!f->is_left) {
        qemu_bh_schedule(f->failed);
    }
}

static void give_back(PmuFile *f, GByteArray *bytes, size_t done)
{
    size_t whole = pmu_stream_whole(bytes->data, done);

    f->written += whole;
    if (done) {
        cut_file(f);
    }
    g_byte_array_remove_range(bytes, 0, whole);
    QEMU_LOCK_GUARD(&f->lock);
    g_queue_push_tail(f->unwritten, bytes);
    report_failure(f);
}

static void write_bytes(PmuFile *f, GByteArray *bytes)
{
    size_t size = bytes->len;
    size_t done = write_whole(f, bytes);

    if (done < size) {
        give_back(f, bytes, done);
    } else {
        f->written += size;
        g_byte_array_unref(bytes);
    }
    qatomic_fetch_sub(&f->backlog, size);
}

/* Some disks report only now that they are full. */
static void close_file(PmuFile *f)
{
    if (qemu_close(f->fd) < 0 && !f->error) {
        qatomic_set(&f->error, -errno);
        WITH_QEMU_LOCK_GUARD(&f->lock) {
            report_failure(f);
        }
    }
    if (f->error && f->is_regular && qatomic_read(&f->is_left)) {
        warn_report("The end of a profile cannot be written: %s",
                    strerror(-f->error));
    }
}

/* Returns: NULL at the end */
static GByteArray *await_bytes(PmuFile *f)
{
    QEMU_LOCK_GUARD(&f->lock);
    while (g_queue_is_empty(f->queue) && !f->has_end) {
        qemu_cond_wait(&f->has_more, &f->lock);
    }
    return g_queue_pop_head(f->queue);
}

static void *write_queue(void *opaque)
{
    PmuFile *f = opaque;
    GByteArray *bytes;
    bool is_left;

    while ((bytes = await_bytes(f))) {
        write_bytes(f, bytes);
    }
    close_file(f);
    qemu_sem_post(&f->ended);
    WITH_QEMU_LOCK_GUARD(&f->lock) {
        f->is_closed = true;
        is_left = f->is_left;
    }
    if (is_left) {
        free_file(f);
    }
    return NULL;
}

/*
 * Other threads
 */

static off_t end_of_written(int fd, const struct stat *st)
{
#ifndef _WIN32
    int flags = fcntl(fd, F_GETFL);

    if (flags >= 0 && (flags & O_APPEND)) {
        return st->st_size;
    }
#endif
    return lseek(fd, 0, SEEK_CUR);
}

PmuFile *pmu_file_new(int fd, QEMUBH *failed)
{
    PmuFile *f = g_new0(PmuFile, 1);
    QemuThread thread;
    struct stat st;

    f->fd = fd;
    f->is_regular = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
    f->written = f->is_regular ? end_of_written(fd, &st) : 0;
    f->queue = g_queue_new();
    f->unwritten = g_queue_new();
    f->failed = failed;
    qemu_sem_init(&f->ended, 0);
    qemu_cond_init(&f->has_more);
    qemu_mutex_init(&f->lock);
    qemu_thread_create(&thread, "pmu-profile", write_queue, f,
                       QEMU_THREAD_DETACHED);
    return f;
}

void pmu_file_write(PmuFile *f, GByteArray *bytes)
{
    QEMU_LOCK_GUARD(&f->lock);
    if (f->has_end) {
        g_byte_array_unref(bytes);
    } else {
        qatomic_fetch_add(&f->backlog, bytes->len);
        g_queue_push_tail(f->queue, bytes);
        qemu_cond_signal(&f->has_more);
    }
}

size_t pmu_file_backlog(PmuFile *f)
{
    return qatomic_read(&f->backlog);
}

void pmu_file_end(PmuFile *f)
{
    QEMU_LOCK_GUARD(&f->lock);
    f->has_end = true;
    qemu_cond_signal(&f->has_more);
}

int pmu_file_await(PmuFile *f, int most_ms)
{
    if (qemu_sem_timedwait(&f->ended, most_ms) == 0) {
        return f->error;
    }
    return f->is_regular ? -EINPROGRESS : -ETIMEDOUT;
}

int pmu_file_error(PmuFile *f)
{
    return qatomic_read(&f->error);
}

GByteArray *pmu_file_take_unwritten(PmuFile *f)
{
    QEMU_LOCK_GUARD(&f->lock);
    return g_queue_pop_head(f->unwritten);
}

void pmu_file_leave(PmuFile *f)
{
    bool is_closed;

    WITH_QEMU_LOCK_GUARD(&f->lock) {
        qatomic_set(&f->is_left, true);
        is_closed = f->is_closed;
    }
    if (is_closed) {
        free_file(f);
    }
}
