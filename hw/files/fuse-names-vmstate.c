/*
 * Files for a guest: migration of the names that it knows
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/cutils.h"
#include "qemu/error-report.h"
#include "migration/vmstate.h"
#include "fuse-names.h"

#define MAX_NAMES (1 << 24)

/* A directory has a lower number than any file in it. */
static gint compare_ids(gconstpointer a, gconstpointer b)
{
    const FuseSavedName *one = a, *other = b;

    return one->id < other->id ? -1 : one->id > other->id;
}

/* Whether a file can be found from the root */
static bool is_reachable(const FuseNames *names, const FuseName *file)
{
    for (; file->directory; file = file->directory) {
        if (!fuse_names_has(names, file)) {
            return false;
        }
    }
    return true;
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

        if (!is_reachable(names, one)) {
            continue;
        }
        n++;
        saved->id = one->id;
        saved->directory = one->directory->id;
        saved->lookups = one->lookups;
        pstrcpy((char *)saved->name, sizeof(saved->name), one->name);
    }
    names->n_saved = n;
    qsort(names->saved, n, sizeof(*names->saved), compare_ids);
    return 0;
}

static int free_saved(void *opaque)
{
    FuseNames *names = opaque;

    g_clear_pointer(&names->saved, g_free);
    return 0;
}

/* Memory is allocated for all of them at once. */
static bool is_size_sane(void *opaque, int version)
{
    const FuseNames *names = opaque;

    return names->n_saved >= 0 && names->n_saved <= MAX_NAMES;
}

static int add_saved(FuseNames *names)
{
    uint64_t last = names->last_id;
    int32_t i;

    fuse_names_destroy(names);
    fuse_names_init(names);
    for (i = 0; i < names->n_saved; i++) {
        FuseSavedName *saved = &names->saved[i];
        FuseName *directory = fuse_names_find(names, saved->directory);
        const char *name = (const char *)saved->name;

        if (!directory || saved->id <= names->last_id || saved->id > last
            || saved->lookups > INT64_MAX
            || !fuse_name_is_valid(name, sizeof(saved->name))) {
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

    free_saved(names);
    return result;
}

static const VMStateDescription vmstate_saved_name = {
    .name = "fuse-name",
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

const VMStateDescription vmstate_fuse_names = {
    .name = "fuse-names",
    .version_id = 1,
    .minimum_version_id = 1,
    .pre_save = save_names,
    .post_save = free_saved,
    .post_load = load_names,
    .fields = (const VMStateField[]) {
        VMSTATE_UINT64(last_id, FuseNames),
        VMSTATE_INT32(n_saved, FuseNames),
        VMSTATE_VALIDATE("so many names are possible", is_size_sane),
        VMSTATE_STRUCT_VARRAY_ALLOC(saved, FuseNames, n_saved, 0,
                                    vmstate_saved_name, FuseSavedName),
        VMSTATE_END_OF_LIST()
    },
};
