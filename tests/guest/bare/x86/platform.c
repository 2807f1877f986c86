/*
 * Bare-metal test guest: serial port, options, end
 *
 * Options are files of fw_cfg, opt/vpmu/NAME.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "internal.h"

#define SERIAL          0x3f8
#define SERIAL_LSR      (SERIAL + 5)
#define LSR_THRE        BIT(5)
#define EXIT_PORT       0xf4
#define FW_CFG_SELECT   0x510
#define FW_CFG_DATA     0x511
#define FW_CFG_FILE_DIR 0x19
#define FW_CFG_NAME     56

void put_serial(char c)
{
    while (!(inb(SERIAL_LSR) & LSR_THRE)) {
        pause();
    }
    outb(SERIAL, c);
}

static uint32_t fw_cfg_be(unsigned bytes)
{
    uint32_t value = 0;

    while (bytes--) {
        value = value << 8 | inb(FW_CFG_DATA);
    }
    return value;
}

static void fw_cfg_read(char *buffer, size_t size)
{
    while (size--) {
        *buffer++ = inb(FW_CFG_DATA);
    }
}

/* Select a file; returns its length, or 0 if it does not exist. */
static uint32_t fw_cfg_find(const char *name)
{
    uint32_t files;

    outw(FW_CFG_SELECT, FW_CFG_FILE_DIR);
    for (files = fw_cfg_be(4); files; files--) {
        uint32_t length = fw_cfg_be(4);
        uint16_t select = fw_cfg_be(2);
        char file[FW_CFG_NAME + 1] = "";

        fw_cfg_be(2);
        fw_cfg_read(file, FW_CFG_NAME);
        if (streq(file, name)) {
            outw(FW_CFG_SELECT, select);
            return length;
        }
    }
    return 0;
}

bool read_option(const char *name, char *text, size_t size)
{
    char path[FW_CFG_NAME] = "opt/vpmu/";
    uint32_t length;

    memcpy(path + strlen(path), name, strlen(name) + 1);
    length = fw_cfg_find(path);
    if (length >= size) {
        length = 0;
    }
    fw_cfg_read(text, length);
    text[length] = 0;
    return length != 0;
}

void end_machine(bool good)
{
    /* QEMU's exit status is 2 * value + 1. */
    outl(EXIT_PORT, good ? 0x10 : 0x11);
    for (;;) {
        asm volatile("hlt");
    }
}
