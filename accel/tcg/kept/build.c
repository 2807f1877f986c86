/*
 * Translated blocks that are kept: which processes translate alike
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include <elf.h>
#include <link.h>
#include "cpu.h"
#include "host/cpuinfo.h"
#include "qemu/cacheinfo.h"
#include "qemu/main-loop.h"
#include "qom/object.h"
#include "hw/pmu/compat.h"
#include "internal.h"

/* QEMU's own file, as the dynamic linker has mapped it. */
typedef struct Build {
    uintptr_t start;
    uintptr_t end;
    const uint8_t *id;
    size_t id_size;
} Build;

static void find_id(Build *build, const uint8_t *at, size_t size, size_t align)
{
    static const char gnu[] = ELF_NOTE_GNU;
    const ElfW(Nhdr) *note;
    size_t content, next;

    for (; size >= sizeof(*note); at += next, size -= next) {
        note = (const void *)at;
        content = ROUND_UP(sizeof(*note) + (size_t)note->n_namesz, align);
        next = ROUND_UP(content + (size_t)note->n_descsz, align);
        if (next > size) {
            return;
        }
        if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == sizeof(gnu)
            && !memcmp(at + sizeof(*note), gnu, sizeof(gnu))) {
            build->id = at + content;
            build->id_size = note->n_descsz;
        }
    }
}

/* The first object is the program. */
static int see_program(struct dl_phdr_info *info, size_t size, void *opaque)
{
    Build *build = opaque;

    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + part->p_vaddr;

        if (part->p_type == PT_NOTE) {
            find_id(build, (const uint8_t *)start, part->p_memsz,
                    MAX(part->p_align, 4));
        } else if (part->p_type == PT_LOAD && part->p_flags & PF_X) {
            build->start = MIN(build->start, start);
            build->end = MAX(build->end, start + part->p_memsz);
        }
    }
    return 1;
}

static Build this_build(void)
{
    Build build = { .start = UINTPTR_MAX };

    dl_iterate_phdr(see_program, &build);
    return build;
}

void tb_kept_functions(uintptr_t *start, uintptr_t *end)
{
    Build build = this_build();

    *start = build.start;
    *end = build.end;
}

static void add_text(GChecksum *sum, const char *text)
{
    g_checksum_update(sum, (const uint8_t *)text, strlen(text) + 1);
}

/*
 * The CPU's features, its PMU, and the core that it shows, to which a link
 * leads, decide which code is generated.  So this has all properties, as the
 * state of a CPU is not one of them.
 */
static void add_properties(GChecksum *sum, Object *obj, bool with_links)
{
    ObjectPropertyIterator iter;
    ObjectProperty *property;

    add_text(sum, object_get_typename(obj));
    object_property_iter_init(&iter, obj);
    while ((property = object_property_iter_next(&iter))) {
        const char *name = property->name;

        if (g_str_has_prefix(property->type, "link<")) {
            Object *other = object_property_get_link(obj, name, NULL);

            if (other && with_links) {
                add_properties(sum, other, false);
            }
        } else if (property->get && !g_str_has_prefix(property->type, "child<")) {
            g_autofree char *value = object_property_print(obj, name, false,
                                                           NULL);

            add_text(sum, name);
            add_text(sum, value ?: "");
        }
    }
}

bool tb_kept_identity(CPUState *cpu, uint8_t identity[TB_KEPT_IDENTITY])
{
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    const uint8_t *prologue = (const uint8_t *)tcg_qemu_tb_exec;
    Build build = this_build();
    size_t size = TB_KEPT_IDENTITY;
    unsigned host[] = {
        cpuinfo, qemu_icache_linesize, qemu_dcache_linesize,
        tcg_ctx->code_gen_buffer - (void *)prologue,
    };

    if (!build.id) {
        return false;
    }
    BQL_LOCK_GUARD();
    g_checksum_update(sum, build.id, build.id_size);
    g_checksum_update(sum, (const uint8_t *)host, sizeof(host));
    add_text(sum, object_get_typename(OBJECT(current_machine)));
    add_properties(sum, OBJECT(cpu), true);
    g_checksum_get_digest(sum, identity, &size);
    return true;
}
