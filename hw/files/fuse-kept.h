/*
 * Files for a guest: requests and changes
 *
 * A guest may be saved with files that it has read.  So that it can be prepared
 * for a program, requests are noted of a guest that ran the program; another
 * one makes the same, and is saved.  When it goes on, the host's files may have
 * changed.
 *
 * Here, a path begins at the root, and has as "%xx" each byte that a URI could
 * not have.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_FILES_FUSE_KEPT_H
#define HW_FILES_FUSE_KEPT_H

#include "fuse-names.h"

/**
 * struct FuseAsked - a guest's requests
 * @requests: each is a struct of its own, the oldest first; later ones than
 *            65,536 are not there
 */
typedef struct FuseAsked {
    GArray *requests;
} FuseAsked;

/**
 * fuse_asked_init - begin with none
 */
void fuse_asked_init(FuseAsked *asked);

/**
 * fuse_asked_destroy - end
 */
void fuse_asked_destroy(FuseAsked *asked);

/**
 * fuse_asked_reset - forget all
 */
void fuse_asked_reset(FuseAsked *asked);

/**
 * fuse_asked_add - note a request
 * @opcode: FUSE_READLINK, FUSE_READ, or FUSE_LOOKUP, also if the guest learns
 *          of a file in a list; others are not noted
 * @id: the file's number
 * @offset: where it is read, in bytes
 * @size: how many bytes are wanted
 */
void fuse_asked_add(FuseAsked *asked, uint32_t opcode, uint64_t id,
                    uint64_t offset, uint32_t size);

/**
 * fuse_asked_describe - write requests down
 * @names: the files
 *
 * Returns: strings, "look", "link" or "read", offset, size, the time of the
 * file's last change and its path, with spaces between them.  Files are left
 * out that the guest has forgotten, or that would not show a change.
 */
GPtrArray *fuse_asked_describe(const FuseAsked *asked, FuseNames *names);

/**
 * fuse_kept_check - look for changes, after a guest has been loaded
 * @names: the files
 * @root: the directory that is served
 *
 * A file that is another one by now, or that has changed, loses its number: for
 * that, the guest gets ESTALE, and looks the file up once more.  A directory
 * keeps its number as long as it is the same.
 *
 * Returns: strings, "replaced" or "changed", and a path after a space.  The
 * guest is to ask for each of these.  The root is replaced also if inodes have
 * other numbers by now.
 */
GPtrArray *fuse_kept_check(FuseNames *names, int root);

#endif /* HW_FILES_FUSE_KEPT_H */
