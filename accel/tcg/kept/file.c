/*
 * Translated blocks that are kept: the file
 *
 * It has a struct Header, the blocks' host code, and an index, which each begin
 * with a page.  The index has the sums of the parts of host code, lists of blocks,
 * the blocks, and their guest code.  All is as in the memory of the process that
 * wrote it: no other host reads it.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include <sys/file.h>
#include <zlib.h>
#include "qapi/error.h"
#include "internal.h"
#include "tcg/tcg-movable.h"
#include "trace/trace-accel_tcg.h"

/**
 * struct Header - the beginning of a file
 * @magic: which format it has
 * @identity: tb_kept_identity()
 * @nr_calls: how many functions are called
 * @nr_lists: how many lists there are, a power of 2
 * @nr_blocks: how many blocks there are
 * @code_size: the bytes of their guest code
 * @size: the bytes of the host code
 * @checksum: zlib's CRC-32 of all of this, with 0 here, and then of the index
 * @calls: the functions, from where the first one of QEMU is
 */
typedef struct Header {
    char magic[8];
    uint8_t identity[TB_KEPT_IDENTITY];
    uint32_t nr_calls;
    uint32_t nr_lists;
    uint32_t nr_blocks;
    uint32_t code_size;
    uint32_t size;
    uint32_t checksum;
    uint64_t calls[TCG_CALLS];
} Header;

static const char magic[8] = "TCGkept2";

static uint64_t pages(uint64_t size)
{
    return ROUND_UP(size, qemu_real_host_page_size());
}

static uint64_t place_of_blocks(void)
{
    return pages(sizeof(Header));
}

static uint64_t place_of_index(uint32_t size)
{
    return place_of_blocks() + pages(size);
}

static uint64_t sums_size(uint32_t size)
{
    return size / TB_KEPT_PART * sizeof(uint32_t);
}

static uint64_t index_size(const Header *h)
{
    return sums_size(h->size) + h->nr_lists * (uint64_t)sizeof(uint32_t)
           + h->nr_blocks * (uint64_t)sizeof(KeptBlock) + h->code_size;
}

static uint32_t sum_of_header(const Header *h)
{
    Header zeroed = *h;

    zeroed.checksum = 0;
    return crc32(0, (const uint8_t *)&zeroed, sizeof(zeroed));
}

/*
 * Reading
 */

/* Returns an error, or NULL. */
static const char *check_header(const Header *h, uint64_t file_size,
                                const uint8_t *identity, size_t room)
{
    if (memcmp(h->magic, magic, sizeof(magic))) {
        return "not a file of blocks";
    }
    if (memcmp(h->identity, identity, TB_KEPT_IDENTITY)) {
        return "of another QEMU, host or CPU";
    }
    if (h->nr_calls > TCG_CALLS || !is_power_of_2(h->nr_lists)
        || !h->size || !QEMU_IS_ALIGNED(h->size, TB_KEPT_PART)
        || place_of_index(h->size) + index_size(h) != file_size) {
        return "damaged";
    }
    if (h->size > room) {
        return "too large";
    }
    return NULL;
}

/* Lists change when a block is taken; guest code is only compared. */
static void take_index(int fd, const Header *h, uint8_t *index,
                       KeptBlocks *file)
{
    size_t sums = sums_size(h->size);
    size_t lists = h->nr_lists * sizeof(uint32_t);
    size_t blocks = h->nr_blocks * sizeof(KeptBlock);

    *file = (KeptBlocks) {
        .fd = fd,
        .size = h->size,
        .parts = bitmap_new(h->size / TB_KEPT_PART),
        .damaged = bitmap_new(h->size / TB_KEPT_PART),
        .sums = (uint32_t *)index,
        .index = index,
        .index_size = index_size(h),
        .lists = g_memdup2(index + sums, lists),
        .nr_lists = h->nr_lists,
        .blocks = g_memdup2(index + sums + lists, blocks),
        .nr_blocks = h->nr_blocks,
        .code = index + sums + lists + blocks,
        .code_size = h->code_size,
    };
}

static bool read_part(KeptBlocks *file, uint32_t part, uint8_t *place)
{
    uint32_t at = part * TB_KEPT_PART;

    if (pread(file->fd, place + at, TB_KEPT_PART, place_of_blocks() + at)
        != TB_KEPT_PART
        || crc32(0, place + at, TB_KEPT_PART) != file->sums[part]) {
        set_bit(part, file->damaged);
        return false;
    }
    set_bit(part, file->parts);
    return true;
}

bool tb_kept_fetch(KeptBlocks *file, uint32_t at, uint32_t size, uint8_t *place)
{
    for (uint32_t part = at / TB_KEPT_PART;
         part <= (at + size - 1) / TB_KEPT_PART; part++) {
        if (test_bit(part, file->damaged)
            || (!test_bit(part, file->parts)
                && !read_part(file, part, place))) {
            return false;
        }
    }
    return true;
}

/*
 * Let code that is read call its functions.  If code has been flushed that called
 * others, the table has those.
 */
static bool set_calls(const Header *h)
{
    uintptr_t start, end;
    unsigned nr;
    const void *const *calls = tcg_calls(&nr);

    if (!calls) {
        return false;
    }
    tb_kept_functions(&start, &end);
    for (uint32_t i = 0; i < h->nr_calls; i++) {
        const void *function = (const void *)(start + h->calls[i]);

        if (i < nr ? calls[i] != function : !tcg_add_call(function)) {
            return false;
        }
    }
    return true;
}

static const char *read_file(int fd, const uint8_t *identity, size_t room,
                             KeptBlocks *file)
{
    g_autofree Header *h = g_new(Header, 1);
    const char *wrong;
    struct stat about;
    uint8_t *index;

    if (fstat(fd, &about) || !S_ISREG(about.st_mode)
        || pread(fd, h, sizeof(*h), 0) != sizeof(*h)) {
        return "not a file of blocks";
    }
    wrong = check_header(h, about.st_size, identity, room);
    if (wrong) {
        return wrong;
    }
    index = mmap(NULL, index_size(h), PROT_READ, MAP_PRIVATE, fd,
                 place_of_index(h->size));
    if (index == MAP_FAILED) {
        return "it cannot be mapped";
    }
    if (crc32_z(sum_of_header(h), index, index_size(h)) != h->checksum) {
        wrong = "damaged";
    } else if (!set_calls(h)) {
        wrong = "it calls functions in another order";
    }
    if (wrong) {
        munmap(index, index_size(h));
        return wrong;
    }
    take_index(fd, h, index, file);
    return NULL;
}

bool tb_kept_read(const char *name, const uint8_t identity[TB_KEPT_IDENTITY],
                  size_t room, KeptBlocks *file)
{
    int fd = qemu_open_old(name, O_RDONLY | O_NONBLOCK);
    const char *wrong;

    if (fd < 0) {
        trace_tb_kept_not_read(name, strerror(errno));
        return false;
    }
    wrong = read_file(fd, identity, room, file);
    if (wrong) {
        close(fd);
        trace_tb_kept_not_read(name, wrong);
        return false;
    }
    trace_tb_kept_read(name, file->nr_blocks, file->size);
    return true;
}

void tb_kept_close(KeptBlocks *file)
{
    if (file->index) {
        g_free(file->parts);
        g_free(file->damaged);
        g_free(file->lists);
        g_free(file->blocks);
        munmap(file->index, file->index_size);
        close(file->fd);
    }
    *file = (KeptBlocks) { };
}

/*
 * Writing
 */

static bool write_at(int fd, const void *from, size_t size, uint64_t at)
{
    return pwrite(fd, from, size, at) == size;
}

/* The blocks of the old file are written as they are there. */
static bool copy_old(int fd, const KeptBlocks *old)
{
    bool is_written;
    void *map;

    if (!old->size) {
        return true;
    }
    map = mmap(NULL, old->size, PROT_READ, MAP_PRIVATE, old->fd,
               place_of_blocks());
    if (map == MAP_FAILED) {
        return false;
    }
    is_written = write_at(fd, map, old->size, place_of_blocks());
    munmap(map, old->size);
    return is_written;
}

static bool write_index(int fd, const KeptBlocks *new)
{
    size_t sums = sums_size(new->size);
    size_t lists = new->nr_lists * sizeof(uint32_t);
    size_t blocks = new->nr_blocks * sizeof(KeptBlock);
    uint64_t at = place_of_index(new->size);

    return write_at(fd, new->sums, sums, at)
           && write_at(fd, new->lists, lists, at + sums)
           && write_at(fd, new->blocks, blocks, at + sums + lists)
           && write_at(fd, new->code, new->code_size,
                       at + sums + lists + blocks);
}

/* What an interrupted process has left there is overwritten. */
static int open_part(const char *part)
{
    int fd = open(part, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    struct stat here, there;

    if (fd < 0) {
        return -1;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) || fstat(fd, &here) || stat(part, &there)
        || here.st_ino != there.st_ino || ftruncate(fd, 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

/* The file gets its name when it is complete. */
static bool replace(const char *name, const Header *h, const KeptBlocks *old,
                    const uint8_t *blocks, const KeptBlocks *new)
{
    g_autofree char *part = g_strconcat(name, ".part", NULL);
    int fd = open_part(part);
    bool is_replaced;

    if (fd < 0) {
        return false;
    }
    is_replaced = write_at(fd, h, sizeof(*h), 0) && copy_old(fd, old)
                  && write_at(fd, blocks, new->size - old->size,
                              place_of_blocks() + old->size)
                  && write_index(fd, new) && !rename(part, name);
    if (!is_replaced) {
        unlink(part);
    }
    /* Others may write now. */
    close(fd);
    return is_replaced;
}

/* Returns whether all that is called are functions of QEMU itself. */
static bool add_calls(Header *h)
{
    const void *const *calls = tcg_calls(&h->nr_calls);
    uintptr_t start, end;

    tb_kept_functions(&start, &end);
    for (unsigned i = 0; calls && i < h->nr_calls; i++) {
        h->calls[i] = (uintptr_t)calls[i] - start;
        if (h->calls[i] >= end - start) {
            return false;
        }
    }
    return calls;
}

/* A part of the old file that is damaged stays so.  The caller frees them. */
static uint32_t *sums_of(const KeptBlocks *old, const uint8_t *blocks,
                         const KeptBlocks *new)
{
    uint32_t *sums = g_malloc(sums_size(new->size));
    uint32_t part = old->size / TB_KEPT_PART;

    if (part) {
        memcpy(sums, old->sums, sums_size(old->size));
    }
    for (; part < new->size / TB_KEPT_PART; part++) {
        sums[part] = crc32(0, blocks + part * TB_KEPT_PART - old->size,
                           TB_KEPT_PART);
    }
    return sums;
}

static uint32_t checksum_of(const Header *h, const KeptBlocks *new)
{
    uint32_t sum = crc32(sum_of_header(h), (const uint8_t *)new->sums,
                         sums_size(new->size));

    sum = crc32(sum, (const uint8_t *)new->lists,
                new->nr_lists * sizeof(uint32_t));
    sum = crc32(sum, (const uint8_t *)new->blocks,
                new->nr_blocks * sizeof(KeptBlock));
    return crc32(sum, new->code, new->code_size);
}

bool tb_kept_write(const char *name, const uint8_t identity[TB_KEPT_IDENTITY],
                   const KeptBlocks *old, const uint8_t *blocks,
                   const KeptBlocks *new, Error **errp)
{
    g_autofree Header *h = g_new0(Header, 1);
    g_autofree uint32_t *sums = sums_of(old, blocks, new);
    KeptBlocks all = *new;

    memcpy(h->magic, magic, sizeof(magic));
    memcpy(h->identity, identity, TB_KEPT_IDENTITY);
    h->nr_lists = new->nr_lists;
    h->nr_blocks = new->nr_blocks;
    h->code_size = new->code_size;
    h->size = new->size;
    if (!add_calls(h)) {
        error_setg(errp, "The blocks call functions that are not QEMU's, or "
                   "too many");
        return false;
    }
    all.sums = sums;
    h->checksum = checksum_of(h, &all);
    if (!replace(name, h, old, blocks, &all)) {
        error_setg(errp, "The blocks cannot be written to %s", name);
        return false;
    }
    return true;
}
