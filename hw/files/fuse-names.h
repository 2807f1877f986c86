/*
 * Files for a guest: names of files that it knows by number
 *
 * A guest's kernel looks a file up by its directory's number and by its name,
 * and gets a number, which the file keeps until the kernel forgets it.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_FILES_FUSE_NAMES_H
#define HW_FILES_FUSE_NAMES_H

#include "qemu/typedefs.h"

/**
 * FUSE_NAME_SIZE - the size of a name, with its NUL
 */
#define FUSE_NAME_SIZE 256

/**
 * struct FuseSeen - a file, when the guest was told of it last
 * @device: its file system on the host
 * @inode: its number there; 0 if the guest was not told
 * @birth: when it was made; 0 if the file system does not know
 * @modified: when its contents were changed
 * @changed: when anything of it was; 0 if another change would not show
 * @size: the size of its contents, in bytes
 *
 * Times are nanoseconds since 1970.
 */
typedef struct FuseSeen {
    uint64_t device;
    uint64_t inode;
    uint64_t birth;
    uint64_t modified;
    uint64_t changed;
    uint64_t size;
} FuseSeen;

/**
 * struct FuseName - a file that a guest knows
 * @id: its number; the root's is FUSE_ROOT_ID
 * @directory: where it is; NULL for the root
 * @name: how it is called there
 * @lookups: how often the guest was told of it, less how often it forgot it
 * @entries: how many files in it are known
 * @is_replaced: another file may have its name by now, with another number
 * @seen: the file, when the guest was told of it
 * @shows_changes: each change gives it a new time
 * @fd: open for reading, if @slot is not NULL
 * @slot: where the server has it among open files; NULL if it is not open
 * @used: when it was read last, if it is open
 */
typedef struct FuseName FuseName;
struct FuseName {
    uint64_t id;
    FuseName *directory;
    char *name;
    uint64_t lookups;
    uint32_t entries;
    bool is_replaced;
    FuseSeen seen;
    bool shows_changes;
    int fd;
    FuseName **slot;
    uint64_t used;
};

/**
 * struct FuseSavedName - the same, as it is migrated
 */
typedef struct FuseSavedName {
    uint64_t id;
    uint64_t directory;
    uint64_t lookups;
    uint8_t name[FUSE_NAME_SIZE];
    FuseSeen seen;
} FuseSavedName;

/**
 * struct FuseNames - all of them
 * @cache: the guest keeps the answers
 * @by_id: by number
 * @by_name: by directory and name
 * @last_id: the last number that was given
 * @devices: the host's file systems: the root's, those that were mounted when
 *           the server began, and others in the order in which they were met
 * @is_renumbered: a file that was loaded had another number
 * @saved: while they are migrated
 * @n_saved: how many there are
 * @saved_devices: the file systems, while they are migrated
 * @n_devices: how many there are
 * @saved_root: the root, as the guest has seen it
 */
typedef struct FuseNames {
    bool cache;
    GHashTable *by_id;
    GHashTable *by_name;
    uint64_t last_id;
    GArray *devices;
    bool is_renumbered;
    FuseSavedName *saved;
    int32_t n_saved;
    uint64_t *saved_devices;
    uint32_t n_devices;
    FuseSeen saved_root;
} FuseNames;

/**
 * fuse_names_init - begin with the root
 */
void fuse_names_init(FuseNames *names);

/**
 * fuse_names_reset - begin again, with the same file systems
 */
void fuse_names_reset(FuseNames *names);

/**
 * fuse_names_destroy - forget all, and close files
 */
void fuse_names_destroy(FuseNames *names);

/**
 * fuse_names_find - find a file that the guest knows
 *
 * Returns: NULL if it does not know any of that number.
 */
FuseName *fuse_names_find(FuseNames *names, uint64_t id);

/**
 * fuse_names_find_name - find a file that the guest knows by a name
 *
 * Returns: NULL if it does not know any of that name.
 */
FuseName *fuse_names_find_name(const FuseNames *names, FuseName *directory,
                               const char *name);

/**
 * fuse_names_add - add a file that the guest does not know
 * @id: its number, which no other file has
 * @directory: where it is
 * @name: how it is called, in less than FUSE_NAME_SIZE bytes
 *
 * Returns: the file, with no lookups.
 */
FuseName *fuse_names_add(FuseNames *names, uint64_t id, FuseName *directory,
                         const char *name);

/**
 * fuse_names_tell - tell the guest of a file
 * @directory: where it is
 * @name: how it is called, in less than FUSE_NAME_SIZE bytes
 *
 * Returns: the file, which the guest knows once more.
 */
FuseName *fuse_names_tell(FuseNames *names, FuseName *directory,
                          const char *name);

/**
 * fuse_names_replace - the next file of that name will be another one
 * @file: a file that has its name; the guest goes on to know its number
 */
void fuse_names_replace(FuseNames *names, FuseName *file);

/**
 * fuse_names_forget - the guest forgets a file
 * @lookups: as often as that
 */
void fuse_names_forget(FuseNames *names, uint64_t id, uint64_t lookups);

/**
 * fuse_names_number - a number for an inode
 * @device: its file system
 * @inode: its number there
 *
 * Numbers of inodes are unique in a file system, of which the host has many.
 * The root's stay as they are.
 */
uint64_t fuse_names_number(FuseNames *names, dev_t device, uint64_t inode);

/**
 * fuse_name_path - a file's path, from the root
 *
 * Returns: a string that begins with a slash, and is the caller's; NULL if it
 * is too long for a system call.
 */
char *fuse_name_path(const FuseName *file);

/**
 * fuse_name_is_valid - whether that is the name of a file in its directory
 * @name: the name
 * @size: how many bytes may be read; the name may have no NUL there
 */
bool fuse_name_is_valid(const char *name, size_t size);

/**
 * fuse_name_close - close a file, if it is open
 */
void fuse_name_close(FuseName *file);

extern const VMStateDescription vmstate_fuse_names;

#endif /* HW_FILES_FUSE_NAMES_H */
