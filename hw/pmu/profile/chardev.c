/*
 * Performance monitoring unit: the chardev that a profile can be
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/timer.h"
#include "chardev/char.h"
#include "chardev/char-fe.h"
#include "hw/pmu/compat.h"
#include "chardev.h"

#define TYPE_PMU_CHARDEV "chardev-pmu-profile"
OBJECT_DECLARE_SIMPLE_TYPE(PmuChardev, PMU_CHARDEV)

/*
 * The guest writes as fast as it likes, and the main loop, or a vCPU that holds
 * the big lock, works on that: so long of each turn, and no longer.
 */
#define TURN_NS  (100 * SCALE_MS)
#define SHARE_NS (4 * SCALE_MS)

/* What a device does around a call */
#define CALL_NS 300

/* So many bytes are passed on before we look at the time again. */
#define PART 1024

/**
 * struct PmuChardev - a chardev whose other end is in QEMU
 * @ops, @opaque: the owner; NULL before it is known
 * @turn_end_ns: until then
 * @spent_ns: what the guest writes may take but SHARE_NS, and has taken this
 * @lacks: the guest has written more than was taken, and the device has not
 *         asked when to come again: the rest is lost
 */
struct PmuChardev {
    Chardev parent;
    const PmuChardevOps *ops;
    void *opaque;
    int64_t turn_end_ns;
    int64_t spent_ns;
    bool lacks;
};

static void begin_turn(PmuChardev *chr, int64_t now_ns)
{
    if (now_ns >= chr->turn_end_ns) {
        chr->turn_end_ns = now_ns + TURN_NS;
        chr->spent_ns = 0;
    }
    chr->spent_ns += CALL_NS;
}

/* Two halves of lines are no line: with a NUL between they are nonsense. */
static void say_what_lacks(PmuChardev *chr)
{
    if (chr->lacks) {
        chr->lacks = false;
        chr->ops->said(chr->opaque, (const uint8_t *)"", 1);
    }
}

static int take(Chardev *base, const uint8_t *bytes, int size)
{
    PmuChardev *chr = PMU_CHARDEV(base);
    int64_t last_ns = get_clock();
    int done = 0;

    begin_turn(chr, last_ns);
    while (done < size && chr->spent_ns < SHARE_NS) {
        int part = MIN(size - done, PART);
        int64_t now_ns;

        say_what_lacks(chr);
        chr->ops->said(chr->opaque, bytes + done, part);
        done += part;
        now_ns = get_clock();
        chr->spent_ns += now_ns - last_ns;
        last_ns = now_ns;
    }
    chr->lacks |= done < size;
    return done;
}

static gboolean turn_begins(GSource *source, GSourceFunc func, void *opaque)
{
    return ((FEWatchFunc)func)(NULL, G_IO_OUT, opaque);
}

static GSourceFuncs next_turn = { .dispatch = turn_begins };

/* Who asks has the rest, and comes again. */
static GSource *await_turn(Chardev *base, GIOCondition condition)
{
    PmuChardev *chr = PMU_CHARDEV(base);
    int64_t wait_ns = MAX(chr->turn_end_ns - get_clock(), 0);
    GSource *source = g_source_new(&next_turn, sizeof(*source));

    g_source_set_ready_time(source, g_get_monotonic_time()
                                    + DIV_ROUND_UP(wait_ns, SCALE_US));
    chr->lacks = false;
    return source;
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
    cc->chr_add_watch = await_turn;
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
