/*
 * Performance monitoring unit: the task that a guest's CPU runs
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "hw/pmu/profile/task.h"

/* All of the memory: the per-CPU area, and a task after it */
#define BASE 0xffff888000000000ull
#define OWN  0x40
#define TASK 0x100
#define SIZE 0x200

static const PmuTaskLayout layout = {
    .current = 0x18, .pid = 0x20, .tgid = 0x24, .comm = 0x34,
};

typedef struct Kernel {
    uint8_t bytes[SIZE];
    PmuTaskMemory memory;
} Kernel;

static bool read_memory(void *opaque, uint64_t addr, void *buf, unsigned size)
{
    Kernel *k = opaque;

    g_assert_true(size == 4 || size == 8);
    g_assert_cmpuint(addr % size, ==, 0);
    if (addr < BASE || addr - BASE > SIZE - size) {
        return false;
    }
    memcpy(buf, k->bytes + (addr - BASE), size);
    return true;
}

/* In the guest's byte order, whichever the host's is */
static void put(Kernel *k, unsigned at, uint64_t val, unsigned size)
{
    unsigned i;

    for (i = 0; i < size; i++) {
        k->bytes[at + (k->memory.big_endian ? size - 1 - i : i)] = val >> 8 * i;
    }
}

static void put_task(Kernel *k)
{
    put(k, OWN + layout.current, BASE + TASK, 8);
    put(k, TASK + layout.pid, 4321, 4);
    put(k, TASK + layout.tgid, 1234, 4);
    memcpy(k->bytes + TASK + layout.comm, "sixteen letters!", PMU_TASK_COMM);
}

static bool find(Kernel *k, PmuTask *task)
{
    return pmu_task_read(&k->memory, &layout, task);
}

static void test_task(Kernel *k)
{
    PmuTask task;

    g_assert_true(find(k, &task));
    g_assert_cmpuint(task.pid, ==, 1234);
    g_assert_cmpuint(task.tid, ==, 4321);
    g_assert_cmpmem(task.comm, sizeof(task.comm), "sixteen letters!", 16);
}

/* The memory is unmapped, or a part of it is. */
static void test_unmapped(Kernel *k)
{
    static const uint64_t tasks[] = {
        0, UINT64_MAX - 7, BASE - 0x38, BASE + SIZE, BASE + SIZE - 0x20,
        BASE + SIZE - 0x24, BASE + SIZE - 0x40,
    };
    PmuTask task;

    for (unsigned i = 0; i < G_N_ELEMENTS(tasks); i++) {
        put(k, OWN + layout.current, tasks[i], 8);
        g_assert_false(find(k, &task));
    }
    put_task(k);
    k->memory.own = 0;
    g_assert_false(find(k, &task));
    k->memory.own = BASE + SIZE - layout.current;
    g_assert_false(find(k, &task));
}

static void test_misaligned(Kernel *k)
{
    PmuTask task;

    put(k, OWN + layout.current, BASE + TASK + 2, 8);
    g_assert_false(find(k, &task));
    put_task(k);
    k->memory.own += 4;
    g_assert_false(find(k, &task));
}

/* Numbers that no task has */
static void test_no_pid(Kernel *k)
{
    PmuTask task;

    put(k, TASK + layout.pid, PMU_TASK_MAX_PID, 4);
    g_assert_false(find(k, &task));
    put(k, TASK + layout.pid, PMU_TASK_MAX_PID - 1, 4);
    g_assert_true(find(k, &task));
    put(k, TASK + layout.tgid, UINT32_MAX, 4);
    g_assert_false(find(k, &task));
}

static uint64_t anything(void)
{
    return (uint64_t)g_test_rand_int() << 32 | (uint32_t)g_test_rand_int();
}

/* The guest's pointer to its tasks can point to nothing, or to anything. */
static void test_nonsense(Kernel *k)
{
    for (unsigned i = 0; i < 100000; i++) {
        const PmuTaskLayout nonsense = {
            .current = g_test_rand_bit() ? anything() & -8
                                         : 8u * g_test_rand_int_range(0, 64),
            .pid = g_test_rand_int_range(0, 128) * 4,
            .tgid = g_test_rand_int_range(0, 128) * 4,
            .comm = g_test_rand_int_range(0, 128) * 4,
        };
        PmuTask task;

        put(k, g_test_rand_int_range(0, SIZE / 8) * 8,
            g_test_rand_bit() ? anything()
                              : BASE + g_test_rand_int_range(0, SIZE), 8);
        if (pmu_task_read(&k->memory, &nonsense, &task)) {
            g_assert_cmpuint(task.pid, <, PMU_TASK_MAX_PID);
            g_assert_cmpuint(task.tid, <, PMU_TASK_MAX_PID);
        }
    }
}

typedef struct Case {
    void (*test)(Kernel *k);
    bool big_endian;
} Case;

static void run(gconstpointer data)
{
    const Case *c = data;
    Kernel k = {
        .memory = {
            .read = read_memory,
            .opaque = &k,
            .big_endian = c->big_endian,
            .own = BASE + OWN,
        },
    };

    put_task(&k);
    c->test(&k);
}

static void add(const char *name, void (*test)(Kernel *k))
{
    for (int big_endian = 0; big_endian < 2; big_endian++) {
        g_autofree char *path = g_strdup_printf(
            "/pmu/task/%s/%s", big_endian ? "big-endian" : "little-endian",
            name);
        Case *c = g_new(Case, 1);

        *c = (Case) { test, big_endian };
        g_test_add_data_func_full(path, c, run, g_free);
    }
}

int main(int argc, char *argv[])
{
    g_test_init(&argc, &argv, NULL);
    add("task", test_task);
    add("unmapped", test_unmapped);
    add("misaligned", test_misaligned);
    add("no-pid", test_no_pid);
    add("nonsense", test_nonsense);
    return g_test_run();
}
