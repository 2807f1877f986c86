/*
 * Files for a guest: a server of Linux's FUSE protocol
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/cutils.h"
#include "qemu/iov.h"
#include "qemu/units.h"
#include "standard-headers/linux/fuse.h"
#include <linux/openat2.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include "fuse-server.h"

/* More than any request without data has */
#define REQUEST_SIZE (4 * KiB)
/* Linux asks for less. */
#define ANSWER_SIZE (256 * KiB)
/* The flags that are set if the guest's kernel offers them */
#define FUSE_FLAGS \
    (FUSE_ASYNC_READ | FUSE_DO_READDIRPLUS | FUSE_READDIRPLUS_AUTO \
     | FUSE_PARALLEL_DIROPS | FUSE_NO_OPEN_SUPPORT | FUSE_NO_OPENDIR_SUPPORT \
     | FUSE_CACHE_SYMLINKS | FUSE_MAX_PAGES)

/**
 * struct Request - a request, and the answer to it
 * @header: as the guest has written it
 * @file: its file; NULL if the guest does not know any of its number
 * @arguments: its fields, which depend on the operation, and a NUL
 * @size: how many bytes there are, without the NUL
 * @in: where the answer goes
 * @n_in: how many parts it has
 */
typedef struct Request {
    struct fuse_in_header header;
    FuseName *file;
    char arguments[REQUEST_SIZE + 1];
    size_t size;
    const struct iovec *in;
    unsigned n_in;
} Request;

/*
 * The host's files
 */

/*
 * Open a directory below another one.  A directory may have become a symbolic
 * link since the guest has looked it up: these are not followed.
 */
static int open_below(int root, const char *path)
{
    struct open_how how = {
        .flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
    };

    return syscall(SYS_openat2, root, path, &how, sizeof(how));
}

/* Open the directory of a file; the root's is itself. */
static int open_directory_of(FuseServer *s, const FuseName *file)
{
    g_autofree char *path = file->directory
                            ? fuse_name_path(file->directory, "") : NULL;

    return open_below(s->root, path ?: ".");
}

/* Open a file, unless that would wait or have an effect. */
static int open_for_reading(FuseServer *s, const FuseName *file)
{
    int fd, directory = open_directory_of(s, file);
    struct stat st;

    if (directory < 0) {
        return -1;
    }
    fd = openat(directory, file->name,
                O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    close(directory);
    if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))) {
        close(fd);
        errno = EIO;
        return -1;
    }
    return fd;
}

static void close_file(FuseServer *s, FuseName **open)
{
    close((*open)->fd);
    (*open)->fd = -1;
    *open = NULL;
}

static int file_for_reading(FuseServer *s, FuseName *file)
{
    FuseName **place = s->open;
    int i;

    if (file->fd < 0) {
        for (i = 0; i < FUSE_OPEN_FILES && *place; i++) {
            if (!s->open[i] || s->open[i]->used < (*place)->used) {
                place = &s->open[i];
            }
        }
        file->fd = open_for_reading(s, file);
        if (file->fd < 0) {
            return -1;
        }
        if (*place) {
            close_file(s, place);
        }
        *place = file;
    }
    file->used = ++s->reads;
    return file->fd;
}

static void forget(FuseServer *s, uint64_t id, uint64_t lookups)
{
    FuseName *file = fuse_names_find(&s->names, id);
    int i;

    for (i = 0; file && i < FUSE_OPEN_FILES; i++) {
        if (s->open[i] == file) {
            close_file(s, &s->open[i]);
        }
    }
    fuse_names_forget(&s->names, id, lookups);
}

/*
 * Attributes
 */

/* Numbers of inodes are unique in a file system, of which the host has many. */
static uint64_t number_of(FuseServer *s, const struct stat *st)
{
    uint64_t i;

    for (i = 0; i < s->devices->len; i++) {
        if (g_array_index(s->devices, dev_t, i) == st->st_dev) {
            break;
        }
    }
    if (i == s->devices->len) {
        g_array_append_val(s->devices, st->st_dev);
    }
    return st->st_ino ^ (i << 48);
}

static struct fuse_attr attributes(FuseServer *s, const struct stat *st)
{
    return (struct fuse_attr) {
        .ino = number_of(s, st),
        .size = st->st_size,
        .blocks = st->st_blocks,
        .atime = st->st_atim.tv_sec,
        .mtime = st->st_mtim.tv_sec,
        .ctime = st->st_ctim.tv_sec,
        .atimensec = st->st_atim.tv_nsec,
        .mtimensec = st->st_mtim.tv_nsec,
        .ctimensec = st->st_ctim.tv_nsec,
        .mode = st->st_mode,
        .nlink = st->st_nlink,
        .uid = st->st_uid,
        .gid = st->st_gid,
        .rdev = major(st->st_rdev) << 20 | minor(st->st_rdev),
        .blksize = st->st_blksize,
    };
}

/* For how many seconds the guest may remember an answer */
static uint64_t validity(const FuseServer *s)
{
    return s->cache ? 1u << 30 : 0;
}

static struct fuse_entry_out describe(FuseServer *s, uint64_t id,
                                      const struct stat *st)
{
    return (struct fuse_entry_out) {
        .nodeid = id,
        .entry_valid = validity(s),
        .attr_valid = validity(s),
        .attr = attributes(s, st),
    };
}

/*
 * Answers.  Each function returns the size of an answer without its header, or
 * -1 with errno.
 */

/* Write all but the header. */
static ssize_t answer(const Request *r, const void *data, size_t size)
{
    if (iov_from_buf(r->in, r->n_in, sizeof(struct fuse_out_header), data,
                     size) < size) {
        errno = EIO;
        return -1;
    }
    return size;
}

static ssize_t answer_error(int error)
{
    errno = error;
    return -1;
}

/* The request's fields, or NULL if it is too short. */
static const void *fields(const Request *r, size_t size)
{
    return r->size < size ? NULL : r->arguments;
}

/* A name in the request, or NULL if no file can have it */
static const char *name_in(const Request *r, size_t at)
{
    const char *name = r->arguments + at;

    return r->size > at && fuse_name_is_valid(name, r->size + 1 - at) ? name
           : NULL;
}

static ssize_t answer_init(FuseServer *s, const Request *r)
{
    /* Older kernels send less of it. */
    const struct fuse_init_in *asked = fields(r, 4 * sizeof(uint32_t));
    struct fuse_init_out out = { .major = FUSE_KERNEL_VERSION };

    if (!asked || asked->major < FUSE_KERNEL_VERSION) {
        return answer_error(EPROTO);
    }
    out.minor = MIN(asked->minor, FUSE_KERNEL_MINOR_VERSION);
    out.max_readahead = asked->max_readahead;
    out.flags = asked->flags & FUSE_FLAGS;
    out.max_write = 4 * KiB;
    out.time_gran = 1;
    out.max_pages = ANSWER_SIZE / (4 * KiB);
    return answer(r, &out, sizeof(out));
}

static ssize_t answer_lookup(FuseServer *s, const Request *r)
{
    g_autofree char *path = fuse_name_path(r->file, "");
    const char *name = name_in(r, 0);
    struct fuse_entry_out entry;
    struct stat st;
    int directory, result;

    if (!name) {
        return answer_error(EINVAL);
    }
    directory = open_below(s->root, path);
    if (directory < 0) {
        return -1;
    }
    result = fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW);
    close(directory);
    if (result < 0 && errno == ENOENT) {
        entry = (struct fuse_entry_out) { .entry_valid = validity(s) };
        return answer(r, &entry, sizeof(entry));
    }
    if (result < 0) {
        return -1;
    }
    entry = describe(s, fuse_names_tell(&s->names, r->file, name)->id, &st);
    return answer(r, &entry, sizeof(entry));
}

static ssize_t answer_getattr(FuseServer *s, const Request *r)
{
    int result, directory = open_directory_of(s, r->file);
    struct fuse_attr_out out = { .attr_valid = validity(s) };
    struct stat st;

    if (directory < 0) {
        return -1;
    }
    result = fstatat(directory, r->file->name, &st, AT_SYMLINK_NOFOLLOW);
    close(directory);
    if (result < 0) {
        return -1;
    }
    out.attr = attributes(s, &st);
    return answer(r, &out, sizeof(out));
}

static ssize_t answer_readlink(FuseServer *s, const Request *r)
{
    int directory = open_directory_of(s, r->file);
    char target[PATH_MAX];
    ssize_t size;

    if (directory < 0) {
        return -1;
    }
    size = readlinkat(directory, r->file->name, target, sizeof(target));
    close(directory);
    return size < 0 ? -1 : answer(r, target, size);
}

/* The host's kernel writes to the guest's memory. */
static ssize_t answer_read(FuseServer *s, const Request *r)
{
    const struct fuse_read_in *asked = fields(r, sizeof(*asked));
    g_autofree struct iovec *parts = g_new(struct iovec, r->n_in);
    int fd, n;

    if (!asked || asked->offset > INT64_MAX - ANSWER_SIZE) {
        return answer_error(EINVAL);
    }
    fd = file_for_reading(s, r->file);
    if (fd < 0) {
        return -1;
    }
    n = iov_copy(parts, r->n_in, r->in, r->n_in,
                 sizeof(struct fuse_out_header), asked->size);
    return preadv(fd, parts, MIN(n, IOV_MAX), asked->offset);
}

/* Add an entry of a directory; returns its size, or 0 if there is no room. */
static size_t add_entry(FuseServer *s, const Request *r, DIR *directory,
                        const struct dirent *entry, char *to, size_t room)
{
    bool plus = r->header.opcode == FUSE_READDIRPLUS;
    size_t length = strlen(entry->d_name);
    size_t size = FUSE_DIRENT_ALIGN((plus ? FUSE_NAME_OFFSET_DIRENTPLUS
                                     : FUSE_NAME_OFFSET) + length);
    bool is_file = !g_str_equal(entry->d_name, ".")
                   && !g_str_equal(entry->d_name, "..");
    struct fuse_direntplus all = { };
    struct stat st;

    if (size > room || length >= FUSE_NAME_SIZE) {
        return 0;
    }
    if (plus && is_file && fstatat(dirfd(directory), entry->d_name, &st,
                                   AT_SYMLINK_NOFOLLOW) == 0) {
        all.entry_out = describe(s, fuse_names_tell(&s->names, r->file,
                                                    entry->d_name)->id, &st);
    }
    all.dirent.ino = all.entry_out.attr.ino ?: entry->d_ino;
    all.dirent.off = entry->d_off;
    all.dirent.namelen = length;
    all.dirent.type = entry->d_type;
    memset(to, 0, size);
    if (plus) {
        memcpy(to, &all, FUSE_NAME_OFFSET_DIRENTPLUS);
    } else {
        memcpy(to, &all.dirent, FUSE_NAME_OFFSET);
    }
    memcpy(to + (plus ? FUSE_NAME_OFFSET_DIRENTPLUS : FUSE_NAME_OFFSET),
           entry->d_name, length);
    return size;
}

static ssize_t answer_readdir(FuseServer *s, const Request *r)
{
    const struct fuse_read_in *asked = fields(r, sizeof(*asked));
    g_autofree char *path = fuse_name_path(r->file, "");
    g_autofree char *data = NULL;
    size_t used = 0, added = 1, room;
    struct dirent *entry;
    int fd, above;
    DIR *directory;

    if (!asked) {
        return answer_error(EINVAL);
    }
    above = open_below(s->root, path);
    if (above < 0) {
        return -1;
    }
    fd = openat(above, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    close(above);
    directory = fd < 0 ? NULL : fdopendir(fd);
    if (!directory) {
        return -1;
    }
    room = MIN(asked->size, ANSWER_SIZE);
    data = g_malloc(room);
    if (asked->offset) {
        seekdir(directory, asked->offset);
    }
    while (added && (entry = readdir(directory))) {
        added = add_entry(s, r, directory, entry, data + used, room - used);
        used += added;
    }
    closedir(directory);
    return answer(r, data, used);
}

static ssize_t answer_statfs(FuseServer *s, const Request *r)
{
    struct fuse_statfs_out out = { };
    struct statvfs st;

    if (fstatvfs(s->root, &st) < 0) {
        return -1;
    }
    out.st.blocks = st.f_blocks;
    out.st.bfree = st.f_bfree;
    out.st.bavail = st.f_bavail;
    out.st.files = st.f_files;
    out.st.ffree = st.f_ffree;
    out.st.bsize = st.f_bsize;
    out.st.namelen = st.f_namemax;
    out.st.frsize = st.f_frsize;
    return answer(r, &out, sizeof(out));
}

/* One extended attribute, or their names if @name is NULL */
static ssize_t answer_xattr(FuseServer *s, const Request *r, const char *name)
{
    const struct fuse_getxattr_in *asked = fields(r, sizeof(*asked));
    struct fuse_getxattr_out out = { };
    g_autofree char *path = NULL, *value = NULL;
    int directory;
    ssize_t size;

    if (!asked || (name && r->size <= sizeof(*asked))) {
        return answer_error(EINVAL);
    }
    directory = open_directory_of(s, r->file);
    if (directory < 0) {
        return -1;
    }
    path = g_strdup_printf("/proc/self/fd/%d/%s", directory, r->file->name);
    size = MIN(asked->size, ANSWER_SIZE);
    value = g_malloc(size);
    size = name ? lgetxattr(path, name, value, size)
           : llistxattr(path, value, size);
    close(directory);
    if (size < 0) {
        return -1;
    }
    out.size = size;
    return asked->size ? answer(r, value, size)
           : answer(r, &out, sizeof(out));
}

/* For those requests that need a file */
static ssize_t answer_about(FuseServer *s, const Request *r)
{
    switch (r->header.opcode) {
    case FUSE_LOOKUP:
        return answer_lookup(s, r);
    case FUSE_GETATTR:
        return answer_getattr(s, r);
    case FUSE_READLINK:
        return answer_readlink(s, r);
    case FUSE_READ:
        return answer_read(s, r);
    case FUSE_READDIR:
    case FUSE_READDIRPLUS:
        return answer_readdir(s, r);
    case FUSE_GETXATTR:
        return answer_xattr(s, r, r->arguments
                            + sizeof(struct fuse_getxattr_in));
    case FUSE_LISTXATTR:
        return answer_xattr(s, r, NULL);
    default:
        /* Linux then does without, also without messages for open files. */
        return answer_error(ENOSYS);
    }
}

static ssize_t answer_any(FuseServer *s, const Request *r)
{
    switch (r->header.opcode) {
    case FUSE_INIT:
        return answer_init(s, r);
    case FUSE_DESTROY:
        fuse_server_reset(s);
        return 0;
    case FUSE_STATFS:
        return answer_statfs(s, r);
    default:
        return r->file ? answer_about(s, r) : answer_error(ESTALE);
    }
}

ssize_t fuse_server_answer(FuseServer *s, const struct iovec *out,
                           unsigned n_out, const struct iovec *in,
                           unsigned n_in)
{
    Request r = { .in = in, .n_in = n_in };
    struct fuse_out_header header = { };
    const struct fuse_forget_in *forgotten;
    ssize_t size;

    if (iov_to_buf(out, n_out, 0, &r.header, sizeof(r.header))
        < sizeof(r.header)) {
        return -1;
    }
    r.size = iov_to_buf(out, n_out, sizeof(r.header), r.arguments,
                        REQUEST_SIZE);
    r.arguments[r.size] = '\0';
    if (r.header.opcode == FUSE_FORGET) {
        forgotten = fields(&r, sizeof(*forgotten));
        if (forgotten) {
            forget(s, r.header.nodeid, forgotten->nlookup);
        }
        return 0;
    }
    r.file = fuse_names_find(&s->names, r.header.nodeid);
    size = answer_any(s, &r);
    header.unique = r.header.unique;
    header.error = size < 0 ? -errno : 0;
    header.len = sizeof(header) + MAX(size, 0);
    return iov_from_buf(in, n_in, 0, &header, sizeof(header)) < sizeof(header)
           ? 0 : header.len;
}

/*
 * The server
 */

bool fuse_server_open(FuseServer *s, const char *path, Error **errp)
{
    struct stat st;

    s->root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (s->root < 0 || fstat(s->root, &st) < 0) {
        error_setg_errno(errp, errno, "'%s' cannot be served", path);
        return false;
    }
    s->devices = g_array_new(false, false, sizeof(dev_t));
    number_of(s, &st);
    fuse_names_init(&s->names);
    return true;
}

void fuse_server_reset(FuseServer *s)
{
    memset(s->open, 0, sizeof(s->open));
    fuse_names_destroy(&s->names);
    fuse_names_init(&s->names);
}

void fuse_server_close(FuseServer *s)
{
    fuse_names_destroy(&s->names);
    g_array_free(s->devices, true);
    close(s->root);
}
