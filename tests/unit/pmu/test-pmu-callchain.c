/*
 * Performance monitoring unit: callchains, by frame pointers
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "hw/pmu/profile/callchain.h"

/* The stack is the only memory. */
#define BASE 0x7fff0000ull
#define SIZE 0x100

typedef struct Memory {
    uint8_t bytes[SIZE];
    PmuStack stack;
    uint64_t callers[16];
} Memory;

static bool read_memory(void *opaque, uint64_t addr, void *buf, unsigned size)
{
    Memory *m = opaque;

    g_assert_cmpuint(addr % size, ==, 0);
    if (addr < BASE || addr - BASE > SIZE - size) {
        return false;
    }
    memcpy(buf, m->bytes + (addr - BASE), size);
    return true;
}

/* In the guest's byte order, whichever the host's is */
static void put(Memory *m, unsigned at, uint64_t val)
{
    unsigned i, word = m->stack.word;

    for (i = 0; i < word; i++) {
        m->bytes[at + (m->stack.big_endian ? word - 1 - i : i)] = val >> 8 * i;
    }
}

/* A frame at an offset, the next frame and the return address */
static void put_frame(Memory *m, unsigned at, uint64_t next, uint64_t caller)
{
    put(m, at, next);
    put(m, at + m->stack.return_offset, caller);
}

static void assert_callers(Memory *m, uint64_t frame, unsigned max,
                           unsigned count)
{
    unsigned i;

    g_assert_cmpuint(pmu_callchain(&m->stack, frame, m->callers, max), ==,
                     count);
    for (i = 0; i < count; i++) {
        g_assert_cmphex(m->callers[i], ==, 0x1001 + i);
    }
}

/* Frames at 0x10, 0x40 and 0x80, called from 0x1001, 0x1002 and 0x1003 */
static void put_three(Memory *m)
{
    put_frame(m, 0x10, BASE + 0x40, 0x1001);
    put_frame(m, 0x40, BASE + 0x80, 0x1002);
    put_frame(m, 0x80, 0, 0x1003);
}

static void test_three(Memory *m)
{
    put_three(m);
    assert_callers(m, BASE + 0x10, 16, 3);
}

static void test_max(Memory *m)
{
    put_three(m);
    assert_callers(m, BASE + 0x10, 0, 0);
    assert_callers(m, BASE + 0x10, 1, 1);
    assert_callers(m, BASE + 0x10, 2, 2);
    assert_callers(m, BASE + 0x10, 3, 3);
}

static void test_loops(Memory *m)
{
    put_three(m);
    put(m, 0x80, BASE + 0x80);
    assert_callers(m, BASE + 0x10, 16, 3);
    put(m, 0x80, BASE + 0x10);
    assert_callers(m, BASE + 0x10, 16, 3);
}

static void test_unmapped(Memory *m)
{
    put_three(m);
    put(m, 0x80, BASE + SIZE);
    assert_callers(m, BASE + 0x10, 16, 3);
    assert_callers(m, BASE + SIZE, 16, 0);
    assert_callers(m, 0, 16, 0);
    assert_callers(m, -(uint64_t)m->stack.word, 16, 0);
}

/* The frame ends the memory; its return address lies beyond. */
static void test_half_mapped(Memory *m)
{
    put_three(m);
    put(m, 0x80, BASE + SIZE - m->stack.word);
    assert_callers(m, BASE + 0x10, 16, 3);
}

static void test_misaligned(Memory *m)
{
    put_three(m);
    put(m, 0x40, BASE + 0x80 + 1);
    assert_callers(m, BASE + 0x10, 16, 2);
    assert_callers(m, BASE + 0x10 + m->stack.word / 2, 16, 0);
}

static void test_returns_to_0(Memory *m)
{
    put_three(m);
    put_frame(m, 0x40, BASE + 0x80, 0);
    assert_callers(m, BASE + 0x10, 16, 1);
}

static void test_bounds(Memory *m)
{
    put_three(m);
    m->stack.lowest = BASE + 0x11;
    assert_callers(m, BASE + 0x10, 16, 0);
    m->stack.lowest = BASE + 0x10;
    assert_callers(m, BASE + 0x10, 16, 3);
    m->stack.highest = BASE + 0x7f;
    assert_callers(m, BASE + 0x10, 16, 2);
}

/* From the lowest address to the first frame, and from each to the next */
static void test_reach(Memory *m)
{
    put_three(m);
    m->stack.lowest = BASE;
    m->stack.reach = 0x10;
    assert_callers(m, BASE + 0x10, 16, 0);
    m->stack.reach = 0x11;
    assert_callers(m, BASE + 0x10, 16, 1);
    m->stack.reach = 0x30;
    assert_callers(m, BASE + 0x10, 16, 2);
    m->stack.reach = 0x40;
    assert_callers(m, BASE + 0x10, 16, 3);
}

static void test_read(Memory *m)
{
    uint64_t val = 0;

    put(m, 0x20, 0x81828384);
    g_assert_true(pmu_stack_read(&m->stack, BASE + 0x20, &val));
    g_assert_cmphex(val, ==, 0x81828384);
    g_assert_false(pmu_stack_read(&m->stack, BASE + 0x21, &val));
    g_assert_false(pmu_stack_read(&m->stack, BASE + SIZE, &val));
}

typedef struct Case {
    void (*test)(Memory *m);
    PmuStack stack;
} Case;

static void run(gconstpointer data)
{
    const Case *c = data;
    Memory m = { .stack = c->stack };

    m.stack.read = read_memory;
    m.stack.opaque = &m;
    c->test(&m);
}

/* On i386 hosts, the compiler defines a macro i386. */
static const PmuStack of_x86_64 = {
    .word = 8, .return_offset = 8, .highest = UINT64_MAX, .reach = UINT64_MAX,
};
static const PmuStack of_i386 = {
    .word = 4, .return_offset = 4, .highest = UINT32_MAX, .reach = UINT64_MAX,
};
static const PmuStack of_ppc64 = {
    .word = 8, .return_offset = 16, .highest = UINT64_MAX, .reach = UINT64_MAX,
    .big_endian = true,
};
static const PmuStack of_ppc = {
    .word = 4, .return_offset = 4, .highest = UINT32_MAX, .reach = UINT64_MAX,
    .big_endian = true,
};

static void add_case(const char *test_name, void (*test)(Memory *m),
                     const char *stack_name, const PmuStack *stack)
{
    g_autofree char *path = g_strdup_printf("/pmu/callchain/%s/%s", stack_name,
                                            test_name);
    Case *c = g_new(Case, 1);

    *c = (Case) { test, *stack };
    g_test_add_data_func_full(path, c, run, g_free);
}

static void add(const char *name, void (*test)(Memory *m))
{
    add_case(name, test, "x86_64", &of_x86_64);
    add_case(name, test, "i386", &of_i386);
    add_case(name, test, "ppc64", &of_ppc64);
    add_case(name, test, "ppc", &of_ppc);
}

int main(int argc, char *argv[])
{
    g_test_init(&argc, &argv, NULL);
    add("three", test_three);
    add("max", test_max);
    add("loops", test_loops);
    add("unmapped", test_unmapped);
    add("half-mapped", test_half_mapped);
    add("misaligned", test_misaligned);
    add("returns-to-0", test_returns_to_0);
    add("bounds", test_bounds);
    add("reach", test_reach);
    add("read", test_read);
    return g_test_run();
}
