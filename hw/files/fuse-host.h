/*
 * Files for a guest: the host's files, by their names
 *
 * The guest has been told of a file once.  Each time that it asks for more, the
 * host may have put another one there.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_FILES_FUSE_HOST_H
#define HW_FILES_FUSE_HOST_H

#include <sys/stat.h>
#include "fuse-names.h"

/**
 * FUSE_OPEN_PATH_SIZE - the size of a name of a file that is open as a path
 */
#define FUSE_OPEN_PATH_SIZE 32

/**
 * fuse_host_look - look at a file in a directory
 * @directory: the directory, a descriptor
 * @name: the file; with an empty name, it is @directory itself
 * @st: its attributes
 *
 * Returns: false with errno set.
 */
bool fuse_host_look(int directory, const char *name, struct statx *st);

/**
 * fuse_host_device - a file's file system
 */
dev_t fuse_host_device(const struct statx *st);

/**
 * fuse_host_seen - the part of a file's attributes that is kept
 */
FuseSeen fuse_host_seen(const struct statx *st);

/**
 * fuse_host_may_change_unseen - whether a file was changed so lately that its
 * times would not show another change
 */
bool fuse_host_may_change_unseen(const struct statx *st);

/**
 * fuse_host_is_same - whether that is the file which the guest was told of
 *
 * A file system that has been mounted there since, as by an automounter, is
 * taken for it.
 */
bool fuse_host_is_same(const FuseName *file, const struct statx *st);

/**
 * fuse_host_open_directory_of - open the directory of a file
 * @root: the directory that is served
 * @file: the file; the root is its own directory
 *
 * One of the directories that lead there may have become a symbolic link since
 * the guest has looked it up: it is not followed.
 *
 * Returns: a descriptor, as a path; -1 with errno set.
 */
int fuse_host_open_directory_of(int root, const FuseName *file);

/**
 * fuse_host_open_path - open any file as a path
 * @root: the directory that is served
 * @file: the file
 * @flags: O_DIRECTORY, so that automounters notice; or 0
 * @st: its attributes
 *
 * It neither waits nor has an effect.
 *
 * Returns: a descriptor; -1 with errno set, which is ESTALE if another file has
 * the name by now: the guest is not to mix the two.
 */
int fuse_host_open_path(int root, const FuseName *file, int flags,
                        struct statx *st);

/**
 * fuse_host_name_open - write a name of a file that is open as a path
 * @name: where it goes, FUSE_OPEN_PATH_SIZE bytes
 * @fd: the file
 */
void fuse_host_name_open(char *name, int fd);

/**
 * fuse_host_open_for_reading - open a regular file
 * @root: the directory that is served
 * @file: the file
 *
 * If another program has a lease on it, that would wait until it is given up,
 * which is asked for: the error is EBUSY.
 *
 * Returns: a descriptor; -1 with errno set.
 */
int fuse_host_open_for_reading(int root, const FuseName *file);

#endif /* HW_FILES_FUSE_HOST_H */
