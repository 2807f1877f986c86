/*
 * Performance monitoring unit: the chardev that a profile can be
 *
 * A device of the guest has this chardev in the place of, say, a socket: the
 * guest reads the bytes that QEMU writes.  Reading and writing may each take a
 * small part of the time only.  If the guest writes more, some devices make it
 * wait; what it writes to other devices is lost.
 *
 * Threads: any that holds the big lock.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PROFILE_CHARDEV_H
#define HW_PMU_PROFILE_CHARDEV_H

/**
 * struct PmuChardevOps - calls from a chardev to its owner
 * @opened: the guest has opened its device
 * @closed: the guest has closed it, or was reset
 * @said: the guest has written bytes; a NUL stands for those that are lost
 * @ready: the guest can take more, after pmu_chardev_write() has left some
 */
typedef struct PmuChardevOps {
    void (*opened)(void *opaque);
    void (*closed)(void *opaque);
    void (*said)(void *opaque, const uint8_t *bytes, size_t size);
    void (*ready)(void *opaque);
} PmuChardevOps;

typedef struct PmuChardev PmuChardev;

/**
 * pmu_chardev_new - create a chardev
 * @id: its ID
 * @ops: calls to its owner
 * @opaque: the owner
 * @errp: set if another chardev has this ID
 */
PmuChardev *pmu_chardev_new(const char *id, const PmuChardevOps *ops,
                            void *opaque, Error **errp);

/**
 * pmu_chardev_write - write to the guest as much as it can take
 * @chr: the chardev
 * @bytes: what to write
 * @size: how much
 *
 * Returns: how much of it was written.
 */
size_t pmu_chardev_write(PmuChardev *chr, const uint8_t *bytes, size_t size);

/**
 * pmu_chardev_connect - connect QEMU's end of a chardev, or disconnect it
 * @chr: the chardev
 * @connected: which of the two; at first it is connected
 *
 * Some devices report this to the guest: after the bytes that were written, a
 * reader of a port of virtio-serial finds the end of the file.
 */
void pmu_chardev_connect(PmuChardev *chr, bool connected);

/**
 * pmu_chardev_is_used - whether a device uses a chardev
 * @chr: the chardev
 */
bool pmu_chardev_is_used(const PmuChardev *chr);

/**
 * pmu_chardev_free - delete a chardev
 * @chr: the chardev; no device uses it
 */
void pmu_chardev_free(PmuChardev *chr);

#endif /* HW_PMU_PROFILE_CHARDEV_H */
