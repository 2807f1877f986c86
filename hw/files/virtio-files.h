/*
 * virtio-files: a directory of the host's, which a guest may read
 *
 * A virtio-fs device (Virtual I/O Device 1.2, section 5.11) with its server.
 * Without an ioeventfd, the thread of a CPU fetches what its program waits for.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_FILES_VIRTIO_FILES_H
#define HW_FILES_VIRTIO_FILES_H

#include "hw/virtio/virtio.h"
#include "qom/object.h"
#include "fuse-server.h"

#define TYPE_VIRTIO_FILES "virtio-files-device"
OBJECT_DECLARE_SIMPLE_TYPE(VirtIOFiles, VIRTIO_FILES)

/**
 * struct VirtIOFiles - a device
 * @path: the directory
 * @tag: how the guest calls it when it mounts it
 * @cache: the guest may remember all answers; if not, it asks again each time
 * @keeps: it will be saved: it may remember only files that show changes
 * @changes: files that have changed while the guest was saved; NULL if it was
 *           not
 */
struct VirtIOFiles {
    VirtIODevice parent_obj;
    char *path;
    char *tag;
    bool cache;
    bool keeps;
    GPtrArray *changes;
    FuseServer server;
};

#endif /* HW_FILES_VIRTIO_FILES_H */
