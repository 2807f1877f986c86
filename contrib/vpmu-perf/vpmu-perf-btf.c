/*
 * vpmu-perf-btf - where the running kernel has the members of its structures
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/btf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vpmu-perf-btf.h"

static struct {
    char *data;
    const char *strings;
    /* By their number, which begins at 1 */
    const struct btf_type **types;
    unsigned n;
} btf;

static bool read_all(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    off_t done = 0;
    ssize_t n = 1;

    if (fd >= 0 && fstat(fd, &st) == 0) {
        btf.data = malloc(st.st_size);
    }
    if (!btf.data) {
        close(fd);
        return false;
    }
    while (done < st.st_size && n > 0) {
        n = read(fd, btf.data + done, st.st_size - done);
        done += n;
    }
    close(fd);
    return n > 0;
}

/* How many bytes follow the members that all types have. */
static size_t length_of_rest(const struct btf_type *type)
{
    size_t n = BTF_INFO_VLEN(type->info);

    switch (BTF_INFO_KIND(type->info)) {
    case BTF_KIND_INT:
    case BTF_KIND_VAR:
    case BTF_KIND_DECL_TAG:
        return sizeof(uint32_t);
    case BTF_KIND_ARRAY:
        return sizeof(struct btf_array);
    case BTF_KIND_STRUCT:
    case BTF_KIND_UNION:
        return n * sizeof(struct btf_member);
    case BTF_KIND_ENUM:
        return n * sizeof(struct btf_enum);
    case BTF_KIND_ENUM64:
        return n * sizeof(struct btf_enum64);
    case BTF_KIND_FUNC_PROTO:
        return n * sizeof(struct btf_param);
    case BTF_KIND_DATASEC:
        return n * sizeof(struct btf_var_secinfo);
    default:
        return 0;
    }
}

bool btf_open(void)
{
    const struct btf_header *header;
    const char *at, *end;

    if (!read_all("/sys/kernel/btf/vmlinux")) {
        return false;
    }
    header = (const void *)btf.data;
    at = btf.data + header->hdr_len + header->type_off;
    end = at + header->type_len;
    btf.strings = btf.data + header->hdr_len + header->str_off;
    btf.types = calloc(header->type_len / sizeof(struct btf_type) + 1,
                       sizeof(*btf.types));
    if (header->magic != BTF_MAGIC || !btf.types) {
        return false;
    }
    while (at < end) {
        btf.types[++btf.n] = (const void *)at;
        at += sizeof(struct btf_type) + length_of_rest((const void *)at);
    }
    return true;
}

static bool has_members(const struct btf_type *type)
{
    return BTF_INFO_KIND(type->info) == BTF_KIND_STRUCT ||
           BTF_INFO_KIND(type->info) == BTF_KIND_UNION;
}

static int offset_in(const struct btf_type *type, const char *name)
{
    const struct btf_member *member = (const void *)(type + 1);
    unsigned n = has_members(type) ? BTF_INFO_VLEN(type->info) : 0;

    for (; n--; member++) {
        int begin = BTF_MEMBER_BIT_OFFSET(member->offset) / 8, within;

        if (!strcmp(btf.strings + member->name_off, name)) {
            return begin;
        }
        if (member->name_off) {
            continue;
        }
        within = offset_in(btf.types[member->type], name);
        if (within >= 0) {
            return begin + within;
        }
    }
    return -1;
}

int btf_offset(const char *structure, const char *member)
{
    for (unsigned i = 1; i <= btf.n; i++) {
        const struct btf_type *type = btf.types[i];

        if (BTF_INFO_KIND(type->info) == BTF_KIND_STRUCT &&
            !strcmp(btf.strings + type->name_off, structure)) {
            return offset_in(type, member);
        }
    }
    return -1;
}

void btf_close(void)
{
    free(btf.types);
    free(btf.data);
    memset(&btf, 0, sizeof(btf));
}
