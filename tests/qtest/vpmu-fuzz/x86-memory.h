/*
 * Fuzzer of the virtual PMU: a reference of x86's guest memory
 *
 * Windows of memory, in which PEBS reads DS save areas and writes its records.
 * All other memory below the end of RAM holds zeros, except for the state that
 * an SMI saves.  PEBS writes no record there: every buffer lies in REF_BUFFER,
 * or where memory cannot be written.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef VPMU_FUZZ_X86_MEMORY_H
#define VPMU_FUZZ_X86_MEMORY_H

/* main.c uses -m 256; no memory follows. */
#define REF_RAM_END 0x10000000u

/* The page to which an SMI saves the CPU's state */
#define REF_SMM_STATE 0x3f000u

/* Read-only memory follows the buffer. */
#define REF_BUFFER      0xb8000u
#define REF_BUFFER_SIZE 0x8000u

/* The firmware, also visible below 1 MiB.  It holds zeros and one area. */
#define REF_ROM_SIZE 0x10000u
#define REF_ROM      (-REF_ROM_SIZE)
#define REF_LOW_ROM  (0x100000u - REF_ROM_SIZE)

/*
 * DS save areas: one within a page; one whose words cross the end of a page;
 * three that reach beyond the end of memory, with their reset values, their
 * threshold, or their maximum; and one in read-only memory.
 */
#define REF_DS_IN_PAGE      (REF_RAM_END - 0x3f00)
#define REF_DS_ACROSS_PAGES (REF_RAM_END - 0x2033)
#define REF_DS_NO_RESETS    (REF_RAM_END - 0x40)
#define REF_DS_NO_THRESHOLD (REF_RAM_END - 0x38)
#define REF_DS_NO_MAXIMUM   (REF_RAM_END - 0x30)
#define REF_DS_IN_ROM       (REF_ROM + 0x1000)

/* Fields that PEBS reads */
#define REF_DS_INDEX     0x28
#define REF_DS_MAXIMUM   0x30
#define REF_DS_THRESHOLD 0x38
#define REF_DS_RESET     0x40

#define REF_DS_NR_RESETS 12
#define REF_DS_SIZE      (REF_DS_RESET + REF_DS_NR_RESETS * 8)
#define REF_DS_NR_FIELDS ((REF_DS_SIZE - REF_DS_INDEX) / 8)

/**
 * struct RefWindow - a window of memory
 * @base: its address
 * @size: its size
 * @rom: it cannot be written
 * @bytes: its contents
 * @unknown: the bits that the reference cannot predict
 */
typedef struct RefWindow {
    uint32_t base, size;
    bool rom;
    uint8_t *bytes, *unknown;
} RefWindow;

/**
 * ref_windows - all windows, ended by one without a size
 */
extern RefWindow ref_windows[];

/**
 * ref_memory_reset - make areas with room for records, and without records
 */
void ref_memory_reset(void);

/**
 * ref_can_write - whether all of a range can be written
 * @addr: its linear address; the CPU uses 32 bits
 * @size: its size
 */
bool ref_can_write(uint64_t addr, unsigned size);

/**
 * ref_read_word - read 8 bytes; false if there is no memory
 */
bool ref_read_word(uint64_t addr, uint64_t *word);

/**
 * ref_write_word - write 8 bytes, with some bits possibly unknown; there must
 *                  be memory
 */
void ref_write_word(uint64_t addr, uint64_t word, uint64_t unknown);

/**
 * ref_safe_area - a valid address of a DS save area
 * @val: the address from a program; a shrunk program can contain any
 *
 * Returns: @val, or one of the areas if @val would be other memory.
 */
uint64_t ref_safe_area(uint64_t val);

/**
 * ref_safe_field - a valid value of a field of a DS save area
 * @offset: the field's offset; reset values can be anything
 * @val: the value from a program
 *
 * Returns: @val, or an address in REF_BUFFER if @val would be other memory.
 */
uint64_t ref_safe_field(unsigned offset, uint64_t val);

#endif /* VPMU_FUZZ_X86_MEMORY_H */
