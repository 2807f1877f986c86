/*
 * Files for a guest: the host's files, by their names
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include <sys/sysmacros.h>
#ifdef HAVE_OPENAT2_H
#include <linux/openat2.h>
#include <sys/syscall.h>
#endif
#include "fuse-host.h"

#ifdef STATX_MNT_ID
#define LOOKS_AT (STATX_BASIC_STATS | STATX_BTIME | STATX_MNT_ID)
#else
#define LOOKS_AT (STATX_BASIC_STATS | STATX_BTIME)
#endif

#define DIRECTORY (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* File systems write the time of a tick, or whole seconds. */
#define LATELY_US (2 * G_USEC_PER_SEC)

bool fuse_host_look(int directory, const char *name, struct statx *st)
{
    return statx(directory, name,
                 AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
                 LOOKS_AT, st) == 0;
}

dev_t fuse_host_device(const struct statx *st)
{
    return makedev(st->stx_dev_major, st->stx_dev_minor);
}

static uint64_t nanoseconds(struct statx_timestamp time)
{
    return time.tv_sec * 1000000000ull + time.tv_nsec;
}

/*
 * A file system on a disk may give the number of a file that is removed to the
 * next one.  In others, such as overlayfs, this time can change.
 */
static uint64_t birth_of(const struct statx *st)
{
    return st->stx_dev_major ? nanoseconds(st->stx_btime) : 0;
}

FuseSeen fuse_host_seen(const struct statx *st)
{
    return (FuseSeen) {
        .device = fuse_host_device(st),
        .inode = st->stx_ino,
        .birth = birth_of(st),
        .modified = nanoseconds(st->stx_mtime),
        .changed = nanoseconds(st->stx_ctime),
        .size = st->stx_size,
    };
}

bool fuse_host_may_change_unseen(const struct statx *st)
{
    int64_t changed = nanoseconds(st->stx_ctime) / 1000;

    return g_get_real_time() - changed < LATELY_US;
}

bool fuse_host_is_same(const FuseName *file, const struct statx *st)
{
    const FuseSeen *seen = &file->seen;

    return !seen->inode
           || st->stx_attributes & (STATX_ATTR_MOUNT_ROOT
                                    | STATX_ATTR_AUTOMOUNT)
           || (seen->inode == st->stx_ino
               && seen->device == fuse_host_device(st)
               && seen->birth == birth_of(st));
}

/* By one system call, -1 if that fails: older hosts do not have it. */
static int open_directory_at_once(int root, const FuseName *directory)
{
#ifdef HAVE_OPENAT2_H
    struct open_how how = {
        .flags = DIRECTORY,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
    };
    g_autofree char *path = fuse_name_path(directory);

    if (path && path[1]) {
        return syscall(__NR_openat2, root, path + 1, &how, sizeof(how));
    }
#endif
    return -1;
}

static int open_directory(int root, const FuseName *directory)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    int above, fd = openat(root, ".", DIRECTORY);

    for (; directory->directory; directory = directory->directory) {
        g_ptr_array_add(names, directory->name);
    }
    while (fd >= 0 && names->len) {
        above = fd;
        fd = openat(above, g_ptr_array_steal_index(names, names->len - 1),
                    DIRECTORY);
        close(above);
    }
    return fd;
}

int fuse_host_open_directory_of(int root, const FuseName *file)
{
    const FuseName *directory = file->directory ?: file;
    int fd = open_directory_at_once(root, directory);

    return fd < 0 ? open_directory(root, directory) : fd;
}

int fuse_host_open_path(int root, const FuseName *file, int flags,
                        struct statx *st)
{
    int directory, fd;

    if (file->is_replaced) {
        errno = ESTALE;
        return -1;
    }
    directory = fuse_host_open_directory_of(root, file);
    if (directory < 0) {
        return -1;
    }
    fd = openat(directory, file->name,
                O_PATH | O_NOFOLLOW | O_CLOEXEC | flags);
    close(directory);
    if (fd >= 0 && !(fuse_host_look(fd, "", st)
                     && fuse_host_is_same(file, st))) {
        close(fd);
        errno = ESTALE;
        return -1;
    }
    return fd;
}

void fuse_host_name_open(char *name, int fd)
{
    snprintf(name, FUSE_OPEN_PATH_SIZE, "/proc/self/fd/%d", fd);
}

int fuse_host_open_for_reading(int root, const FuseName *file)
{
    struct statx st;
    int fd, found = fuse_host_open_path(root, file, 0, &st);
    char path[FUSE_OPEN_PATH_SIZE];

    if (found < 0) {
        return -1;
    }
    if (!S_ISREG(st.stx_mode)) {
        close(found);
        errno = EIO;
        return -1;
    }
    fuse_host_name_open(path, found);
    fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    close(found);
    if (fd < 0 && errno == EWOULDBLOCK) {
        errno = EBUSY;
    }
    return fd;
}
