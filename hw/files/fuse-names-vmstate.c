/*
 * Files for a guest: migration of the names that it knows
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/cutils.h"
#include "qemu/error-report.h"
#include "migration/vmstate.h"
#include "standard-headers/linux/fuse.h"
#include "fuse-names.h"

#define MAX_NAMES (1 << 24)
/* More than any host has file systems */
#define MAX_DEVICES (1 << 16)

/* A directory has a lower number than any file in it. */
static gint compare_ids(gconstpointer a, gconstpointer b)
{
    const FuseSavedName *one = a, *other = b;

    return one->id < other->id ? -1 : one->id > other->id;
}

/* Whether a file can be found from the root */
static bool is_reachable(const FuseName *file)
{
    for (; file->directory; file = file->directory) {
        if (file->is_replaced) {
            return false;
        }
    }
    return true;
}

static void save_devices(FuseNames *names)
{
    uint32_t i;

    names->n_devices = MIN(names->devices->len, MAX_DEVICES);
    names->saved_devices = g_new(uint64_t, names->n_devices);
    for (i = 0; i < names->n_devices; i++) {
        names->saved_devices[i] = g_array_index(names->devices, dev_t, i);
    }
}

static int save_names(void *opaque)
{
    FuseNames *names = opaque;
    GHashTableIter all;
    gpointer file;
    int32_t n = 0;

    if (g_hash_table_size(names->by_id) > MAX_NAMES) {
        error_report("virtio-files: the guest knows more names than can be "
                     "migrated");
        return -E2BIG;
    }
    names->saved = g_new0(FuseSavedName, g_hash_table_size(names->by_id));
    g_hash_table_iter_init(&all, names->by_name);
    while (g_hash_table_iter_next(&all, &file, NULL)) {
        const FuseName *one = file;
        FuseSavedName *saved = &names->saved[n];

        if (!is_reachable(one)) {
            continue;
        }
        n++;
        saved->id = one->id;
        saved->directory = one->directory->id;
        saved->lookups = one->lookups;
        /* Others are not kept. */
        if (one->shows_changes) {
            saved->seen = one->seen;
        }
        pstrcpy((char *)saved->name, sizeof(saved->name), one->name);
    }
    names->n_saved = n;
    qsort(names->saved, n, sizeof(*names->saved), compare_ids);
    names->saved_root = fuse_names_find(names, FUSE_ROOT_ID)->seen;
    save_devices(names);
    return 0;
}

static int free_saved(void *opaque)
{
    FuseNames *names = opaque;

    g_clear_pointer(&names->saved, g_free);
    g_clear_pointer(&names->saved_devices, g_free);
    return 0;
}

/* Memory is allocated for all of them at once. */
static bool is_size_sane(void *opaque, int version)
{
    const FuseNames *names = opaque;

    return names->n_saved >= 0 && names->n_saved <= MAX_NAMES;
}

static bool is_number_of_devices_sane(void *opaque, int version)
{
    const FuseNames *names = opaque;

    return names->n_devices > 0 && names->n_devices <= MAX_DEVICES;
}

/* The attributes are in the stream only if the guest keeps them. */
static int begin_load(void *opaque)
{
    FuseNames *names = opaque;

    names->n_devices = 0;
    return 0;
}

/* Whether a file has the number that the guest knows, by its device */
static bool has_same_number(FuseNames *names, const FuseSeen *seen)
{
    uint64_t saved;

    for (saved = 0; saved < names->n_devices; saved++) {
        if (names->saved_devices[saved] == seen->device) {
            break;
        }
    }
    return saved < names->devices->len
           && g_array_index(names->devices, dev_t, saved) == seen->device;
}

static void add_seen(FuseNames *names)
{
    uint64_t device = names->saved_root.device;
    uint32_t i;

    names->is_renumbered = names->saved_root.inode
                           && !has_same_number(names, &names->saved_root);
    fuse_names_find(names, FUSE_ROOT_ID)->seen = names->saved_root;
    for (i = 0; i < (uint32_t)names->n_saved; i++) {
        FuseName *file = fuse_names_find(names, names->saved[i].id);

        file->seen = names->saved[i].seen;
        file->shows_changes = file->seen.inode;
        if (file->seen.inode && file->seen.device != device) {
            device = file->seen.device;
            names->is_renumbered |= !has_same_number(names, &file->seen);
        }
    }
}

static int add_saved(FuseNames *names)
{
    uint64_t last = names->last_id;
    int32_t i;

    fuse_names_reset(names);
    for (i = 0; i < names->n_saved; i++) {
        FuseSavedName *saved = &names->saved[i];
        FuseName *directory = fuse_names_find(names, saved->directory);
        const char *name = (const char *)saved->name;

        if (!directory || saved->id <= names->last_id || saved->id > last
            || saved->lookups > INT64_MAX
            || !fuse_name_is_valid(name, sizeof(saved->name))
            || fuse_names_find_name(names, directory, name)) {
            return -EINVAL;
        }
        names->last_id = saved->id;
        fuse_names_add(names, saved->id, directory, name)->lookups =
            saved->lookups;
    }
    names->last_id = MAX(names->last_id, last);
    return 0;
}

static int load_names(void *opaque, int version)
{
    FuseNames *names = opaque;
    /* Numbers go on from the last. */
    int result = names->last_id > INT64_MAX ? -EINVAL : add_saved(names);

    if (!result && names->n_devices) {
        add_seen(names);
    }
    free_saved(names);
    return result;
}

/* The names of subsections do not begin with this one. */
static const VMStateDescription vmstate_saved_name = {
    .name = "fuse-entry",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT64(id, FuseSavedName),
        VMSTATE_UINT64(directory, FuseSavedName),
        VMSTATE_UINT64(lookups, FuseSavedName),
        VMSTATE_BUFFER(name, FuseSavedName),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_seen = {
    .name = "fuse-seen",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT64(device, FuseSeen),
        VMSTATE_UINT64(inode, FuseSeen),
        VMSTATE_UINT64(birth, FuseSeen),
        VMSTATE_UINT64(modified, FuseSeen),
        VMSTATE_UINT64(changed, FuseSeen),
        VMSTATE_UINT64(size, FuseSeen),
        VMSTATE_END_OF_LIST()
    },
};

static const VMStateDescription vmstate_saved_seen = {
    .name = "fuse-name-seen",
    .version_id = 1,
    .minimum_version_id = 1,
    .fields = (const VMStateField[]) {
        VMSTATE_STRUCT(seen, FuseSavedName, 1, vmstate_seen, FuseSeen),
        VMSTATE_END_OF_LIST()
    },
};

static bool is_kept(void *opaque)
{
    const FuseNames *names = opaque;

    return names->cache;
}

static const VMStateDescription vmstate_kept = {
    .name = "fuse-names/kept",
    .version_id = 1,
    .minimum_version_id = 1,
    .needed = is_kept,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT32(n_devices, FuseNames),
        VMSTATE_VALIDATE("so many file systems are possible",
                         is_number_of_devices_sane),
        VMSTATE_VARRAY_UINT32_ALLOC(saved_devices, FuseNames, n_devices, 0,
                                    vmstate_info_uint64, uint64_t),
        VMSTATE_STRUCT(saved_root, FuseNames, 1, vmstate_seen, FuseSeen),
        VMSTATE_STRUCT_VARRAY_POINTER_INT32(saved, FuseNames, n_saved,
                                            vmstate_saved_seen, FuseSavedName),
        VMSTATE_END_OF_LIST()
    },
};

const VMStateDescription vmstate_fuse_names = {
    .name = "fuse-names",
    .version_id = 1,
    .minimum_version_id = 1,
    .pre_save = save_names,
    .post_save = free_saved,
    .pre_load = begin_load,
    .post_load = load_names,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT64(last_id, FuseNames),
        VMSTATE_INT32(n_saved, FuseNames),
        VMSTATE_VALIDATE("so many names are possible", is_size_sane),
        VMSTATE_STRUCT_VARRAY_ALLOC(saved, FuseNames, n_saved, 0,
                                    vmstate_saved_name, FuseSavedName),
        VMSTATE_END_OF_LIST()
    },
    .subsections = (const VMStateDescription * const []) {
        &vmstate_kept,
        NULL
    },
};
