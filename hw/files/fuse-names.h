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
 * struct FuseName - a file that a guest knows
 * @id: its number; the root's is FUSE_ROOT_ID
 * @directory: where it is; NULL for the root
 * @name: how it is called there
 * @lookups: how often the guest was told of it, less how often it forgot it
 * @entries: how many files in it are known
 * @device: its file system on the host, when the guest was told of it last
 * @inode: its number there
 * @birth: when it was made; 0 if the file system does not know
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
    dev_t device;
    uint64_t inode;
    struct statx_timestamp birth;
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
} FuseSavedName;

/**
 * struct FuseNames - all of them
 * @by_id: by number
 * @by_name: by directory and name
 * @last_id: the last number that was given
 * @saved: while they are migrated
 * @n_saved: how many there are
 */
typedef struct FuseNames {
    GHashTable *by_id;
    GHashTable *by_name;
    uint64_t last_id;
    FuseSavedName *saved;
    int32_t n_saved;
} FuseNames;

/**
 * fuse_names_init - begin with the root
 */
void fuse_names_init(FuseNames *names);

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
 * fuse_names_has - whether a file still has its name
 * @file: any but the root
 */
bool fuse_names_has(const FuseNames *names, const FuseName *file);

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
