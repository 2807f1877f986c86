/*
 * Performance monitoring unit: who called what, by frame pointers
 *
 * Compilers that are told to keep frame pointers make each stack frame begin
 * with the address of its caller's, which is above it: x86's saved (R/E)BP, and
 * Power's back chain.  At a fixed distance from there is an address to which a
 * function returns.
 *
 * All of this is what a guest has in its memory, and so may be anything.
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
 * @buf: is set to what is there
 * @size: of that; 4 or 8, and @addr is a multiple of it
 *
 * Returns: false if it cannot be read; then @buf may be anything.
 */
typedef bool PmuReadFn(void *opaque, uint64_t addr, void *buf, unsigned size);

/* For programs, and for kernels, whose stacks are small */
#define PMU_STACK_REACH        (1024 * 1024)
#define PMU_STACK_REACH_KERNEL (64 * 1024)

/**
 * struct PmuStack - a guest's stack
 * @read: reads the guest's memory
 * @opaque: for @read
 * @word: the size of an address, 4 or 8 bytes
 * @big_endian: the guest's byte order
 * @return_offset: from where a frame begins to the address of return
 * @lowest, @highest: where frames may begin
 * @reach: how far above the last one; what keeps no frame pointers has other
 *         things in their register, which are seldom that near
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
 * pmu_callchain - find to where functions return
 * @stack: the stack
 * @frame: where the innermost frame begins
 * @callers: is set to the addresses, the innermost first
 * @max: how many there may be
 *
 * Ends before the first frame that is not above the last and in its reach, not
 * within the stack, not aligned or not to be read, or that returns to 0.
 *
 * Returns: how many there are.
 */
unsigned pmu_callchain(const PmuStack *stack, uint64_t frame,
                       uint64_t *callers, unsigned max);

#endif /* HW_PMU_PROFILE_CALLCHAIN_H */
