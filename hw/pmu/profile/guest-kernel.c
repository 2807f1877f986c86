/*
 * Performance monitoring unit: which kernel a guest runs
 *
 * VMCOREINFO is an ELF note of lines KEY=VALUE, which Linux documents in
 * Documentation/admin-guide/kdump/vmcoreinfo.rst.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "hw/pmu/profile/guest-kernel.h"

/* In an ELF note, the name follows three numbers of 32 bits. */
#define NOTE_NAME_OFFSET 12
#define NOTE_NAME        "VMCOREINFO"
#define NOTE_TEXT_OFFSET 24

/**
 * struct Text - text without a NUL at its end
 * @start: its first byte
 * @length: how many it has
 */
typedef struct Text {
    const char *start;
    size_t length;
} Text;

static Text without_line(Text text, Text line)
{
    size_t skip = MIN(line.length + 1, text.length);

    return (Text) { text.start + skip, text.length - skip };
}

/* Returns: all of it if @stop is not in it */
static Text up_to(char stop, Text text)
{
    const char *end = memchr(text.start, stop, text.length);

    if (end) {
        text.length = end - text.start;
    }
    return text;
}

static bool begins_with(Text text, const char *start)
{
    size_t length = strlen(start);

    return text.length >= length && !memcmp(text.start, start, length);
}

/* Returns: the rest of the line that begins with @key; empty without one */
static Text find_value(Text text, const char *key)
{
    while (text.length) {
        Text line = up_to('\n', text);

        if (begins_with(line, key)) {
            line.start += strlen(key);
            line.length -= strlen(key);
            return line;
        }
        text = without_line(text, line);
    }
    return text;
}

/* Returns: the number; 0 if @text is not a number of at most 64 bits */
static uint64_t hexadecimal(Text text)
{
    uint64_t val = 0;
    size_t i;

    for (i = 0; i < text.length; i++) {
        if (i == 16 || !g_ascii_isxdigit(text.start[i])) {
            return 0;
        }
        val = val << 4 | g_ascii_xdigit_value(text.start[i]);
    }
    return val;
}

bool pmu_guest_kernel_set_build_id(PmuGuestKernel *kernel, const char *text,
                                   size_t length)
{
    uint8_t id[PMU_KERNEL_MAX_BUILD_ID] = {}, any = 0;
    size_t i;

    if (length % 2 || length > 2 * sizeof(id)) {
        return false;
    }
    for (i = 0; i < length; i++) {
        if (!g_ascii_isxdigit(text[i])) {
            return false;
        }
        id[i / 2] = id[i / 2] << 4 | g_ascii_xdigit_value(text[i]);
        any |= id[i / 2];
    }
    if (!any) {
        return false;
    }
    memcpy(kernel->build_id, id, sizeof(id));
    kernel->build_id_size = length / 2;
    return true;
}

static void set_release(PmuGuestKernel *kernel, Text release)
{
    memcpy(kernel->release, release.start,
           MIN(release.length, PMU_KERNEL_MAX_RELEASE));
}

/* A page holds the note, followed by zeroes. */
static Text note_text(const char *note, size_t size)
{
    return up_to('\0', (Text) { note + NOTE_TEXT_OFFSET,
                                size - NOTE_TEXT_OFFSET });
}

static bool is_vmcoreinfo(const char *note, size_t size)
{
    return size > NOTE_TEXT_OFFSET
           && !memcmp(note + NOTE_NAME_OFFSET, NOTE_NAME, sizeof(NOTE_NAME));
}

bool pmu_guest_kernel_parse(PmuGuestKernel *kernel, const void *note,
                            size_t size)
{
    Text text, id;

    *kernel = (PmuGuestKernel) {};
    if (!is_vmcoreinfo(note, size)) {
        return false;
    }
    text = note_text(note, size);
    id = find_value(text, "BUILD-ID=");
    set_release(kernel, find_value(text, "OSRELEASE="));
    pmu_guest_kernel_set_build_id(kernel, id.start, id.length);
    kernel->text = hexadecimal(find_value(text, "SYMBOL(_stext)="));
    return kernel->text;
}
