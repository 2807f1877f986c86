/*
 * vpmu-perf-keep - files of the host's in the caches of vpmu-perf's guest
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vpmu-perf-keep.h"

/* More than one request of Linux's asks for */
static char data[256 << 10];

static void look(const char *path, int flags)
{
    struct statx ignored;

    statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | flags,
          STATX_BASIC_STATS, &ignored);
}

static void read_part(const char *path, off_t offset, size_t size)
{
    struct stat st;
    int fd = -1;

    if (!lstat(path, &st) && S_ISREG(st.st_mode)) {
        fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    }
    if (fd >= 0) {
        /* No more than was asked for. */
        posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
        pread(fd, data, size < sizeof(data) ? size : sizeof(data), offset);
        close(fd);
    }
}

static void keep(const char *line)
{
    char word[8], path[PATH_MAX];
    long long offset;
    int name = 0;
    size_t size;

    if (sscanf(line, "%7s %lld %zu %*s %n", word, &offset, &size, &name) < 3 ||
        line[name] != '/') {
        return;
    }
    snprintf(path, sizeof(path), HOST_FILES "%s", line + name);
    if (!strcmp(word, "look")) {
        look(path, 0);
    } else if (!strcmp(word, "link")) {
        readlink(path, data, sizeof(data));
    } else if (!strcmp(word, "read")) {
        read_part(path, offset, size);
    } else if (!strcmp(word, "forget")) {
        keep_no_more(line + name);
    }
}

void keep_files(const char *lines)
{
    for (; *lines; lines += strlen(lines) + 1) {
        keep(lines);
    }
}

void keep_no_more(const char *path)
{
    char name[PATH_MAX];

    snprintf(name, sizeof(name), HOST_FILES "%s", path);
    /* If it has been replaced, the host refuses, and Linux looks it up. */
    look(name, AT_STATX_FORCE_SYNC);
}
