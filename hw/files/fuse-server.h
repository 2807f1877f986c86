/*
 * Files for a guest: a server of Linux's FUSE protocol
 *
 * It serves one directory, which cannot be written.  Files and directories are
 * opened and closed without messages (FUSE_NO_OPEN_SUPPORT), so nothing is open
 * that a migration would have to carry.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_FILES_FUSE_SERVER_H
#define HW_FILES_FUSE_SERVER_H

#include <dirent.h>
#include "fuse-kept.h"
#include "fuse-names.h"

/**
 * FUSE_OPEN_FILES - how many files a server has open, at most
 */
#define FUSE_OPEN_FILES 32

/**
 * struct FuseServer - a directory, for one guest
 * @root: the directory, a descriptor
 * @names: the files that the guest knows
 * @keeps: the guest will be saved, and keeps only files that show changes
 * @mounts: whether they do, by the host's mounts
 * @open: files that were read lately
 * @reads: how often one was read
 * @listed: a directory that the guest lists; NULL if there is no such
 * @listed_id: its number
 * @listed_to: the offset that comes next
 * @listed_next: the entry there; NULL at the end
 * @listed_error: why it cannot be read further; 0 at its end
 * @listed_device: its file system on the host
 * @asked: the guest's requests
 */
typedef struct FuseServer {
    int root;
    FuseNames names;
    bool keeps;
    GHashTable *mounts;
    FuseName *open[FUSE_OPEN_FILES];
    uint64_t reads;
    DIR *listed;
    uint64_t listed_id;
    uint64_t listed_to;
    const struct dirent *listed_next;
    int listed_error;
    dev_t listed_device;
    FuseAsked asked;
} FuseServer;

/**
 * fuse_server_open - begin to serve
 * @s: the server
 * @path: the directory
 * @errp: why it cannot be served
 *
 * Returns: false with @errp set.
 */
bool fuse_server_open(FuseServer *s, const char *path, Error **errp);

/**
 * fuse_server_close - end
 */
void fuse_server_close(FuseServer *s);

/**
 * fuse_server_reset - forget the guest
 */
void fuse_server_reset(FuseServer *s);

/**
 * fuse_server_answer - answer a request of the guest's
 * @s: the server
 * @out: the request, as the guest has written it
 * @n_out: how many parts it has
 * @in: where the answer goes
 * @n_in: how many parts it has; 0 if no answer is wanted
 *
 * May be called from any thread with the big lock.  It waits for the host's
 * file system, as the guest's program does.
 *
 * Returns: how long the answer is; -1 if the request has no header.
 */
ssize_t fuse_server_answer(FuseServer *s, const struct iovec *out,
                           unsigned n_out, const struct iovec *in,
                           unsigned n_in);

#endif /* HW_FILES_FUSE_SERVER_H */
