/*
 * Performance monitoring unit: the chardev that a profile can be
 *
 * A device of the guest's has it as its chardev, as it could have a socket:
 * what QEMU writes, the guest reads.  Either takes a small part of the time at
 * most.  If the guest writes more, a device that can wait has it wait; what it
 * writes to others is lost.
 *
 * Threads: those that hold the big lock.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PROFILE_CHARDEV_H
#define HW_PMU_PROFILE_CHARDEV_H

/**
 * struct PmuChardevOps - what a chardev tells its owner
 * @opened: the guest has opened its device
 * @closed: the guest has closed it, or was reset
 * @said: the guest has written something; a NUL where a part of that is lost
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
 * pmu_chardev_new - be a chardev from now on
 * @id: its ID
 * @ops: what its owner is told
 * @opaque: the owner
 * @errp: why it cannot be: there is another one
 */
PmuChardev *pmu_chardev_new(const char *id, const PmuChardevOps *ops,
                            void *opaque, Error **errp);

/**
 * pmu_chardev_write - write to the guest what that can take
 * @chr: the chardev
 * @bytes: what to write
 * @size: how much
 *
 * Returns: how much of it was written.
 */
size_t pmu_chardev_write(PmuChardev *chr, const uint8_t *bytes, size_t size);

/**
 * pmu_chardev_connect - say whether there is somebody at this end
 * @chr: the chardev
 * @connected: whether; at first there is
 *
 * A device that can tell its guest does: behind what was written, who reads a
 * port of virtio-serial finds the end.
 */
void pmu_chardev_connect(PmuChardev *chr, bool connected);

/**
 * pmu_chardev_is_used - whether a device has it
 * @chr: the chardev
 */
bool pmu_chardev_is_used(const PmuChardev *chr);

/**
 * pmu_chardev_free - be it no longer
 * @chr: the chardev; no device has it
 */
void pmu_chardev_free(PmuChardev *chr);

#endif /* HW_PMU_PROFILE_CHARDEV_H */
