/*
 * Files for a guest: names of files that it knows by number
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "standard-headers/linux/fuse.h"
#include "fuse-names.h"

static guint hash_name(gconstpointer key)
{
    const FuseName *file = key;

    return g_str_hash(file->name) ^ g_direct_hash(file->directory);
}

static gboolean is_same_name(gconstpointer a, gconstpointer b)
{
    const FuseName *one = a, *other = b;

    return one->directory == other->directory
           && g_str_equal(one->name, other->name);
}

void fuse_name_close(FuseName *file)
{
    if (file->slot) {
        close(file->fd);
        *file->slot = NULL;
        file->slot = NULL;
    }
}

static void free_name(gpointer data)
{
    FuseName *file = data;

    fuse_name_close(file);
    g_free(file->name);
    g_free(file);
}

FuseName *fuse_names_add(FuseNames *names, uint64_t id, FuseName *directory,
                         const char *name)
{
    FuseName *file = g_new0(FuseName, 1);

    file->id = id;
    file->directory = directory;
    file->name = g_strdup(name);
    g_hash_table_insert(names->by_id, &file->id, file);
    if (directory) {
        directory->entries++;
        g_hash_table_add(names->by_name, file);
    }
    return file;
}

void fuse_names_reset(FuseNames *names)
{
    g_hash_table_remove_all(names->by_name);
    g_hash_table_remove_all(names->by_id);
    names->last_id = FUSE_ROOT_ID;
    names->is_renumbered = false;
    fuse_names_add(names, FUSE_ROOT_ID, NULL, ".");
}

void fuse_names_init(FuseNames *names)
{
    names->devices = g_array_new(false, false, sizeof(dev_t));
    names->by_id = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL,
                                         free_name);
    names->by_name = g_hash_table_new(hash_name, is_same_name);
    fuse_names_reset(names);
}

void fuse_names_destroy(FuseNames *names)
{
    g_hash_table_destroy(names->by_name);
    g_hash_table_destroy(names->by_id);
    g_array_free(names->devices, true);
}

FuseName *fuse_names_find(FuseNames *names, uint64_t id)
{
    return g_hash_table_lookup(names->by_id, &id);
}

FuseName *fuse_names_find_name(const FuseNames *names, FuseName *directory,
                               const char *name)
{
    FuseName key = { .directory = directory, .name = (char *)name };

    return g_hash_table_lookup(names->by_name, &key);
}

FuseName *fuse_names_tell(FuseNames *names, FuseName *directory,
                          const char *name)
{
    FuseName *file = fuse_names_find_name(names, directory, name);

    if (!file) {
        file = fuse_names_add(names, ++names->last_id, directory, name);
    }
    file->lookups++;
    return file;
}

void fuse_names_replace(FuseNames *names, FuseName *file)
{
    g_hash_table_remove(names->by_name, file);
    file->is_replaced = true;
}

void fuse_names_forget(FuseNames *names, uint64_t id, uint64_t lookups)
{
    FuseName *file = fuse_names_find(names, id), *directory;

    if (file) {
        file->lookups -= MIN(lookups, file->lookups);
    }
    /* A directory that is forgotten goes after the last file in it. */
    while (file && file->directory && !file->lookups && !file->entries) {
        directory = file->directory;
        if (!file->is_replaced) {
            g_hash_table_remove(names->by_name, file);
        }
        g_hash_table_remove(names->by_id, &file->id);
        directory->entries--;
        file = directory;
    }
}

/* Programs of 32 bits may not be able to take a longer number. */
uint64_t fuse_names_number(FuseNames *names, dev_t device, uint64_t inode)
{
    uint64_t i;

    for (i = 0; i < names->devices->len; i++) {
        if (g_array_index(names->devices, dev_t, i) == device) {
            break;
        }
    }
    if (i == names->devices->len) {
        g_array_append_val(names->devices, device);
    }
    if (i && i < 128 && inode < 1 << 24) {
        return (i + 128) << 24 | inode;
    }
    return inode ^ (i << 48);
}

char *fuse_name_path(const FuseName *file)
{
    char path[PATH_MAX], *begin = path + sizeof(path) - 1;
    size_t length;

    *begin = '\0';
    for (; file->directory; file = file->directory) {
        length = strlen(file->name);
        if (length + 1 > begin - path) {
            return NULL;
        }
        begin -= length;
        memcpy(begin, file->name, length);
        *--begin = '/';
    }
    return g_strdup(*begin ? begin : "/");
}

bool fuse_name_is_valid(const char *name, size_t size)
{
    return memchr(name, '\0', MIN(size, FUSE_NAME_SIZE)) && *name
           && !strchr(name, '/') && !g_str_equal(name, ".")
           && !g_str_equal(name, "..");
}
