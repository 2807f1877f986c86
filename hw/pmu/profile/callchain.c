/*
 * Performance monitoring unit: callers, found by frame pointers
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "hw/pmu/profile/callchain.h"

static uint64_t to_host64(const PmuStack *stack, uint64_t val)
{
    return stack->big_endian ? GUINT64_FROM_BE(val) : GUINT64_FROM_LE(val);
}

static uint32_t to_host32(const PmuStack *stack, uint32_t val)
{
    return stack->big_endian ? GUINT32_FROM_BE(val) : GUINT32_FROM_LE(val);
}

bool pmu_stack_read(const PmuStack *stack, uint64_t addr, uint64_t *val)
{
    union {
        uint32_t word32;
        uint64_t word64;
    } read = {};

    if (addr % stack->word
        || !stack->read(stack->opaque, addr, &read, stack->word)) {
        return false;
    }
    *val = stack->word == 4 ? to_host32(stack, read.word32)
                            : to_host64(stack, read.word64);
    return true;
}

static bool may_begin_at(const PmuStack *stack, uint64_t frame, uint64_t lowest)
{
    return frame >= lowest && frame <= stack->highest
           && frame - lowest < stack->reach;
}

unsigned pmu_callchain(const PmuStack *stack, uint64_t frame,
                       uint64_t *callers, unsigned max)
{
    uint64_t lowest = stack->lowest;
    unsigned n = 0;

    while (n < max && may_begin_at(stack, frame, lowest)
           && pmu_stack_read(stack, frame + stack->return_offset, &callers[n])
           && callers[n]) {
        n++;
        lowest = frame + 1;
        if (!pmu_stack_read(stack, frame, &frame)) {
            break;
        }
    }
    return n;
}
