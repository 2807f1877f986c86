/*
 * Performance monitoring unit: the chardev that a profile can be
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "chardev/char.h"
#include "hw/pmu/compat.h"
#include "chardev.h"

#define TYPE_PMU_CHARDEV "chardev-pmu-profile"
OBJECT_DECLARE_SIMPLE_TYPE(PmuChardev, PMU_CHARDEV)

/**
 * struct PmuChardev - a chardev whose other end is in QEMU
 * @ops, @opaque: the owner; NULL before it is known
 */
struct PmuChardev {
    Chardev parent;
    const PmuChardevOps *ops;
    void *opaque;
};

static int take(Chardev *base, const uint8_t *bytes, int size)
{
    PmuChardev *chr = PMU_CHARDEV(base);

    chr->ops->said(chr->opaque, bytes, size);
    return size;
}

static void frontend_changed(Chardev *base, int open)
{
    PmuChardev *chr = PMU_CHARDEV(base);

    (open ? chr->ops->opened : chr->ops->closed)(chr->opaque);
}

static void frontend_ready(Chardev *base)
{
    PmuChardev *chr = PMU_CHARDEV(base);

    chr->ops->ready(chr->opaque);
}

PmuChardev *pmu_chardev_new(const char *id, const PmuChardevOps *ops,
                            void *opaque, Error **errp)
{
    Chardev *base = qemu_chardev_new(id, TYPE_PMU_CHARDEV, NULL, NULL,
                                     errp);
    PmuChardev *chr;

    if (!base) {
        return NULL;
    }
    chr = PMU_CHARDEV(base);
    chr->ops = ops;
    chr->opaque = opaque;
    /* The user may remove it, if no device has it. */
    object_ref(chr);
    return chr;
}

size_t pmu_chardev_write(PmuChardev *chr, const uint8_t *bytes, size_t size)
{
    size_t done = 0;

    while (done < size) {
        int room = qemu_chr_be_can_write(&chr->parent);
        int part = MIN(room, size - done);

        if (part <= 0) {
            break;
        }
        qemu_chr_be_write(&chr->parent, bytes + done, part);
        done += part;
    }
    return done;
}

void pmu_chardev_connect(PmuChardev *chr, bool connected)
{
    if (chr->parent.be_open != connected) {
        qemu_chr_be_event(&chr->parent,
                          connected ? CHR_EVENT_OPENED : CHR_EVENT_CLOSED);
    }
}

bool pmu_chardev_is_used(const PmuChardev *chr)
{
    return chardev_frontend(&chr->parent);
}

void pmu_chardev_free(PmuChardev *chr)
{
    Object *obj = OBJECT(chr);

    if (obj->parent) {
        object_unparent(obj);
    }
    object_unref(obj);
}

static void init_class(ObjectClass *oc, ClassData *data)
{
    ChardevClass *cc = CHARDEV_CLASS(oc);

    cc->internal = true;
    cc->chr_write = take;
    cc->chr_set_fe_open = frontend_changed;
    cc->chr_accept_input = frontend_ready;
}

static const TypeInfo chardev_type = {
    .name = TYPE_PMU_CHARDEV,
    .parent = TYPE_CHARDEV,
    .instance_size = sizeof(PmuChardev),
    .class_init = init_class,
};

static void register_chardev_type(void)
{
    type_register_static(&chardev_type);
}

type_init(register_chardev_type)
