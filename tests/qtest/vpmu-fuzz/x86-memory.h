/*
 * Fuzzer of the virtual PMU: what x86's guest memory must hold
 *
 * Windows of it, where PEBS finds what it is told and writes its records.  All
 * other memory below the end of RAM holds zeros, but for what an SMI saves, and
 * no record goes there: whatever programs say, a buffer lies in REF_BUFFER or
 * where nothing can be written.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef VPMU_FUZZ_X86_MEMORY_H
#define VPMU_FUZZ_X86_MEMORY_H

/* main.c asks for -m 256; behind that there is nothing. */
#define REF_RAM_END 0x10000000u

/* The page to which an SMI saves the CPU's state */
#define REF_SMM_STATE 0x3f000u

/* Behind the buffer there is memory that can only be read. */
#define REF_BUFFER      0xb8000u
#define REF_BUFFER_SIZE 0x8000u

/* The firmware, which is below 1 MiB, too.  It holds zeros but for an area. */
#define REF_ROM_SIZE 0x10000u
#define REF_ROM      (-REF_ROM_SIZE)
#define REF_LOW_ROM  (0x100000u - REF_ROM_SIZE)

/*
 * DS save areas: one in a page, and one whose words lie across the end of a
 * page; three whose end is none any more, from the reset values, the threshold
 * and the maximum on; and one that can be read.
 */
#define REF_DS_IN_PAGE      (REF_RAM_END - 0x3f00)
#define REF_DS_ACROSS_PAGES (REF_RAM_END - 0x2033)
#define REF_DS_NO_RESETS    (REF_RAM_END - 0x40)
#define REF_DS_NO_THRESHOLD (REF_RAM_END - 0x38)
#define REF_DS_NO_MAXIMUM   (REF_RAM_END - 0x30)
#define REF_DS_IN_ROM       (REF_ROM + 0x1000)

/* What PEBS takes from them */
#define REF_DS_INDEX     0x28
#define REF_DS_MAXIMUM   0x30
#define REF_DS_THRESHOLD 0x38
#define REF_DS_RESET     0x40

#define REF_DS_NR_RESETS 12
#define REF_DS_SIZE      (REF_DS_RESET + REF_DS_NR_RESETS * 8)
#define REF_DS_NR_FIELDS ((REF_DS_SIZE - REF_DS_INDEX) / 8)

/**
 * struct RefWindow - memory that is known
 * @base: its address
 * @size: how much
 * @rom: it cannot be written
 * @bytes: what it holds
 * @unknown: the bits of it that the reference knows nothing of
 */
typedef struct RefWindow {
    uint32_t base, size;
    bool rom;
    uint8_t *bytes, *unknown;
} RefWindow;

/**
 * ref_windows - all of it, ended by one without a size
 */
extern RefWindow ref_windows[];

/**
 * ref_memory_reset - areas with room for records, and no records
 */
void ref_memory_reset(void);

/**
 * ref_can_write - whether all of a range can be written
 * @addr: its linear address, of which the CPU uses 32 bits
 * @size: how long it is
 */
bool ref_can_write(uint64_t addr, unsigned size);

/**
 * ref_read_word - 8 bytes; false if there is no memory
 */
bool ref_read_word(uint64_t addr, uint64_t *word);

/**
 * ref_write_word - 8 bytes, of which some bits may be unknown; there must be
 *                  memory
 */
void ref_write_word(uint64_t addr, uint64_t word, uint64_t unknown);

/**
 * ref_safe_area - where a DS save area may be
 * @val: where a program wants it; what is made smaller may want any place
 *
 * Returns: one of the areas, if what there is in memory is none.
 */
uint64_t ref_safe_area(uint64_t val);

/**
 * ref_safe_field - what a field of a DS save area may be
 * @offset: the field's; reset values may be anything
 * @val: what a program wants
 *
 * Returns: an address in REF_BUFFER, if it would be one of other memory.
 */
uint64_t ref_safe_field(unsigned offset, uint64_t val);

#endif /* VPMU_FUZZ_X86_MEMORY_H */
