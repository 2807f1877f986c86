/*
 * Files for a guest: the host's file systems
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include <sys/sysmacros.h>
#include "fuse-mounts.h"

/* As in section 3.5 of Linux's Documentation/filesystems/proc.rst */
#define MOUNTS "/proc/self/mountinfo"

/* A mount's fields before the first that are optional */
enum { MOUNT, PARENT, DEVICE, ROOT, PLACE, FIELDS = 6 };

/* Those after the optional ones and a dash */
enum { TYPE, SOURCE, OPTIONS };

/* They have their files on a disk of this host or in its memory. */
static const char *const local[] = {
    "bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "tmpfs", "xfs", "zfs",
    NULL
};

/* Call a function for each mount, with its fields and the last of them. */
static void for_each_mount(void (*use)(char **fields, char **last,
                                       void *opaque), void *opaque)
{
    g_auto(GStrv) lines = NULL;
    g_autofree char *text = NULL;
    char **line;

    if (!g_file_get_contents(MOUNTS, &text, NULL, NULL)) {
        return;
    }
    lines = g_strsplit(text, "\n", -1);
    for (line = lines; *line; line++) {
        g_auto(GStrv) fields = g_strsplit(*line, " ", -1);
        char **dash = fields;

        while (*dash && !g_str_equal(*dash, "-")) {
            dash++;
        }
        if (dash - fields >= FIELDS && g_strv_length(dash) > 1 + OPTIONS) {
            use(fields, dash + 1, opaque);
        }
    }
}

/*
 * An overlay may be made of anything, but a container's root is of layers on
 * its host's disk.
 */
static bool is_local(char **fields, char **last)
{
    return g_strv_contains(local, last[TYPE])
           || (g_str_equal(last[TYPE], "overlay")
               && g_str_equal(fields[PLACE], "/"));
}

/* An image may be replaced by one whose files have the same times. */
static bool is_image(char **last)
{
    return !g_str_has_prefix(last[OPTIONS], "rw")
           || g_str_has_prefix(last[SOURCE], "/dev/loop");
}

static void note_mount(char **fields, char **last, void *opaque)
{
    GHashTable *known = opaque;
    guint mount = g_ascii_strtoull(fields[MOUNT], NULL, 10);

    g_hash_table_insert(known, GUINT_TO_POINTER(mount),
                        GINT_TO_POINTER(is_local(fields, last)
                                        && !is_image(last)));
}

bool fuse_mounts_show_changes(GHashTable *known, const struct statx *st)
{
#ifdef STATX_MNT_ID
    gpointer mount = GUINT_TO_POINTER(st->stx_mnt_id);

    if (!(st->stx_mask & STATX_MNT_ID)) {
        return false;
    }
    if (!g_hash_table_contains(known, mount)) {
        g_hash_table_insert(known, mount, NULL);
        for_each_mount(note_mount, known);
    }
    return g_hash_table_lookup(known, mount);
#else
    return false;
#endif
}

static void add_device(char **fields, char **last, void *opaque)
{
    GArray *devices = opaque;
    unsigned major, minor;
    dev_t device;

    if (is_local(fields, last)
        && sscanf(fields[DEVICE], "%u:%u", &major, &minor) == 2) {
        device = makedev(major, minor);
        for (size_t i = 0; i < devices->len; i++) {
            if (g_array_index(devices, dev_t, i) == device) {
                return;
            }
        }
        g_array_append_val(devices, device);
    }
}

void fuse_mounts_list(GArray *devices)
{
    for_each_mount(add_device, devices);
}
