/*
 * Suite space: two address spaces, with code that runs in only one of them
 *
 * Counts do not depend on them.  `run` checks a profile, in which all samples
 * between two labels must be of one space.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "pmu.h"

#define TURNS 10000
#define ENTRIES (PAGE_SIZE / sizeof(uint64_t))

/* Aligned: a page after similar tables would look like Linux's isolation. */
static uint64_t other_tables[ENTRIES] __attribute__((aligned(2 * PAGE_SIZE)));

/*
 * Blocks that end with a switch, and others; RSI has the other tables.
 */
CODE("space_turns:\n"
     "    mov $other_tables, %esi\n"
     "    mov %cr3, %rdx\n"
     "space_home:\n"
     "    nop\n"
     "    nop\n"
     "    jmp 1f\n"
     "1:  nop\n"
     "    nop\n"
     "space_home_end:\n"
     "    mov %rsi, %cr3\n"
     "space_other:\n"
     "    nop\n"
     "    jmp 2f\n"
     "2:  nop\n"
     "    nop\n"
     "space_other_end:\n"
     "    mov %rdx, %cr3\n"
     "    dec %rdi\n"
     "    jnz space_home\n"
     "    ret\n");
code_fn space_turns;

TEST(space, switches)
{
    uint64_t home = read_cr3();

    memcpy(other_tables, (const void *)(home & -PAGE_SIZE), PAGE_SIZE);
    expect_counts("switches of tables", measure_kernel(space_turns, TURNS), 0,
                  13 * TURNS + 3);
    expect(read_cr3(), home, "tables");
}
