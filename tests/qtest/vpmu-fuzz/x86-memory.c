/*
 * Fuzzer of the virtual PMU: a reference of x86's guest memory
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "x86-memory.h"

#define PAGE 0x1000u

/* From the end of the buffer on, records would go to ROM. */
#define NO_BUFFER_END 0xe0000u

/* The bytes of a buffer without records */
#define NO_RECORD 0x55

#define WINDOW(start, length, ...)                                       \
    {                                                                    \
        .base = (start), .size = (length), .bytes = (uint8_t[length]) {}, \
        .unknown = (uint8_t[length]) {}, ## __VA_ARGS__                  \
    }

RefWindow ref_windows[] = {
    WINDOW(REF_BUFFER, REF_BUFFER_SIZE),
    WINDOW(REF_RAM_END - 4 * PAGE, 4 * PAGE),
    WINDOW(REF_ROM, REF_ROM_SIZE, .rom = true),
    { }
};

/* The firmware has two addresses: translate the low one. */
static uint32_t without_low_rom(uint32_t addr)
{
    return addr - REF_LOW_ROM < REF_ROM_SIZE ? addr - REF_LOW_ROM + REF_ROM
                                             : addr;
}

static const RefWindow *window_at(uint32_t addr, uint32_t *offset)
{
    for (const RefWindow *w = ref_windows; w->size; w++) {
        *offset = without_low_rom(addr) - w->base;
        if (*offset < w->size) {
            return w;
        }
    }
    return NULL;
}

bool ref_can_write(uint64_t addr, unsigned size)
{
    uint32_t at;

    for (unsigned i = 0; i < size; i++) {
        const RefWindow *w = window_at(addr + i, &at);

        if (!w || w->rom) {
            return false;
        }
    }
    return true;
}

bool ref_read_word(uint64_t addr, uint64_t *word)
{
    uint32_t at;

    *word = 0;
    for (unsigned i = 0; i < 8; i++) {
        const RefWindow *w = window_at(addr + i, &at);

        if (w) {
            g_assert(!w->unknown[at]);
            *word |= (uint64_t)w->bytes[at] << 8 * i;
        } else if ((uint32_t)(addr + i) >= REF_RAM_END) {
            *word = 0;
            return false;
        }
    }
    return true;
}

static void put_word(uint64_t addr, uint64_t word, uint64_t unknown)
{
    uint32_t at;

    for (unsigned i = 0; i < 8; i++) {
        const RefWindow *w = window_at(addr + i, &at);

        if (w) {
            w->bytes[at] = word >> 8 * i;
            w->unknown[at] = unknown >> 8 * i;
        }
    }
}

void ref_write_word(uint64_t addr, uint64_t word, uint64_t unknown)
{
    g_assert(ref_can_write(addr, 8));
    put_word(addr, word, unknown);
}

/* Write a DS save area, as far as there is memory. */
static void put_area(uint32_t area, uint64_t index, unsigned room,
                     unsigned threshold)
{
    put_word(area + REF_DS_INDEX, index, 0);
    put_word(area + REF_DS_MAXIMUM, index + room, 0);
    put_word(area + REF_DS_THRESHOLD, index + threshold, 0);
    for (unsigned i = 0; i < REF_DS_NR_RESETS; i++) {
        put_word(area + REF_DS_RESET + i * 8, -(uint64_t)(i + 2), 0);
    }
}

/* Fields of areas that overlap have values that suit both areas. */
void ref_memory_reset(void)
{
    for (const RefWindow *w = ref_windows; w->size; w++) {
        memset(w->bytes, w->base == REF_BUFFER ? NO_RECORD : 0, w->size);
        memset(w->unknown, 0, w->size);
    }
    put_area(REF_DS_IN_PAGE, REF_BUFFER, 0x1800, 0x400);
    put_area(REF_DS_ACROSS_PAGES, REF_BUFFER + 0x1fcb, 0x800, 0x801);
    put_area(REF_DS_NO_RESETS, REF_BUFFER + 0x4000, 0x400, 0x800);
    put_area(REF_DS_IN_ROM, REF_BUFFER, 0x1000, 0);
}

static bool is_own_area(uint32_t addr)
{
    switch (addr) {
    case REF_DS_IN_PAGE:
    case REF_DS_ACROSS_PAGES:
    case REF_DS_NO_RESETS:
    case REF_DS_NO_THRESHOLD:
    case REF_DS_NO_MAXIMUM:
        return true;
    default:
        return false;
    }
}

uint64_t ref_safe_area(uint64_t val)
{
    uint32_t addr = val, at;

    for (unsigned i = REF_DS_INDEX; i < REF_DS_SIZE; i++) {
        const RefWindow *w = window_at(addr + i, &at);

        if (w && !w->rom && !is_own_area(addr)) {
            return val - addr + REF_DS_IN_PAGE;
        }
    }
    return val;
}

uint64_t ref_safe_field(unsigned offset, uint64_t val)
{
    uint32_t addr = val;

    if (offset >= REF_DS_RESET || addr >= REF_RAM_END
        || (addr >= REF_BUFFER && addr < NO_BUFFER_END)) {
        return val;
    }
    return val - addr + REF_BUFFER + addr % REF_BUFFER_SIZE;
}
