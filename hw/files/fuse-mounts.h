/*
 * Files for a guest: the host's file systems
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_FILES_FUSE_MOUNTS_H
#define HW_FILES_FUSE_MOUNTS_H

#include <sys/stat.h>

/**
 * fuse_mounts_show_changes - whether each change of a file gives it a new time
 * @known: the answers so far, by the number of a mount
 * @st: the file, with the number of its mount
 *
 * That is so on the usual file systems of disks and memory, if they may be
 * written and are not known to be in an image.  Others may have the times of
 * another host, or contents that are made when they are read; or nobody may
 * answer for them.
 *
 * Returns: false also on hosts that do not tell a file's mount (before Linux
 * 5.8).
 */
bool fuse_mounts_show_changes(GHashTable *known, const struct statx *st);

/**
 * fuse_mounts_list - list devices of this host's disks and memory, in the order
 * in which they were mounted
 * @devices: an array of dev_t, to which those are added that it does not have
 */
void fuse_mounts_list(GArray *devices);

#endif /* HW_FILES_FUSE_MOUNTS_H */
