/*
 * Tests of hw/files' server: requests as Linux sends them, and others
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/units.h"
#include <sched.h>
#include <sys/mount.h>
#include "standard-headers/linux/fuse.h"
#include "../../../hw/files/fuse-server.h"

#define ENTRIES 300
/* The status of a process that this host does not let do its work */
#define CANNOT 77

/* A server of a directory with some files, and its last answer */
typedef struct Served {
    FuseServer server;
    char *path;
    struct fuse_out_header header;
    char data[64 * KiB];
    size_t room;
} Served;

static char *path_of(const Served *t, const char *name)
{
    return g_build_filename(t->path, name, NULL);
}

static void make_file(const Served *t, const char *name, const char *text)
{
    g_autofree char *path = path_of(t, name);

    g_assert_true(g_file_set_contents(path, text, -1, NULL));
}

static void setup(Served *t, gconstpointer unused)
{
    g_autofree char *many = NULL, *fifo = NULL, *link = NULL;

    t->path = g_dir_make_tmp("fuse-server-XXXXXX", NULL);
    t->room = sizeof(t->data);
    many = path_of(t, "many");
    fifo = path_of(t, "fifo");
    link = path_of(t, "link");
    make_file(t, "file", "contents");
    g_assert_cmpint(mkdir(many, 0755), ==, 0);
    g_assert_cmpint(mkfifo(fifo, 0644), ==, 0);
    g_assert_cmpint(symlink("file", link), ==, 0);
    for (int i = 0; i < ENTRIES; i++) {
        g_autofree char *name = g_strdup_printf("many/entry%d", i);

        make_file(t, name, "");
    }
    g_assert_true(fuse_server_open(&t->server, t->path, &error_abort));
}

static void teardown(Served *t, gconstpointer unused)
{
    const char *remove[] = { "rm", "-rf", t->path, NULL };

    fuse_server_close(&t->server);
    g_spawn_sync(NULL, (char **)remove, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL,
                 NULL, NULL, NULL, NULL);
    g_free(t->path);
}

/* Returns the error of the answer; 0 if there is none. */
static int ask(Served *t, uint32_t opcode, uint64_t id, const void *arguments,
               size_t size)
{
    struct fuse_in_header header = {
        .len = sizeof(header) + size, .opcode = opcode, .unique = 42,
        .nodeid = id,
    };
    const struct iovec out[] = {
        { &header, sizeof(header) }, { (void *)arguments, size }
    };
    const struct iovec in[] = {
        { &t->header, sizeof(t->header) }, { t->data, t->room }
    };

    memset(&t->header, 0, sizeof(t->header));
    memset(t->data, 0xee, sizeof(t->data));
    fuse_server_answer(&t->server, out, G_N_ELEMENTS(out), in,
                       G_N_ELEMENTS(in));
    if (opcode != FUSE_FORGET) {
        g_assert_cmpuint(t->header.unique, ==, 42);
        g_assert_cmpuint(t->header.len, <=, sizeof(t->header) + t->room);
    }
    return -t->header.error;
}

static int look_up(Served *t, uint64_t directory, const char *name)
{
    return ask(t, FUSE_LOOKUP, directory, name, strlen(name) + 1);
}

static uint64_t found(Served *t, uint64_t directory, const char *name)
{
    const struct fuse_entry_out *entry = (void *)t->data;

    g_assert_cmpint(look_up(t, directory, name), ==, 0);
    g_assert_cmpuint(entry->nodeid, !=, 0);
    return entry->nodeid;
}

static int read_file(Served *t, uint64_t id, uint64_t offset, uint32_t size)
{
    const struct fuse_read_in asked = { .offset = offset, .size = size };

    return ask(t, FUSE_READ, id, &asked, sizeof(asked));
}

static size_t answered(const Served *t)
{
    return t->header.len - sizeof(t->header);
}

static void forget(Served *t, uint64_t id, uint64_t lookups)
{
    const struct fuse_forget_in forgotten = { .nlookup = lookups };

    ask(t, FUSE_FORGET, id, &forgotten, sizeof(forgotten));
}

static void test_init(Served *t, gconstpointer unused)
{
    const struct fuse_init_in asked = {
        .major = 7, .minor = 99, .flags = FUSE_NO_OPEN_SUPPORT | FUSE_DONT_MASK
                                          | FUSE_READDIRPLUS_AUTO,
    };
    const struct fuse_init_out *out = (void *)t->data;

    g_assert_cmpint(ask(t, FUSE_INIT, 0, &asked, sizeof(asked)), ==, 0);
    g_assert_cmpuint(out->minor, ==, FUSE_KERNEL_MINOR_VERSION);
    g_assert_cmphex(out->flags, ==, FUSE_NO_OPEN_SUPPORT);
    g_assert_cmpint(ask(t, FUSE_INIT, 0, &asked, 8), ==, EPROTO);
}

static void test_read(Served *t, gconstpointer unused)
{
    uint64_t id = found(t, FUSE_ROOT_ID, "file");

    g_assert_cmpint(read_file(t, id, 3, 4096), ==, 0);
    g_assert_cmpuint(answered(t), ==, 5);
    g_assert_cmpmem(t->data, 5, "tents", 5);
    g_assert_cmpint(read_file(t, id, 8, 4096), ==, 0);
    g_assert_cmpuint(answered(t), ==, 0);
    /* No more than asked for, than there is room for, or than a file has */
    g_assert_cmpint(read_file(t, id, 0, 2), ==, 0);
    g_assert_cmpuint(answered(t), ==, 2);
    t->room = 3;
    g_assert_cmpint(read_file(t, id, 0, UINT32_MAX), ==, 0);
    g_assert_cmpuint(answered(t), ==, 3);
    g_assert_cmpint(read_file(t, id, INT64_MAX, 4096), ==, EINVAL);
    g_assert_cmpint(read_file(t, id, UINT64_MAX, 4096), ==, EINVAL);
}

/* Reading these would wait, or have an effect. */
static void test_other_files(Served *t, gconstpointer unused)
{
    g_assert_cmpint(read_file(t, found(t, FUSE_ROOT_ID, "fifo"), 0, 1), ==,
                    EIO);
    g_assert_cmpint(read_file(t, found(t, FUSE_ROOT_ID, "many"), 0, 1), ==,
                    EIO);
    g_assert_cmpint(read_file(t, found(t, FUSE_ROOT_ID, "link"), 0, 1), ==,
                    EIO);
    g_assert_cmpint(ask(t, FUSE_READLINK, found(t, FUSE_ROOT_ID, "link"), NULL,
                        0), ==, 0);
    g_assert_cmpmem(t->data, answered(t), "file", 4);
    g_assert_cmpint(ask(t, FUSE_WRITE, FUSE_ROOT_ID, NULL, 0), ==, ENOSYS);
}

static void test_names(Served *t, gconstpointer unused)
{
    const char *const bad[] = { "", ".", "..", "many/entry1", "../file" };
    char name[2 * FUSE_NAME_SIZE];

    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_assert_cmpint(look_up(t, FUSE_ROOT_ID, bad[i]), ==, EINVAL);
    }
    memset(name, 'n', sizeof(name));
    g_assert_cmpint(ask(t, FUSE_LOOKUP, FUSE_ROOT_ID, name, sizeof(name)), ==,
                    ENAMETOOLONG);
    g_assert_cmpint(ask(t, FUSE_LOOKUP, FUSE_ROOT_ID, name, 0), ==, EINVAL);
    /* The guest does not remember it: it may exist later. */
    g_assert_cmpint(look_up(t, FUSE_ROOT_ID, "missing"), ==, ENOENT);
    g_assert_cmpint(look_up(t, 99, "file"), ==, ESTALE);
    g_assert_cmpint(look_up(t, found(t, FUSE_ROOT_ID, "file"), "x"), ==,
                    ENOTDIR);
}

static void test_forget(Served *t, gconstpointer unused)
{
    uint64_t many = found(t, FUSE_ROOT_ID, "many");
    uint64_t entry = found(t, many, "entry1");

    g_assert_cmpuint(found(t, many, "entry1"), ==, entry);
    g_assert_cmpint(read_file(t, entry, 0, 1), ==, 0);
    /* It stays as long as a file in it. */
    forget(t, many, UINT64_MAX);
    g_assert_cmpint(ask(t, FUSE_GETATTR, many, NULL, 0), ==, 0);
    forget(t, entry, 1);
    g_assert_cmpint(read_file(t, entry, 0, 1), ==, 0);
    forget(t, entry, 1);
    g_assert_cmpint(read_file(t, entry, 0, 1), ==, ESTALE);
    g_assert_cmpint(ask(t, FUSE_GETATTR, many, NULL, 0), ==, ESTALE);
    forget(t, entry, 1);
    forget(t, 0, 1);
    forget(t, FUSE_ROOT_ID, UINT64_MAX);
    g_assert_cmpint(ask(t, FUSE_GETATTR, FUSE_ROOT_ID, NULL, 0), ==, 0);
    /* No number is given twice. */
    g_assert_cmpuint(found(t, FUSE_ROOT_ID, "many"), >, entry);
}

static unsigned count_descriptors(void)
{
    g_autoptr(GDir) all = g_dir_open("/proc/self/fd", 0, NULL);
    unsigned n = 0;

    while (g_dir_read_name(all)) {
        n++;
    }
    return n;
}

/* More files than can be open */
static void test_open_files(Served *t, gconstpointer unused)
{
    unsigned before = count_descriptors();
    uint64_t many = found(t, FUSE_ROOT_ID, "many");
    uint64_t ids[2 * FUSE_OPEN_FILES];

    for (size_t i = 0; i < G_N_ELEMENTS(ids); i++) {
        g_autofree char *name = g_strdup_printf("entry%zu", i);

        ids[i] = found(t, many, name);
        g_assert_cmpint(read_file(t, ids[i], 0, 1), ==, 0);
    }
    g_assert_cmpuint(count_descriptors(), ==, before + FUSE_OPEN_FILES);
    for (size_t i = 0; i < G_N_ELEMENTS(ids); i++) {
        g_assert_cmpint(read_file(t, ids[i], 0, 1), ==, 0);
        forget(t, ids[i], 1);
    }
    fuse_server_reset(&t->server);
    g_assert_cmpint(read_file(t, many, 0, 1), ==, ESTALE);
}

/* Returns how many entries there are but "." and ".."; each has to be new. */
static unsigned list(Served *t, uint32_t opcode, uint64_t id, uint32_t size)
{
    size_t head = opcode == FUSE_READDIRPLUS
                  ? offsetof(struct fuse_direntplus, dirent) : 0;
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal,
                                                       g_free, NULL);
    struct fuse_read_in asked = { .size = size };
    unsigned n = 0;

    for (;;) {
        const char *at = t->data;

        g_assert_cmpint(ask(t, opcode, id, &asked, sizeof(asked)), ==, 0);
        if (!answered(t)) {
            return n;
        }
        g_assert_cmpuint(answered(t), <=, size);
        while (at < t->data + answered(t)) {
            const struct fuse_dirent *entry = (void *)(at + head);

            g_assert_true(g_hash_table_add(seen, g_strndup(entry->name,
                                                           entry->namelen)));
            n += entry->name[0] != '.';
            asked.offset = entry->off;
            at += FUSE_DIRENT_ALIGN(head + FUSE_NAME_OFFSET + entry->namelen);
        }
    }
}

static void test_directory(Served *t, gconstpointer unused)
{
    uint64_t many = found(t, FUSE_ROOT_ID, "many");
    const struct fuse_read_in bad = { .offset = UINT64_MAX, .size = 4096 };
    const struct fuse_read_in first = { .size = 200 };
    uint64_t file = found(t, FUSE_ROOT_ID, "file");

    g_assert_cmpuint(list(t, FUSE_READDIR, many, 4096), ==, ENTRIES);
    /* Somebody else has begun to read it. */
    g_assert_cmpint(ask(t, FUSE_READDIR, many, &first, sizeof(first)), ==, 0);
    g_assert_cmpuint(list(t, FUSE_READDIRPLUS, many, 4096), ==, ENTRIES);
    g_assert_cmpuint(list(t, FUSE_READDIRPLUS, many, 200), ==, ENTRIES);
    g_assert_cmpuint(list(t, FUSE_READDIRPLUS, FUSE_ROOT_ID, 65536), ==, 4);
    g_assert_cmpuint(list(t, FUSE_READDIR, many, 0), ==, 0);
    ask(t, FUSE_READDIRPLUS, many, &bad, sizeof(bad));
    g_assert_cmpint(ask(t, FUSE_READDIR, file, &bad, sizeof(bad)), ==,
                    ENOTDIR);
}

/* The host moves a directory away, and puts a link there. */
static void test_replaced(Served *t, gconstpointer unused)
{
    uint64_t many = found(t, FUSE_ROOT_ID, "many");
    uint64_t entry = found(t, many, "entry1");
    g_autofree char *old = path_of(t, "many"), *new = path_of(t, "moved");

    g_assert_cmpint(rename(old, new), ==, 0);
    g_assert_cmpint(read_file(t, entry, 0, 1), ==, ENOENT);
    g_assert_cmpint(symlink("/etc", old), ==, 0);
    g_assert_cmpint(look_up(t, many, "passwd"), ==, ENOTDIR);
    g_assert_cmpint(read_file(t, entry, 0, 1), ==, ENOTDIR);
}

/* A file with other contents takes the place of one that the guest knows. */
static void test_replaced_file(Served *t, gconstpointer unused)
{
    uint64_t other, id = found(t, FUSE_ROOT_ID, "file");
    g_autofree char *old = path_of(t, "file"), *new = path_of(t, "new");

    make_file(t, "new", "other");
    g_assert_cmpint(rename(new, old), ==, 0);
    g_assert_cmpint(read_file(t, id, 0, 5), ==, ESTALE);
    g_assert_cmpint(ask(t, FUSE_GETATTR, id, NULL, 0), ==, ESTALE);
    other = found(t, FUSE_ROOT_ID, "file");
    g_assert_cmpuint(other, >, id);
    g_assert_cmpint(read_file(t, other, 0, 5), ==, 0);
    g_assert_cmpmem(t->data, 5, "other", 5);
    /* The guest has the first one open, and forgets it later. */
    g_assert_cmpint(read_file(t, id, 0, 5), ==, ESTALE);
    forget(t, id, 1);
    g_assert_cmpuint(found(t, FUSE_ROOT_ID, "file"), ==, other);
}

/* Its inode may have the number of the first. */
static void test_removed_file(Served *t, gconstpointer unused)
{
    uint64_t id = found(t, FUSE_ROOT_ID, "file");
    g_autofree char *path = path_of(t, "file");

    g_assert_cmpint(unlink(path), ==, 0);
    make_file(t, "file", "other");
    g_assert_cmpint(read_file(t, id, 0, 5), ==, ESTALE);
    g_assert_cmpuint(found(t, FUSE_ROOT_ID, "file"), >, id);
}

static void test_replaced_link(Served *t, gconstpointer unused)
{
    uint64_t id = found(t, FUSE_ROOT_ID, "link");
    g_autofree char *path = path_of(t, "link");

    g_assert_cmpint(ask(t, FUSE_READLINK, id, NULL, 0), ==, 0);
    g_assert_cmpmem(t->data, answered(t), "file", 4);
    g_assert_cmpint(unlink(path), ==, 0);
    g_assert_cmpint(symlink("other", path), ==, 0);
    g_assert_cmpint(ask(t, FUSE_READLINK, id, NULL, 0), ==, ESTALE);
}

/* A file system that is mounted at a place that the guest knows */
static void mount_there(Served *t)
{
    uint64_t many = found(t, FUSE_ROOT_ID, "many");
    g_autofree char *place = path_of(t, "many");

    g_assert_cmpint(mount("none", place, "tmpfs", 0, NULL), ==, 0);
    make_file(t, "many/new", "new");
    g_assert_cmpuint(list(t, FUSE_READDIRPLUS, many, 4096), ==, 1);
    g_assert_cmpint(read_file(t, found(t, many, "new"), 0, 3), ==, 0);
}

/* To make a file in a directory of the lower layer makes that anew. */
static void use_overlay(Served *t)
{
    g_autofree char *lower = path_of(t, "lower"), *upper = path_of(t, "upper");
    g_autofree char *work = path_of(t, "work"), *place = path_of(t, "place");
    g_autofree char *known = g_build_filename(lower, "known", NULL);
    g_autofree char *layers = g_strdup_printf(
        "lowerdir=%s,upperdir=%s,workdir=%s", lower, upper, work);
    uint64_t id;

    g_assert_cmpint(mkdir(lower, 0755) | mkdir(upper, 0755) | mkdir(work, 0755)
                    | mkdir(place, 0755) | mkdir(known, 0755), ==, 0);
    make_file(t, "lower/known/file", "old");
    if (mount("none", place, "overlay", 0, layers) < 0) {
        exit(CANNOT);
    }
    id = found(t, found(t, FUSE_ROOT_ID, "place"), "known");
    make_file(t, "place/known/new", "new");
    g_assert_cmpint(read_file(t, found(t, id, "file"), 0, 3), ==, 0);
    g_assert_cmpuint(list(t, FUSE_READDIRPLUS, id, 4096), ==, 2);
}

/* In a process that sees mounts of its own, as far as it may have such */
static void with_mounts(Served *t, void (*use)(Served *t))
{
    int more = geteuid() ? CLONE_NEWUSER : 0, status;
    pid_t child = fork();

    if (!child) {
        if (unshare(CLONE_NEWNS | more) < 0
            || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
            exit(CANNOT);
        }
        fuse_server_close(&t->server);
        g_assert_true(fuse_server_open(&t->server, t->path, &error_abort));
        use(t);
        exit(0);
    }
    g_assert_cmpint(waitpid(child, &status, 0), ==, child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT) {
        g_test_skip("this host does not allow these mounts");
        return;
    }
    g_assert_cmpint(status, ==, 0);
}

/* A file that the server finds in a new mount there, or the mount itself */
static const FuseName *found_in_mount(Served *t, const char *type,
                                      unsigned long flags, const char *file)
{
    g_autofree char *place = path_of(t, "many");
    uint64_t many;

    if (mount("none", place, type, flags, NULL) < 0) {
        exit(CANNOT);
    }
    many = found(t, FUSE_ROOT_ID, "many");
    return fuse_names_find(&t->server.names,
                           file ? found(t, many, file) : many);
}

/* Memory shows changes, if it may be written; made-up contents do not. */
static void use_file_systems(Served *t)
{
    const struct fuse_entry_out *entry = (void *)t->data;
    g_autofree char *fs = path_of(t, "many/fs");
    uint64_t id;

    t->server.names.cache = true;
    g_assert_false(found_in_mount(t, "proc", 0, "uptime")->shows_changes);
    g_assert_cmpuint(entry->entry_valid, !=, 0);
    t->server.keeps = true;
    id = found(t, found(t, FUSE_ROOT_ID, "many"), "uptime");
    g_assert_cmpuint(entry->entry_valid, ==, 0);
    g_assert_cmpint(read_file(t, id, 0, 1), ==, EIO);
    t->server.keeps = false;
    g_assert_cmpint(read_file(t, id, 0, 1), ==, 0);
    t->server.keeps = true;
    /* Memory is not looked at either where that takes another's directory. */
    g_assert_cmpint(mount("none", fs, "tmpfs", 0, NULL), ==, 0);
    id = found(t, found(t, FUSE_ROOT_ID, "many"), "fs");
    g_assert_false(fuse_names_find(&t->server.names, id)->shows_changes);
    g_assert_true(found_in_mount(t, "tmpfs", 0, NULL)->shows_changes);
    g_assert_cmpuint(entry->entry_valid, !=, 0);
    g_assert_false(found_in_mount(t, "tmpfs", MS_RDONLY, NULL)->shows_changes);
    g_assert_cmpuint(entry->attr_valid, ==, 0);
}

static void test_file_systems(Served *t, gconstpointer unused)
{
    with_mounts(t, use_file_systems);
}

static void test_mount(Served *t, gconstpointer unused)
{
    with_mounts(t, mount_there);
}

static void test_overlay(Served *t, gconstpointer unused)
{
    with_mounts(t, use_overlay);
}

/* Another program is to give its lease up before others read the file. */
static void test_lease(Served *t, gconstpointer unused)
{
    uint64_t id = found(t, FUSE_ROOT_ID, "file");
    g_autofree char *path = path_of(t, "file");
    int fd = open(path, O_RDWR);

    signal(SIGIO, SIG_IGN);
    g_assert_cmpint(fcntl(fd, F_SETLEASE, F_WRLCK), ==, 0);
    g_assert_cmpint(read_file(t, id, 0, 8), ==, EBUSY);
    g_assert_cmpint(fcntl(fd, F_SETLEASE, F_UNLCK), ==, 0);
    g_assert_cmpint(read_file(t, id, 0, 8), ==, 0);
    close(fd);
}

/* So does one while the guest reads the first. */
static void test_replaced_open_file(Served *t, gconstpointer unused)
{
    uint64_t other, id = found(t, FUSE_ROOT_ID, "file");
    g_autofree char *old = path_of(t, "file"), *new = path_of(t, "new");

    g_assert_cmpint(read_file(t, id, 0, 4), ==, 0);
    make_file(t, "new", "other");
    g_assert_cmpint(rename(new, old), ==, 0);
    other = found(t, FUSE_ROOT_ID, "file");
    g_assert_cmpint(read_file(t, id, 4, 4), ==, 0);
    g_assert_cmpmem(t->data, 4, "ents", 4);
    g_assert_cmpint(read_file(t, other, 0, 5), ==, 0);
    g_assert_cmpmem(t->data, 5, "other", 5);
    g_assert_cmpuint(list(t, FUSE_READDIRPLUS, FUSE_ROOT_ID, 4096), ==, 4);
    g_assert_cmpuint(found(t, FUSE_ROOT_ID, "file"), ==, other);
}

/* Files in a directory stay known while that has no name any more. */
static void test_replaced_directory(Served *t, gconstpointer unused)
{
    const struct fuse_read_in all = { .size = 4096 };
    uint64_t other, many = found(t, FUSE_ROOT_ID, "many");
    uint64_t entry = found(t, many, "entry1");
    g_autofree char *old = path_of(t, "many"), *new = path_of(t, "moved");

    g_assert_cmpint(rename(old, new), ==, 0);
    g_assert_cmpint(mkdir(old, 0755), ==, 0);
    g_assert_cmpint(look_up(t, many, "entry1"), ==, ESTALE);
    g_assert_cmpint(ask(t, FUSE_READDIR, many, &all, sizeof(all)), ==, ESTALE);
    other = found(t, FUSE_ROOT_ID, "many");
    g_assert_cmpuint(other, >, many);
    g_assert_cmpuint(list(t, FUSE_READDIR, other, 4096), ==, 0);
    forget(t, many, 1);
    g_assert_cmpint(look_up(t, other, "entry1"), ==, ENOENT);
    forget(t, entry, 1);
    g_assert_cmpint(ask(t, FUSE_GETATTR, many, NULL, 0), ==, ESTALE);
    g_assert_cmpuint(found(t, FUSE_ROOT_ID, "many"), ==, other);
}

/* A directory that the guest has forgotten becomes a file. */
static void test_forgotten_directory(Served *t, gconstpointer unused)
{
    uint64_t many = found(t, FUSE_ROOT_ID, "many");
    uint64_t entry = found(t, many, "entry1");
    g_autofree char *old = path_of(t, "many"), *new = path_of(t, "moved");

    forget(t, many, 1);
    g_assert_cmpint(rename(old, new), ==, 0);
    make_file(t, "many", "contents");
    g_assert_cmpint(ask(t, FUSE_GETATTR, many, NULL, 0), ==, ESTALE);
    g_assert_cmpint(read_file(t, many, 0, 1), ==, ESTALE);
    forget(t, entry, 1);
    g_assert_cmpint(read_file(t, many, 0, 1), ==, ESTALE);
    for (int i = 0; i < FUSE_OPEN_FILES; i++) {
        g_assert_null(t->server.open[i]);
    }
}

/* A writer that waits for a reader goes on waiting. */
static void test_fifo(Served *t, gconstpointer unused)
{
    g_autofree char *fifo = path_of(t, "fifo");
    uint64_t id = found(t, FUSE_ROOT_ID, "fifo");
    pid_t writer = fork();
    int status;

    if (!writer) {
        _exit(open(fifo, O_WRONLY) < 0);
    }
    for (int i = 0; i < 100; i++) {
        g_assert_cmpint(read_file(t, id, 0, 1), ==, EIO);
        g_usleep(1000);
    }
    g_assert_cmpint(waitpid(writer, &status, WNOHANG), ==, 0);
    kill(writer, SIGKILL);
    waitpid(writer, &status, 0);
}

/* Have a server serve another directory. */
static void serve_instead(Served *t, const char *path)
{
    fuse_server_close(&t->server);
    memset(&t->server, 0, sizeof(t->server));
    g_assert_true(fuse_server_open(&t->server, path, &error_abort));
}

/* Linux has 8 bits of the minor number, then 12 of the major number. */
static void test_device(Served *t, gconstpointer unused)
{
    const struct fuse_entry_out *entry = (void *)t->data;

    serve_instead(t, "/dev");
    found(t, FUSE_ROOT_ID, "null");
    g_assert_cmphex(entry->attr.rdev, ==, 0x103);
}

static void test_file_system(Served *t, gconstpointer unused)
{
    const struct fuse_statfs_out *out = (void *)t->data;

    serve_instead(t, "/");
    g_assert_cmpint(ask(t, FUSE_STATFS, FUSE_ROOT_ID, NULL, 0), ==, 0);
    g_assert_cmpuint(out->st.blocks, !=, 0);
    g_assert_cmpint(ask(t, FUSE_STATFS, found(t, FUSE_ROOT_ID, "proc"), NULL,
                        0), ==, 0);
    g_assert_cmpuint(out->st.blocks, ==, 0);
}

/* A directory that may be listed and not searched */
static void test_unsearched(Served *t, gconstpointer unused)
{
    uint64_t many = found(t, FUSE_ROOT_ID, "many");
    g_autofree char *path = path_of(t, "many");
    uid_t user = geteuid();

    g_assert_cmpint(chmod(t->path, 0755), ==, 0);
    g_assert_cmpint(chmod(path, 0444), ==, 0);
    if (!user) {
        g_assert_cmpint(seteuid(65534), ==, 0);
    }
    g_assert_cmpuint(list(t, FUSE_READDIRPLUS, many, 4096), ==, ENTRIES);
    g_assert_cmpint(look_up(t, many, "entry1"), ==, EACCES);
    g_assert_cmpint(seteuid(user), ==, 0);
    g_assert_cmpint(chmod(path, 0755), ==, 0);
}

/* Deeper than a path can be long */
static void test_depth(Served *t, gconstpointer unused)
{
    g_autofree char *name = g_strnfill(200, 'd');
    int above, fd = open(t->path, O_RDONLY);
    uint64_t id = FUSE_ROOT_ID;

    for (int i = 0; i < 40; i++) {
        above = fd;
        g_assert_cmpint(mkdirat(above, name, 0755), ==, 0);
        fd = openat(above, name, O_RDONLY);
        close(above);
        id = found(t, id, name);
    }
    close(fd);
    g_assert_cmpuint(list(t, FUSE_READDIRPLUS, id, 4096), ==, 0);
}

static void test_cache(Served *t, gconstpointer unused)
{
    const struct fuse_entry_out *entry = (void *)t->data;
    const struct fuse_attr_out *attr = (void *)t->data;

    for (int cache = 0; cache < 2; cache++) {
        t->server.names.cache = cache;
        found(t, FUSE_ROOT_ID, "file");
        g_assert_cmpint(entry->entry_valid != 0, ==, cache);
        g_assert_cmpint(entry->attr_valid != 0, ==, cache);
        g_assert_cmpint(ask(t, FUSE_GETATTR, FUSE_ROOT_ID, NULL, 0), ==, 0);
        g_assert_cmpint(attr->attr_valid != 0, ==, cache);
    }
}

/* The files have been as they are for a while. */
static void age_files(Served *t)
{
    GHashTableIter all;
    gpointer one;

    g_hash_table_iter_init(&all, t->server.names.by_id);
    while (g_hash_table_iter_next(&all, NULL, &one)) {
        FuseName *file = one;
        struct stat st;
        g_autofree char *name = fuse_name_path(file);
        g_autofree char *path = path_of(t, name);

        g_assert_cmpint(lstat(path, &st), ==, 0);
        file->seen.changed = st.st_ctim.tv_sec * 1000000000ull
                             + st.st_ctim.tv_nsec;
    }
}

static void set_shows_changes(Served *t, bool value)
{
    GHashTableIter all;
    gpointer one;

    g_hash_table_iter_init(&all, t->server.names.by_id);
    while (g_hash_table_iter_next(&all, NULL, &one)) {
        FuseName *file = one;

        file->shows_changes = value;
    }
}

static gint compare_lines(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char **)a, *(char **)b);
}

static void assert_lines(GPtrArray *lines, const char *expected)
{
    g_autofree char *text = NULL;

    g_ptr_array_add(lines, NULL);
    text = g_strjoinv(", ", (char **)lines->pdata);
    g_assert_cmpstr(text, ==, expected);
    g_ptr_array_unref(lines);
}

/* The files that the guest is to ask for, in alphabetical order */
static void assert_changes(Served *t, const char *expected)
{
    GPtrArray *lines = fuse_kept_check(&t->server.names, t->server.root);

    g_ptr_array_sort(lines, compare_lines);
    assert_lines(lines, expected);
}

static void replace_with_link(Served *t, const char *name)
{
    g_autofree char *path = path_of(t, name);

    g_assert_cmpint(unlink(path), ==, 0);
    g_assert_cmpint(symlink("file", path), ==, 0);
}

static void test_kept(Served *t, gconstpointer unused)
{
    uint64_t file = found(t, FUSE_ROOT_ID, "file");
    uint64_t many = found(t, FUSE_ROOT_ID, "many");
    uint64_t entry = found(t, many, "entry1");
    g_autofree char *path = path_of(t, "many/entry4");

    found(t, FUSE_ROOT_ID, "link");
    found(t, many, "entry2");
    found(t, many, "entry3");
    found(t, many, "entry4");
    /* All of it is newer than its times can show. */
    assert_changes(t, "changed /many, replaced /file, replaced /link, "
                      "replaced /many/entry1, replaced /many/entry2, "
                      "replaced /many/entry3, replaced /many/entry4");
    g_assert_cmpint(ask(t, FUSE_GETATTR, file, NULL, 0), ==, ESTALE);
    g_assert_cmpint(ask(t, FUSE_GETATTR, many, NULL, 0), ==, 0);
    g_assert_cmpint(ask(t, FUSE_GETATTR, entry, NULL, 0), ==, ESTALE);
    g_assert_cmpuint(found(t, FUSE_ROOT_ID, "file"), >, file);
    g_assert_cmpuint(found(t, FUSE_ROOT_ID, "many"), ==, many);
    found(t, many, "entry1");
    found(t, many, "entry2");
    found(t, many, "entry4");
    age_files(t);
    assert_changes(t, "");
    /* One is changed, one gone, and one another file. */
    make_file(t, "file", "other");
    replace_with_link(t, "many/entry2");
    g_assert_cmpint(chmod(path, 0600), ==, 0);
    assert_changes(t, "changed /many, replaced /file, replaced /many/entry2, "
                      "replaced /many/entry4");
}

/* A directory becomes a link, and that another directory. */
static void test_kept_directories(Served *t, gconstpointer unused)
{
    uint64_t other, many = found(t, FUSE_ROOT_ID, "many");
    g_autofree char *old = path_of(t, "many"), *new = path_of(t, "moved");

    found(t, many, "entry1");
    found(t, FUSE_ROOT_ID, "file");
    age_files(t);
    g_assert_cmpint(rename(old, new), ==, 0);
    g_assert_cmpint(symlink("moved", old), ==, 0);
    assert_changes(t, "replaced /many, replaced /many/entry1");
    g_assert_cmpint(ask(t, FUSE_GETATTR, many, NULL, 0), ==, ESTALE);
    g_assert_cmpint(unlink(old), ==, 0);
    g_assert_cmpint(rename(new, old), ==, 0);
    other = found(t, FUSE_ROOT_ID, "many");
    g_assert_cmpuint(other, >, many);
    found(t, other, "entry1");
    age_files(t);
    g_assert_cmpint(rename(old, new), ==, 0);
    g_assert_cmpint(mkdir(old, 0755), ==, 0);
    assert_changes(t, "replaced /many, replaced /many/entry1");
}

static void test_asked(Served *t, gconstpointer unused)
{
    FuseServer *s = &t->server;
    uint64_t many, file;

    make_file(t, "a b%\xff\n", "");
    found(t, FUSE_ROOT_ID, "a b%\xff\n");
    file = found(t, FUSE_ROOT_ID, "file");
    many = found(t, FUSE_ROOT_ID, "many");
    g_assert_cmpint(look_up(t, many, "nothing"), ==, ENOENT);
    g_assert_cmpint(read_file(t, file, 2, 3), ==, 0);
    g_assert_cmpint(ask(t, FUSE_READLINK, found(t, FUSE_ROOT_ID, "link"), NULL,
                        0), ==, 0);
    set_shows_changes(t, false);
    assert_lines(fuse_asked_describe(&s->asked, &s->names), "");
    set_shows_changes(t, true);
    fuse_names_find(&s->names, file)->seen.changed = 42;
    assert_lines(fuse_asked_describe(&s->asked, &s->names),
                 "look 0 0 0 /a%20b%25%FF%0A, look 0 0 42 /file, "
                 "look 0 0 0 /many, read 2 3 42 /file, look 0 0 0 /link, "
                 "link 0 0 0 /link");
    forget(t, file, 1);
    set_shows_changes(t, true);
    fuse_asked_reset(&s->asked);
    list(t, FUSE_READDIRPLUS, many, 4096);
    g_assert_cmpuint(s->asked.requests->len, ==, ENTRIES);
    fuse_asked_reset(&s->asked);
    assert_lines(fuse_asked_describe(&s->asked, &s->names), "");
    for (int i = 0; i < 70000; i++) {
        fuse_asked_add(&s->asked, FUSE_READ, many, i, 1);
        fuse_asked_add(&s->asked, FUSE_GETATTR, many, 0, 0);
    }
    g_assert_cmpuint(s->asked.requests->len, ==, 65536);
}

/* The first file in a list that the server wrote */
static const struct fuse_direntplus *first_listed(Served *t, uint64_t id)
{
    const struct fuse_direntplus *entry = (void *)t->data;
    const struct fuse_read_in asked = { .size = sizeof(t->data) };
    size_t size;

    g_assert_cmpint(ask(t, FUSE_READDIRPLUS, id, &asked, sizeof(asked)), ==,
                    0);
    while (entry->dirent.name[0] == '.') {
        size = FUSE_NAME_OFFSET_DIRENTPLUS + entry->dirent.namelen;
        entry = (void *)((char *)entry + FUSE_DIRENT_ALIGN(size));
    }
    return entry;
}

/* A guest that keeps all is told of a file once. */
static void test_listed_again(Served *t, gconstpointer unused)
{
    FuseServer *s = &t->server;
    uint64_t many = found(t, FUSE_ROOT_ID, "many"), id, inode;

    id = first_listed(t, many)->entry_out.nodeid;
    inode = first_listed(t, many)->dirent.ino;
    g_assert_cmpuint(id, !=, 0);
    g_assert_cmpuint(first_listed(t, many)->entry_out.nodeid, ==, id);
    s->names.cache = true;
    g_assert_cmpuint(first_listed(t, many)->entry_out.nodeid, ==, 0);
    g_assert_cmpuint(first_listed(t, many)->dirent.ino, ==, inode);
    /* Until the host has replaced it */
    g_assert_cmpuint(g_hash_table_size(s->names.by_id), ==, ENTRIES + 2);
    fuse_asked_reset(&s->asked);
    first_listed(t, many);
    g_assert_cmpuint(s->asked.requests->len, ==, 0);
    g_ptr_array_unref(fuse_kept_check(&s->names, s->root));
    g_assert_cmpuint(first_listed(t, many)->entry_out.nodeid, >, ENTRIES + 2);
    g_assert_cmpuint(s->asked.requests->len, ==, ENTRIES);
}

/* Anything, of any length, with any room for the answer */
static void test_random(Served *t, gconstpointer unused)
{
    char arguments[256];

    t->server.names.cache = g_test_rand_bit();
    for (int i = 0; i < 200000; i++) {
        size_t size = g_test_rand_int_range(0, sizeof(arguments));

        for (size_t at = 0; at < size; at += sizeof(uint32_t)) {
            uint32_t word = g_test_rand_bit() ? g_test_rand_int()
                            : g_test_rand_int_range(0, 4);

            memcpy(arguments + at, &word, MIN(sizeof(word), size - at));
        }
        t->room = g_test_rand_int_range(0, sizeof(t->data));
        ask(t, g_test_rand_int_range(0, 60), g_test_rand_int_range(0, 40),
            arguments, size);
        if (g_test_rand_int_range(0, 8) == 0) {
            look_up(t, FUSE_ROOT_ID, g_test_rand_bit() ? "file" : "many");
        }
    }
}

static void add(const char *name, void (*test)(Served *, gconstpointer))
{
    g_autofree char *path = g_strdup_printf("/fuse-server/%s", name);

    g_test_add(path, Served, NULL, setup, test, teardown);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add("init", test_init);
    add("read", test_read);
    add("other-files", test_other_files);
    add("names", test_names);
    add("forget", test_forget);
    add("open-files", test_open_files);
    add("directory", test_directory);
    add("replaced", test_replaced);
    add("replaced-file", test_replaced_file);
    add("removed-file", test_removed_file);
    add("replaced-link", test_replaced_link);
    add("mount", test_mount);
    add("file-systems", test_file_systems);
    add("overlay", test_overlay);
    add("lease", test_lease);
    add("replaced-open-file", test_replaced_open_file);
    add("replaced-directory", test_replaced_directory);
    add("forgotten-directory", test_forgotten_directory);
    add("fifo", test_fifo);
    add("device", test_device);
    add("file-system", test_file_system);
    add("unsearched", test_unsearched);
    add("depth", test_depth);
    add("cache", test_cache);
    add("kept", test_kept);
    add("kept-directories", test_kept_directories);
    add("asked", test_asked);
    add("listed-again", test_listed_again);
    add("random", test_random);
    return g_test_run();
}
