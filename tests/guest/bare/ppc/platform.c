/*
 * Bare-metal test guest: serial port, options, start and end
 *
 * Options are words NAME=VALUE of the machine's command line (QEMU's -append),
 * which begins with "vpmu".
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "internal.h"

/* The serial port of the LPC bus's ISA space. */
#define SERIAL          0x60300d00103f8ull
#define SERIAL_LSR      5
#define LSR_THRE        0x20

#define MARK "vpmu "

/* Part of the device tree */
static const char *command_line;

void put_serial(char c)
{
    /* A device's registers. */
    volatile uint8_t *serial = (uint8_t *)SERIAL;

    while (!(serial[SERIAL_LSR] & LSR_THRE)) {
        continue;
    }
    *serial = c;
}

/* Find the command line somewhere in the device tree. */
static const char *find_command_line(const void *fdt)
{
    size_t size = ((const uint32_t *)fdt)[1];
    const char *end = (const char *)fdt + size - strlen(MARK);

    for (const char *p = fdt; p < end; p++) {
        if (!memcmp(p, MARK, strlen(MARK))) {
            return p;
        }
    }
    return NULL;
}

/* Returns: the text after " NAME=", or NULL */
static const char *find_option(const char *name)
{
    size_t length = strlen(name);

    for (const char *p = command_line; *p; p++) {
        if (*p == ' ' && !memcmp(p + 1, name, length) && p[1 + length] == '=') {
            return p + 1 + length + 1;
        }
    }
    return NULL;
}

bool read_option(const char *name, char *text, size_t size)
{
    const char *value = find_option(name);
    size_t length = 0;

    while (value && value[length] && value[length] != ' ') {
        length++;
    }
    if (length >= size) {
        length = 0;
    }
    for (size_t i = 0; i < length; i++) {
        text[i] = value[i];
    }
    text[length] = 0;
    return length != 0;
}

void start_machine(const void *fdt)
{
    command_line = find_command_line(fdt);
    init_machine();
    if (!command_line) {
        stop_machine();
    }
    main();
}

void park_other_cpu(void)
{
    while (mfspr(SPR_PIR) != 0) {
        pause();
    }
}

void end_machine(bool good)
{
    /* `run` ends QEMU, with no more output than necessary. */
    (void)good;
    for (;;) {
        continue;
    }
}
