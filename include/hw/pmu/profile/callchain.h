/*
 * Performance monitoring unit: callers, found by frame pointers
 *
 * With frame pointers, each stack frame begins with the address of its caller's
 * frame, which is above it: the saved (R/E)BP on x86, and the back chain on
 * Power.  An address to which a function returns is stored at a fixed distance
 * from there.
 *
 * All of this is read from a guest's memory, and so may be any value.
 *
 * Plain C on GLib, in any thread.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_PROFILE_CALLCHAIN_H
#define HW_PMU_PROFILE_CALLCHAIN_H

/**
 * PmuReadFn - read a guest's memory
 * @opaque: as in struct PmuStack
 * @addr: a virtual address
 * @buf: is set to the contents
 * @size: 4 or 8 bytes; @addr is a multiple of it
 *
 * Returns: false if it cannot be read; then the contents of @buf are undefined.
 */
typedef bool PmuReadFn(void *opaque, uint64_t addr, void *buf, unsigned size);

/* PmuStack.reach for programs, and for kernels, whose stacks are small */
#define PMU_STACK_REACH        (1024 * 1024)
#define PMU_STACK_REACH_KERNEL (64 * 1024)

/**
 * struct PmuStack - a guest's stack
 * @read: reads the guest's memory
 * @opaque: for @read
 * @word: the size of an address, 4 or 8 bytes
 * @big_endian: the guest's byte order
 * @return_offset: offset of the return address from the beginning of a frame
 * @lowest, @highest: where frames may begin
 * @reach: how far above the last frame; code without frame pointers uses their
 *         register for other values, which are seldom that near
 */
typedef struct PmuStack {
    PmuReadFn *read;
    void *opaque;
    unsigned word;
    bool big_endian;
    unsigned return_offset;
    uint64_t lowest;
    uint64_t highest;
    uint64_t reach;
} PmuStack;

/**
 * pmu_stack_read - read an address from the stack
 * @stack: the stack
 * @addr: where it is
 * @val: is set to it
 *
 * Returns: false if @addr is not aligned, or cannot be read.
 */
bool pmu_stack_read(const PmuStack *stack, uint64_t addr, uint64_t *val);

/**
 * pmu_callchain - find the addresses to which functions return
 * @stack: the stack
 * @frame: where the innermost frame begins
 * @callers: is set to the addresses, the innermost first
 * @max: how many there may be
 *
 * Ends before the first frame that is not above the last one and in its reach,
 * that is outside the stack, not aligned or not readable, or that returns to 0.
 *
 * Returns: how many there are.
 */
unsigned pmu_callchain(const PmuStack *stack, uint64_t frame,
                       uint64_t *callers, unsigned max);

#endif /* HW_PMU_PROFILE_CALLCHAIN_H */
