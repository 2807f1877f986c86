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
 * That is so on file systems of this host's disks and memory that may be
 * written.  Others may be images, have the times of another host, or contents
 * that are made when they are read; or nobody may answer for them.
 */
bool fuse_mounts_show_changes(GHashTable *known, const struct statx *st);

/**
 * fuse_mounts_list - list all devices, in the order in which they were mounted
 * @devices: an array of dev_t, to which those are added that it does not have
 */
void fuse_mounts_list(GArray *devices);

#endif /* HW_FILES_FUSE_MOUNTS_H */
