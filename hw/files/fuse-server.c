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
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include "fuse-host.h"
#include "fuse-mounts.h"
#include "fuse-server.h"

/* More than any request without data has */
#define REQUEST_SIZE (4 * KiB)
/* Linux asks for less. */
#define ANSWER_SIZE (256 * KiB)
/*
 * The flags that are set if the guest's kernel offers them.  Without
 * FUSE_READDIRPLUS_AUTO Linux need not look up any file of a list: with it, it
 * would ask for those after the first 4 KB one by one.
 */
#define FUSE_FLAGS \
    (FUSE_ASYNC_READ | FUSE_DO_READDIRPLUS | FUSE_PARALLEL_DIROPS \
     | FUSE_NO_OPEN_SUPPORT | FUSE_NO_OPENDIR_SUPPORT | FUSE_CACHE_SYMLINKS \
     | FUSE_MAX_PAGES)

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

static int file_for_reading(FuseServer *s, FuseName *file)
{
    FuseName **place = s->open;
    int i, fd;

    if (!file->slot) {
        for (i = 0; i < FUSE_OPEN_FILES && *place; i++) {
            if (!s->open[i] || s->open[i]->used < (*place)->used) {
                place = &s->open[i];
            }
        }
        fd = fuse_host_open_for_reading(s->root, file);
        if (fd < 0) {
            return -1;
        }
        if (*place) {
            fuse_name_close(*place);
        }
        file->fd = fd;
        file->slot = place;
        *place = file;
    }
    file->used = ++s->reads;
    return file->fd;
}

/*
 * Attributes
 */

/* A device's number, as Linux passes it on */
static uint32_t device_number(uint32_t major, uint32_t minor)
{
    return (minor & 0xff) | major << 8 | (minor & ~0xffu) << 12;
}

/* Tell the guest what a file is like. */
static struct fuse_attr attributes(FuseServer *s, FuseName *file,
                                   const struct statx *st)
{
    const FuseName *above = file->directory;

    file->seen = fuse_host_seen(st);
    /* To look at it later, its directories have to be there. */
    file->shows_changes = fuse_mounts_show_changes(s->mounts, st)
                          && (!above || !above->directory
                              || above->shows_changes);
    if (fuse_host_may_change_unseen(st)) {
        file->seen.changed = 0;
    }
    return (struct fuse_attr) {
        .ino = fuse_names_number(&s->names, file->seen.device,
                                 file->seen.inode),
        .size = st->stx_size,
        .blocks = st->stx_blocks,
        .atime = st->stx_atime.tv_sec,
        .mtime = st->stx_mtime.tv_sec,
        .ctime = st->stx_ctime.tv_sec,
        .atimensec = st->stx_atime.tv_nsec,
        .mtimensec = st->stx_mtime.tv_nsec,
        .ctimensec = st->stx_ctime.tv_nsec,
        .mode = st->stx_mode,
        .nlink = st->stx_nlink,
        .uid = st->stx_uid,
        .gid = st->stx_gid,
        .rdev = device_number(st->stx_rdev_major, st->stx_rdev_minor),
        .blksize = st->stx_blksize,
    };
}

/* Linux keeps contents without asking. */
static bool may_be_kept(const FuseServer *s, const FuseName *file)
{
    return file->shows_changes || !s->keeps;
}

/* For how many seconds the guest may remember an answer */
static uint64_t validity(const FuseServer *s, const FuseName *file)
{
    return s->names.cache && may_be_kept(s, file) ? 1u << 30 : 0;
}

/*
 * Tell the guest of a file.  Another file that has the name now gets another
 * number: the guest has the contents of the first.
 */
static struct fuse_entry_out describe(FuseServer *s, FuseName *directory,
                                      const char *name, const struct statx *st)
{
    FuseName *old, *file = fuse_names_tell(&s->names, directory, name);
    struct fuse_attr attr;

    if (!fuse_host_is_same(file, st)) {
        old = file;
        fuse_names_replace(&s->names, old);
        /* First, so that the directory stays known */
        file = fuse_names_tell(&s->names, directory, name);
        fuse_names_forget(&s->names, old->id, 1);
    }
    attr = attributes(s, file, st);
    return (struct fuse_entry_out) {
        .nodeid = file->id,
        .entry_valid = validity(s, file),
        .attr_valid = validity(s, file),
        .attr = attr,
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
    const char *name = name_in(r, 0);
    struct fuse_entry_out entry;
    struct statx st;
    int directory;
    bool exists;

    if (!name) {
        return answer_error(strlen(r->arguments) < FUSE_NAME_SIZE
                            ? EINVAL : ENAMETOOLONG);
    }
    directory = fuse_host_open_path(s->root, r->file, O_DIRECTORY, &st);
    if (directory < 0) {
        return -1;
    }
    exists = fuse_host_look(directory, name, &st);
    close(directory);
    if (!exists) {
        return -1;
    }
    entry = describe(s, r->file, name, &st);
    fuse_asked_add(&s->asked, FUSE_LOOKUP, entry.nodeid, 0, 0);
    return answer(r, &entry, sizeof(entry));
}

static ssize_t answer_getattr(FuseServer *s, const Request *r)
{
    struct fuse_attr_out out = { };
    struct statx st;
    int file = fuse_host_open_path(s->root, r->file, 0, &st);

    if (file < 0) {
        return -1;
    }
    close(file);
    out.attr = attributes(s, r->file, &st);
    out.attr_valid = validity(s, r->file);
    return answer(r, &out, sizeof(out));
}

static ssize_t answer_readlink(FuseServer *s, const Request *r)
{
    struct statx st;
    int link = fuse_host_open_path(s->root, r->file, 0, &st);
    char target[PATH_MAX];
    ssize_t size;

    if (link < 0) {
        return -1;
    }
    size = may_be_kept(s, r->file)
           ? readlinkat(link, "", target, sizeof(target)) : answer_error(EIO);
    close(link);
    if (size < 0) {
        return -1;
    }
    fuse_asked_add(&s->asked, FUSE_READLINK, r->file->id, 0, 0);
    return answer(r, target, size);
}

/* The host's kernel writes to the guest's memory. */
static ssize_t answer_read(FuseServer *s, const Request *r)
{
    const struct fuse_read_in *asked = fields(r, sizeof(*asked));
    g_autofree struct iovec *parts = g_new(struct iovec, r->n_in);
    int fd, n;

    if (!asked) {
        return answer_error(EINVAL);
    }
    fd = may_be_kept(s, r->file) ? file_for_reading(s, r->file)
         : answer_error(EIO);
    if (fd < 0) {
        return -1;
    }
    fuse_asked_add(&s->asked, FUSE_READ, r->file->id, asked->offset,
                   asked->size);
    n = iov_copy(parts, r->n_in, r->in, r->n_in,
                 sizeof(struct fuse_out_header), asked->size);
    return preadv(fd, parts, MIN(n, IOV_MAX), asked->offset);
}

/* The size of an entry with a name of that length */
static size_t entry_size(const Request *r, size_t length)
{
    return FUSE_DIRENT_ALIGN((r->header.opcode == FUSE_READDIRPLUS
                              ? FUSE_NAME_OFFSET_DIRENTPLUS
                              : FUSE_NAME_OFFSET) + length);
}

/*
 * Whether the guest need not be told of a file once more: it keeps the file's
 * attributes and its number, until it says that it forgets them.
 */
static const FuseName *known_file(const FuseServer *s, FuseName *directory,
                                  const char *name)
{
    const FuseName *file = s->names.cache
                           ? fuse_names_find_name(&s->names, directory, name)
                           : NULL;

    return file && file->lookups && file->seen.inode ? file : NULL;
}

/* Tell of a file in a list.  Linux looks up one that has no number there. */
static struct fuse_entry_out list_file(FuseServer *s, const Request *r,
                                       const char *name)
{
    const FuseName *known = known_file(s, r->file, name);
    struct fuse_entry_out entry = { };
    struct statx st;

    if (known) {
        entry.attr.ino = fuse_names_number(&s->names, known->seen.device,
                                           known->seen.inode);
    } else if (fuse_host_look(dirfd(s->listed), name, &st)) {
        entry = describe(s, r->file, name, &st);
        fuse_asked_add(&s->asked, FUSE_LOOKUP, entry.nodeid, 0, 0);
    }
    return entry;
}

static void add_entry(FuseServer *s, const Request *r,
                      const struct dirent *entry, char *to)
{
    bool plus = r->header.opcode == FUSE_READDIRPLUS;
    size_t head = plus ? FUSE_NAME_OFFSET_DIRENTPLUS : FUSE_NAME_OFFSET;
    size_t length = strlen(entry->d_name);
    struct fuse_direntplus all = { };

    if (plus && fuse_name_is_valid(entry->d_name, length + 1)) {
        all.entry_out = list_file(s, r, entry->d_name);
    }
    all.dirent.ino = all.entry_out.attr.ino
                     ?: fuse_names_number(&s->names, s->listed_device,
                                          entry->d_ino);
    all.dirent.off = entry->d_off;
    all.dirent.namelen = length;
    all.dirent.type = entry->d_type;
    memset(to, 0, entry_size(r, length));
    memcpy(to, plus ? (void *)&all : &all.dirent, head);
    memcpy(to + head, entry->d_name, length);
}

static void read_list(FuseServer *s)
{
    errno = 0;
    s->listed_next = readdir(s->listed);
    s->listed_error = s->listed_next ? 0 : errno;
}

/*
 * Have a directory open where the guest goes on to list it.  To find that place
 * again would take the longer the further it is.
 */
static bool open_list(FuseServer *s, const FuseName *directory,
                      uint64_t offset)
{
    struct statx st;
    int fd, above;

    if (s->listed && s->listed_id == directory->id
        && s->listed_to == offset && !s->listed_error) {
        return true;
    }
    g_clear_pointer(&s->listed, closedir);
    /* By its name, for which it need not be searched. */
    above = fuse_host_open_directory_of(s->root, directory);
    if (above < 0) {
        return false;
    }
    fd = openat(above, directory->name,
                O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    close(above);
    if (fd < 0) {
        return false;
    }
    s->listed = fdopendir(fd);
    if (!s->listed) {
        close(fd);
        return false;
    }
    if (!fuse_host_look(fd, "", &st) || !fuse_host_is_same(directory, &st)) {
        g_clear_pointer(&s->listed, closedir);
        errno = ESTALE;
        return false;
    }
    if (offset) {
        seekdir(s->listed, offset);
    }
    s->listed_id = directory->id;
    s->listed_to = offset;
    s->listed_device = fuse_host_device(&st);
    read_list(s);
    return true;
}

static ssize_t answer_readdir(FuseServer *s, const Request *r)
{
    const struct fuse_read_in *asked = fields(r, sizeof(*asked));
    g_autofree char *data = NULL;
    size_t used = 0, size, room;
    const struct dirent *entry;

    if (!asked) {
        return answer_error(EINVAL);
    }
    if (!open_list(s, r->file, asked->offset)) {
        return -1;
    }
    room = MIN(asked->size, ANSWER_SIZE);
    data = g_malloc(room);
    while ((entry = s->listed_next)) {
        size = entry_size(r, strlen(entry->d_name));
        if (size > room - used) {
            break;
        }
        if (strlen(entry->d_name) < FUSE_NAME_SIZE) {
            add_entry(s, r, entry, data + used);
            used += size;
        }
        s->listed_to = entry->d_off;
        read_list(s);
    }
    /* The end of a directory that cannot be read further is no end. */
    return used || !s->listed_error ? answer(r, data, used)
           : answer_error(s->listed_error);
}

static ssize_t answer_statfs(FuseServer *s, const Request *r)
{
    struct fuse_statfs_out out = { };
    struct statx ignored;
    struct statvfs st;
    int result, file = fuse_host_open_path(s->root, r->file, 0, &ignored);

    if (file < 0) {
        return -1;
    }
    result = fstatvfs(file, &st);
    close(file);
    if (result < 0) {
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
    g_autofree char *value = NULL;
    char path[FUSE_OPEN_PATH_SIZE];
    struct statx st;
    ssize_t size;
    int file;

    if (!asked || (name && r->size <= sizeof(*asked))) {
        return answer_error(EINVAL);
    }
    file = fuse_host_open_path(s->root, r->file, 0, &st);
    if (file < 0) {
        return -1;
    }
    fuse_host_name_open(path, file);
    size = MIN(asked->size, ANSWER_SIZE);
    value = g_malloc(size);
    /* Links have their own ones, which these names lead to. */
    size = name ? getxattr(path, name, value, size)
           : listxattr(path, value, size);
    close(file);
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
    case FUSE_STATFS:
        return answer_statfs(s, r);
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
            fuse_names_forget(&s->names, r.header.nodeid,
                              forgotten->nlookup);
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
    struct statx st;

    s->root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (s->root < 0 || !fuse_host_look(s->root, "", &st)) {
        error_setg_errno(errp, errno, "'%s' cannot be served", path);
        close(s->root);
        return false;
    }
    fuse_names_init(&s->names);
    /* The root's device is the first. */
    fuse_names_number(&s->names, fuse_host_device(&st), st.stx_ino);
    fuse_mounts_list(s->names.devices);
    s->mounts = g_hash_table_new(NULL, NULL);
    fuse_asked_init(&s->asked);
    return true;
}

void fuse_server_reset(FuseServer *s)
{
    g_clear_pointer(&s->listed, closedir);
    fuse_names_reset(&s->names);
    fuse_asked_reset(&s->asked);
}

void fuse_server_close(FuseServer *s)
{
    g_clear_pointer(&s->listed, closedir);
    fuse_names_destroy(&s->names);
    fuse_asked_destroy(&s->asked);
    g_hash_table_destroy(s->mounts);
    close(s->root);
}
