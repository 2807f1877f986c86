/*
 * Performance monitoring unit: the agent's protocol, by which a guest describes
 * itself to a profile
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include <inttypes.h>
#include "hw/pmu/profile/talk.h"

/* Bytes of nonsense */
#define NONSENSE 1000000

/* A guest that sends messages, and the parsed messages as text */
typedef struct Guest {
    PmuTalk talk;
    GString *heard;
} Guest;

static void hear_task(void *opaque, const PmuTaskLayout *l)
{
    Guest *g = opaque;

    g_string_append_printf(g->heard, "task %" PRIx64 " %u %u %u;", l->current,
                           l->pid, l->tgid, l->comm);
    g_assert_cmpuint(l->current % 8, ==, 0);
    g_assert_cmpuint((l->pid | l->tgid | l->comm) % 4, ==, 0);
    g_assert_cmpuint(l->pid | l->tgid | l->comm, <=, 65535);
}

static void hear_map(void *opaque, const PmuTalkMap *m)
{
    Guest *g = opaque;

    g_string_append_printf(g->heard, "map %" PRIu64 " %u %" PRIx64 " %" PRIx64
                           " %" PRIx64 " %s;", m->age_ns, m->pid, m->start,
                           m->length, m->offset, m->path);
    g_assert_cmpuint(m->age_ns, <=, PMU_TALK_MAX_AGE);
    g_assert_cmpuint(m->pid, <, PMU_TASK_MAX_PID);
}

static void hear_fork(void *opaque, const PmuTalkFork *f)
{
    Guest *g = opaque;

    g_string_append_printf(g->heard, "fork %" PRIu64 " %u %u;", f->age_ns,
                           f->pid, f->parent);
    g_assert_cmpuint(f->pid, <, PMU_TASK_MAX_PID);
    g_assert_cmpuint(f->parent, <, PMU_TASK_MAX_PID);
}

static void hear_flush(void *opaque)
{
    Guest *g = opaque;

    g_string_append(g->heard, "flush;");
}

static void hear_nonsense(void *opaque, const char *why)
{
    Guest *g = opaque;

    g_string_append_printf(g->heard, "%s;", why);
}

static const PmuTalkOps listener = {
    .task = hear_task,
    .map = hear_map,
    .fork = hear_fork,
    .flush = hear_flush,
    .nonsense = hear_nonsense,
};

static void say(Guest *g, const void *bytes, size_t size)
{
    pmu_talk_listen(&g->talk, bytes, size, &listener, g);
}

static Guest new_guest(void)
{
    Guest g = { .heard = g_string_new("") };

    pmu_talk_begin(&g.talk);
    return g;
}

static void free_guest(Guest *g)
{
    g_string_free(g->heard, true);
}

static void check(const char *said, const char *heard)
{
    Guest g = new_guest();

    say(&g, said, strlen(said));
    g_assert_cmpstr(g.heard->str, ==, heard);
    free_guest(&g);
}

static void test_task(void)
{
    check("task 0x1fb80 2480 2484 3008\n", "task 1fb80 2480 2484 3008;");
    check("task 0xfffffffffffffff8 0 65532 0xfffc\n",
          "task fffffffffffffff8 0 65532 65532;");
}

static void test_map(void)
{
    check("map 0 1 0x400000 0x1000 0x2000 /bin/a b\n",
          "map 0 1 400000 1000 2000 /bin/a b;");
    check("map 10000000000 4194303 0xffffffffffffffff 1 18446744073709551615 "
          "[vdso]\n",
          "map 10000000000 4194303 ffffffffffffffff 1 ffffffffffffffff "
          "[vdso];");
    check("map 0 1 2 3 4 " "\n", "map 0 1 2 3 4 ;");
}

static void test_fork(void)
{
    check("fork 5 20 10\n", "fork 5 20 10;");
}

static void test_flush(void)
{
    check("flush\n", "flush;");
    check("flush", "");
}

#define NOT_TASK "not a valid line of task;"
#define NOT_MAP  "not a valid line of map;"
#define NOT_FORK "not a valid line of fork;"

static void test_numbers(void)
{
    static const char *const tasks[] = {
        "", " ", " 8", " 8 4 4", " 8 4 4 4 4", " 8 4 4 4 ", "  8 4 4 4",
        " 8  4 4 4", " 7 4 4 4", " 8 2 4 4", " 8 4 2 4", " 8 4 4 2",
        " 8 65536 4 4", " 8 4 65536 4", " 8 4 4 65536", " 8 4 4 -4",
        " 8 4 4 +4", " 8 4 4 4x", " 8 4 4 x", " 8 4 4 0x", " 0x8g 4 4 4",
        " 0x10000000000000000 4 4 4", " 18446744073709551616 4 4 4",
        " 8 4 4 4\t", " 8\t4 4 4", " 8 4 4 4\r",
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(tasks); i++) {
        g_autofree char *said = g_strdup_printf("task%s\n", tasks[i]);

        check(said, NOT_TASK);
    }
}

static void test_bounds(void)
{
    check("map 10000000001 1 2 3 4 /\n", NOT_MAP);
    check("map 0 4194304 2 3 4 /\n", NOT_MAP);
    check("map 0 1 2 3 4\n", NOT_MAP);
    check("map 0 1 2 3 /\n", NOT_MAP);
    check("fork 10000000001 1 2\n", NOT_FORK);
    check("fork 0 4194304 2\n", NOT_FORK);
    check("fork 0 1 4194304\n", NOT_FORK);
    check("flush now\n", "not a valid line of flush;");
    check("flush " "\n", "not a valid line of flush;");
}

static void test_words(void)
{
    static const char *const lines[] = {
        "\n", " task 8 4 4 4\n", "Task 8 4 4 4\n", "tas 8 4 4 4\n",
        "taskk 8 4 4 4\n", "hello\n", "\x80\xff\n", "\r\n",
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(lines); i++) {
        check(lines[i], "neither task, map, fork nor flush;");
    }
}

/* Lines arrive in arbitrary pieces, and are independent of each other. */
static void test_parts(void)
{
    static const char lines[] = "nonsense\nfork 5 20 10\nflush\nfork\nflush\n";
    Guest g = new_guest();

    for (unsigned i = 0; i < sizeof(lines) - 1; i++) {
        say(&g, lines + i, 1);
    }
    g_assert_cmpstr(g.heard->str, ==, "neither task, map, fork nor flush;"
                    "fork 5 20 10;flush;" NOT_FORK "flush;");
    free_guest(&g);
}

static void test_long(void)
{
    static const char map[] = "map 0 1 2 3 4 ";
    g_autofree char *path = g_strnfill(PMU_TALK_MAX_LINE - sizeof(map), 'p');
    g_autofree char *said = g_strdup_printf("%s%s\n", map, path);
    g_autofree char *heard = g_strdup_printf("%s%s;", map, path);
    g_autofree char *longer = g_strdup_printf("%s%sp\nflush\n", map, path);

    check(said, heard);
    check(longer, "a line that is too long;flush;");
}

static void test_nul(void)
{
    Guest g = new_guest();

    say(&g, "flush\0\nflush\n", 13);
    g_assert_cmpstr(g.heard->str, ==, "a line with a NUL;flush;");
    free_guest(&g);
}

static void test_begin(void)
{
    Guest g = new_guest();

    say(&g, "nonsense", 8);
    pmu_talk_begin(&g.talk);
    say(&g, "flush\n", 6);
    g_assert_cmpstr(g.heard->str, ==, "flush;");
    free_guest(&g);
}

/* Half of the nonsense consists of words that are parts of lines. */
static void test_nonsense(void)
{
    static const char *const words[] = {
        "task ", "map ", "fork ", "flush", "\n", " ", "0x", "8 ", "4 4 4",
        "18446744073709551615 ", "0 1 2 3 4 /bin/sh", "-1 ", "%s", "65532 ",
    };
    Guest g = new_guest();

    for (unsigned i = 0; i < NONSENSE; i++) {
        const char *word = words[g_test_rand_int_range(0,
                                                       G_N_ELEMENTS(words))];
        uint8_t byte = g_test_rand_int();

        if (g_test_rand_bit()) {
            say(&g, word, strlen(word));
        } else if (g_test_rand_int_range(0, 10) == 0) {
            say(&g, &byte, 1);
        }
        if (g.heard->len > 100000) {
            g_string_truncate(g.heard, 0);
        }
    }
    say(&g, "\nflush\n", 7);
    g_assert_true(g_str_has_suffix(g.heard->str, ";flush;"));
    free_guest(&g);
}

int main(int argc, char *argv[])
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/pmu/talk/task", test_task);
    g_test_add_func("/pmu/talk/map", test_map);
    g_test_add_func("/pmu/talk/fork", test_fork);
    g_test_add_func("/pmu/talk/flush", test_flush);
    g_test_add_func("/pmu/talk/numbers", test_numbers);
    g_test_add_func("/pmu/talk/bounds", test_bounds);
    g_test_add_func("/pmu/talk/words", test_words);
    g_test_add_func("/pmu/talk/parts", test_parts);
    g_test_add_func("/pmu/talk/long", test_long);
    g_test_add_func("/pmu/talk/nul", test_nul);
    g_test_add_func("/pmu/talk/begin", test_begin);
    g_test_add_func("/pmu/talk/nonsense", test_nonsense);
    return g_test_run();
}
