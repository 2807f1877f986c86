/*
 * vpmu-perf-keep - files of the host's in the caches of vpmu-perf's guest
 *
 * A guest that is saved with files in Linux's caches need not fetch them when it
 * goes on.  The files are found below HOST_FILES.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef VPMU_PERF_KEEP_H
#define VPMU_PERF_KEEP_H

/* The host's files, without other file systems mounted over them */
#define HOST_FILES "/plain"

/**
 * keep_files - have Linux fetch files, as a program has
 * @lines: each has a word, an offset, a size, a time, a path, and a NUL: "look"
 *         at the file, read the "link", "read" so many bytes from that offset,
 *         or "forget" the file; after the last is another NUL
 *
 * Files that are not there are left out.  Lists of directories are not kept: of
 * one that Linux has, a program gets more at once than of one that it fetches,
 * and executes other instructions.
 */
void keep_files(const char *lines);

/**
 * keep_no_more - have Linux fetch a file anew
 * @path: a file that the host has changed, or replaced
 */
void keep_no_more(const char *path);

#endif /* VPMU_PERF_KEEP_H */
