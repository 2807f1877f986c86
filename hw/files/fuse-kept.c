/*
 * Files for a guest: requests and changes
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "standard-headers/linux/fuse.h"
#include "fuse-host.h"
#include "fuse-kept.h"

#define MAX_REQUESTS 65536

typedef struct FuseRequest {
    uint64_t id;
    uint64_t offset;
    uint32_t size;
    uint32_t opcode;
} FuseRequest;

/*
 * Requests
 */

void fuse_asked_init(FuseAsked *asked)
{
    asked->requests = g_array_new(false, false, sizeof(FuseRequest));
}

void fuse_asked_destroy(FuseAsked *asked)
{
    g_array_free(asked->requests, true);
}

void fuse_asked_reset(FuseAsked *asked)
{
    g_array_set_size(asked->requests, 0);
}

static const char *word_of(uint32_t opcode)
{
    switch (opcode) {
    case FUSE_LOOKUP:
        return "look";
    case FUSE_READLINK:
        return "link";
    case FUSE_READ:
        return "read";
    default:
        return NULL;
    }
}

void fuse_asked_add(FuseAsked *asked, uint32_t opcode, uint64_t id,
                    uint64_t offset, uint32_t size)
{
    const FuseRequest request = {
        .id = id, .offset = offset, .size = size, .opcode = opcode,
    };

    if (word_of(opcode) && asked->requests->len < MAX_REQUESTS) {
        g_array_append_val(asked->requests, request);
    }
}

static char *escaped_path(const FuseName *file)
{
    g_autofree char *path = fuse_name_path(file);

    return path
           ? g_uri_escape_string(path, G_URI_RESERVED_CHARS_ALLOWED_IN_PATH,
                                 false)
           : NULL;
}

GPtrArray *fuse_asked_describe(const FuseAsked *asked, FuseNames *names)
{
    GPtrArray *lines = g_ptr_array_new_with_free_func(g_free);
    size_t i;

    for (i = 0; i < asked->requests->len; i++) {
        const FuseRequest *one = &g_array_index(asked->requests, FuseRequest,
                                                i);
        FuseName *file = fuse_names_find(names, one->id);

        if (file && file->shows_changes) {
            g_autofree char *path = escaped_path(file);

            if (!path) {
                continue;
            }
            g_ptr_array_add(lines, g_strdup_printf(
                "%s %" PRIu64 " %" PRIu32 " %" PRIu64 " %s",
                word_of(one->opcode), one->offset, one->size,
                file->seen.changed, path));
        }
    }
    return lines;
}

/*
 * Changes
 */

/* Files of one directory come one after the other. */
static gint compare_directories(gconstpointer a, gconstpointer b,
                                gpointer unused)
{
    const FuseName *one = a, *other = b;
    uint64_t x = one->directory ? one->directory->id : 0;
    uint64_t y = other->directory ? other->directory->id : 0;

    return x < y ? -1 : x > y;
}

/* The word for the fate of a file; NULL if it is unchanged. */
static const char *fate(const FuseName *file, int directory)
{
    struct statx st;
    FuseSeen now;

    if (!fuse_host_look(directory, file->name, &st)
        || !fuse_host_is_same(file, &st)) {
        return "replaced";
    }
    now = fuse_host_seen(&st);
    if (now.changed == file->seen.changed
        && now.modified == file->seen.modified
        && now.size == file->seen.size
        && now.inode == file->seen.inode
        && now.device == file->seen.device) {
        return NULL;
    }
    return S_ISDIR(st.stx_mode) ? "changed" : "replaced";
}

GPtrArray *fuse_kept_check(FuseNames *names, int root)
{
    GPtrArray *lines = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GList) files = g_list_sort_with_data(
        g_hash_table_get_values(names->by_id), compare_directories, NULL);
    const FuseName *above = NULL;
    int directory = -1;
    const GList *next;

    if (names->is_renumbered) {
        g_ptr_array_add(lines, g_strdup("replaced /"));
    }
    for (next = files; next; next = next->next) {
        FuseName *file = next->data;
        const char *word;

        if (!file->seen.inode || file->is_replaced) {
            continue;
        }
        if (directory < 0 || file->directory != above) {
            if (directory >= 0) {
                close(directory);
            }
            directory = fuse_host_open_directory_of(root, file);
            above = file->directory;
        }
        word = fate(file, directory);
        if (word) {
            g_autofree char *path = escaped_path(file);

            /* If its path is too long, nothing can be kept. */
            g_ptr_array_add(lines, g_strdup_printf("%s %s", word,
                                                   path ?: "/"));
            if (*word == 'r' && file->directory) {
                fuse_names_replace(names, file);
            }
        }
    }
    if (directory >= 0) {
        close(directory);
    }
    return lines;
}
