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
 * The guest may write and read without pause, and each time the main loop, or a
 * vCPU that holds the big lock, has work to do: SHARE_NS of each turn at most.
 */
#define TURN_NS  (100 * SCALE_MS)
#define SHARE_NS (4 * SCALE_MS)

/* The time that a device spends around a call */
#define CALL_NS 300

/* So many bytes are passed on before the time is read again. */
#define PART 1024

/**
 * struct Turn - a period of TURN_NS, SHARE_NS of which are for the guest
 * @end_ns: when it ends
 * @spent_ns: how much of SHARE_NS has been spent
 * @last_ns: when the time was read last
 */
typedef struct Turn {
    int64_t end_ns;
    int64_t spent_ns;
    int64_t last_ns;
} Turn;

/**
 * struct PmuChardev - a chardev whose other end is in QEMU
 * @ops, @opaque: the owner; NULL before it is known
 * @taking: the turn of the guest's writing
 * @lacks: the guest has written more than was taken; the rest is lost, unless
 *         the device asks when to come again
 * @giving: the turn of the guest's reading
 * @room: calls the owner when the guest can take more; NULL if all was written
 */
struct PmuChardev {
    Chardev parent;
    const PmuChardevOps *ops;
    void *opaque;
    Turn taking;
    bool lacks;
    Turn giving;
    GSource *room;
};

static bool has_time(const Turn *turn)
{
    return turn->spent_ns < SHARE_NS;
}

static void begin_turn(Turn *turn)
{
    turn->last_ns = get_clock();
    if (turn->last_ns >= turn->end_ns) {
        turn->end_ns = turn->last_ns + TURN_NS;
        turn->spent_ns = 0;
    }
    turn->spent_ns += CALL_NS;
}

static void spend(Turn *turn)
{
    int64_t now_ns = get_clock();

    turn->spent_ns += now_ns - turn->last_ns;
    turn->last_ns = now_ns;
}

/* A NUL between halves of two lines keeps them from being read as one line. */
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
    int done = 0;

    begin_turn(&chr->taking);
    while (done < size && has_time(&chr->taking)) {
        int part = MIN(size - done, PART);

        say_what_lacks(chr);
        chr->ops->said(chr->opaque, bytes + done, part);
        done += part;
        spend(&chr->taking);
    }
    chr->lacks |= done < size;
    return done;
}

static gboolean turn_begins(GSource *source, GSourceFunc func, void *opaque)
{
    return ((FEWatchFunc)func)(NULL, G_IO_OUT, opaque);
}

static GSourceFuncs next_turn = { .dispatch = turn_begins };

/* A device that calls this keeps the rest, and writes it later. */
static GSource *await_turn(Chardev *base, GIOCondition condition)
{
    PmuChardev *chr = PMU_CHARDEV(base);
    int64_t wait_ns = MAX(chr->taking.end_ns - get_clock(), 0);
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
    /* The user may remove the chardev while no device uses it. */
    object_ref(chr);
    return chr;
}

/*
 * Some devices do not report when they can take more.  So each iteration of the
 * main loop asks the device, as it does for all chardevs.
 */
typedef struct Room {
    GSource source;
    PmuChardev *chr;
} Room;

static gboolean has_room(GSource *source)
{
    PmuChardev *chr = container_of(source, Room, source)->chr;

    return (has_time(&chr->giving) || get_clock() >= chr->giving.end_ns)
           && qemu_chr_be_can_write(&chr->parent) > 0;
}

static gboolean prepare_room(GSource *source, gint *timeout)
{
    *timeout = -1;
    return has_room(source);
}

static gboolean use_room(GSource *source, GSourceFunc unused, void *opaque)
{
    frontend_ready(CHARDEV(container_of(source, Room, source)->chr));
    return G_SOURCE_CONTINUE;
}

static GSourceFuncs room_funcs = {
    .prepare = prepare_room,
    .check = has_room,
    .dispatch = use_room,
};

static void await_no_room(PmuChardev *chr)
{
    if (chr->room) {
        g_source_destroy(chr->room);
        g_clear_pointer(&chr->room, g_source_unref);
    }
}

static void await_room(PmuChardev *chr)
{
    if (!chr->room) {
        chr->room = g_source_new(&room_funcs, sizeof(Room));
        container_of(chr->room, Room, source)->chr = chr;
        g_source_attach(chr->room, NULL);
    }
}

size_t pmu_chardev_write(PmuChardev *chr, const uint8_t *bytes, size_t size)
{
    size_t done = 0;

    begin_turn(&chr->giving);
    while (done < size && has_time(&chr->giving)) {
        int room = qemu_chr_be_can_write(&chr->parent);
        int part = MIN(room, size - done);

        if (part <= 0) {
            break;
        }
        qemu_chr_be_write(&chr->parent, bytes + done, part);
        done += part;
        spend(&chr->giving);
    }
    (done < size ? await_room : await_no_room)(chr);
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

    await_no_room(chr);
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
