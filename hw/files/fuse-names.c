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

void fuse_names_init(FuseNames *names)
{
    names->by_id = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL,
                                         free_name);
    names->by_name = g_hash_table_new(hash_name, is_same_name);
    names->last_id = FUSE_ROOT_ID;
    fuse_names_add(names, FUSE_ROOT_ID, NULL, ".");
}

void fuse_names_destroy(FuseNames *names)
{
    g_hash_table_destroy(names->by_name);
    g_hash_table_destroy(names->by_id);
}

FuseName *fuse_names_find(FuseNames *names, uint64_t id)
{
    return g_hash_table_lookup(names->by_id, &id);
}

FuseName *fuse_names_tell(FuseNames *names, FuseName *directory,
                          const char *name)
{
    FuseName key = { .directory = directory, .name = (char *)name };
    FuseName *file = g_hash_table_lookup(names->by_name, &key);

    if (!file) {
        file = fuse_names_add(names, ++names->last_id, directory, name);
    }
    file->lookups++;
    return file;
}

bool fuse_names_has(const FuseNames *names, const FuseName *file)
{
    return g_hash_table_lookup(names->by_name, file) == file;
}

void fuse_names_replace(FuseNames *names, FuseName *file)
{
    g_hash_table_remove(names->by_name, file);
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
        if (fuse_names_has(names, file)) {
            g_hash_table_remove(names->by_name, file);
        }
        g_hash_table_remove(names->by_id, &file->id);
        directory->entries--;
        file = directory;
    }
}

bool fuse_name_is_valid(const char *name, size_t size)
{
    return memchr(name, '\0', MIN(size, FUSE_NAME_SIZE)) && *name
           && !strchr(name, '/') && !g_str_equal(name, ".")
           && !g_str_equal(name, "..");
}
