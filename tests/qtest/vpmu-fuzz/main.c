/*
 * Fuzzer of the virtual PMU: main program
 *
 * One process has started QEMU and runs nothing.  Its children run programs; if
 * one dies, another tries shorter ones.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include <sys/mman.h>
#include <sys/wait.h>
#include "qemu/main-loop.h"
#include "system/replay.h"
#include "system/system.h"
#include "fuzz.h"

/* No program takes this long, even on a slow machine. */
#define HANGS_AFTER_SECONDS 120

/* One in so many programs is run twice. */
#define TWICE_EVERY 16

/* At least one of so many changed streams can be loaded. */
#define MANY_STREAMS 100

static gint64 seed = 1, programs = G_MAXINT64, seconds;
static int length = 200;
static gboolean list_faces, streams;
static char *replay, *keep;

static const GOptionEntry options[] = {
    { "list", 0, 0, G_OPTION_ARG_NONE, &list_faces, "list the faces", NULL },
    { "seed", 0, 0, G_OPTION_ARG_INT64, &seed, "of the first program", "N" },
    { "programs", 0, 0, G_OPTION_ARG_INT64, &programs, "how many", "N" },
    { "seconds", 0, 0, G_OPTION_ARG_INT64, &seconds, "for how long", "N" },
    { "length", 0, 0, G_OPTION_ARG_INT, &length, "operations of one", "N" },
    { "streams", 0, 0, G_OPTION_ARG_NONE, &streams,
      "change what is saved in the midst of each", NULL },
    { "replay", 0, 0, G_OPTION_ARG_FILENAME, &replay, "run this", "FILE" },
    { "keep", 0, 0, G_OPTION_ARG_FILENAME, &keep,
      "where the program that fails is written", "FILE" },
    { }
};

/* Progress that children report */
static struct Progress {
    uint64_t seed, programs, ops, loaded, refused;
} *progress;

/*
 * QEMU
 */

/* Create a file in place of the firmware, which is never executed. */
static char *new_firmware(void)
{
    char *path;
    int fd = g_file_open_tmp("vpmu-fuzz-XXXXXX", &path, NULL);

    g_assert(fd >= 0 && ftruncate(fd, 64 * 1024) == 0);
    close(fd);
    return path;
}

static void start_qemu(const char *program, const FuzzFace *face)
{
    g_autofree char *firmware = new_firmware();
    g_autofree char *line = g_strdup_printf(
        "%s -S -nodefaults -display none -smp 2 -m 256 -bios %s %s", program,
        firmware, face->args);
    int argc;
    char **argv;

    g_assert(g_shell_parse_argv(line, &argc, &argv, NULL));
    qemu_init(argc, argv);
    unlink(firmware);
    fuzz_machine_start();
    fuzz_target.start(face);
}

/*
 * Children
 */

static GArray *make(uint64_t seed)
{
    return streams ? fuzz_make_stream(seed, length / 10)
                   : fuzz_make_program(seed, length);
}

static void run_twice(const GArray *program)
{
    uint64_t first = fuzz_digest();

    fuzz_run_program(program, &progress->ops);
    fuzz_expecting = true;
    fuzz_expect("what is seen the second time", fuzz_digest(), first);
}

static void run_seed(uint64_t seed)
{
    GArray *program = make(seed);

    alarm(HANGS_AFTER_SECONDS);
    fuzz_run_program(program, &progress->ops);
    if (!streams && seed % TWICE_EVERY == 0) {
        run_twice(program);
    }
    g_array_unref(program);
}

static void run_seeds(gint64 until)
{
    while (progress->programs < programs
           && (!until || g_get_monotonic_time() < until)) {
        run_seed(progress->seed);
        progress->seed++;
        progress->programs++;
        progress->loaded = fuzz_streams_loaded;
        progress->refused = fuzz_streams_refused;
    }
}

/* Suppress QEMU's messages about refused streams; a replay shows them. */
static void be_quiet(void)
{
    int null = open("/dev/null", O_WRONLY);

    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
}

/* Returns: whether a child that runs this fails */
static bool child_fails(bool quiet, void (*run)(const void *), const void *data)
{
    pid_t child;
    int status;

    fflush(NULL);
    child = fork();
    g_assert(child >= 0);
    if (!child) {
        if (quiet) {
            be_quiet();
        }
        run(data);
        _exit(0);
    }
    while (waitpid(child, &status, 0) < 0) {
        g_assert(errno == EINTR);
    }
    return status != 0;
}

static void child_of_seeds(const void *until)
{
    run_seeds(*(const gint64 *)until);
}

static void child_of_program(const void *program)
{
    alarm(HANGS_AFTER_SECONDS);
    fuzz_run_program(program, NULL);
}

/* A replayed program whose changes are not made proves nothing. */
static void child_of_replay(const void *program)
{
    child_of_program(program);
    if (fuzz_pokes_missed) {
        fprintf(stderr, "there was nothing to poke\n");
        _exit(2);
    }
}

static bool program_fails(const GArray *program)
{
    return child_fails(true, child_of_program, program);
}

/*
 * Output
 */

static int show_failure(const FuzzFace *face)
{
    GArray *program = make(progress->seed);

    printf("%s: seed %" PRIu64 " fails\n", face->name, progress->seed);
    if (!program_fails(program)) {
        printf("%s: but not by itself; the first one was %" PRIi64 "\n",
               face->name, seed);
        programs = progress->programs + 1;
        *progress = (struct Progress) { .seed = seed };
        child_fails(false, child_of_seeds, &(const gint64) { 0 });
        return 1;
    }
    fuzz_shrink(program, program_fails);
    printf("# %s\n", face->name);
    fuzz_write_program(program, stdout);
    if (keep) {
        FILE *to = fopen(keep, "w");

        g_assert(to);
        fprintf(to, "# %s\n", face->name);
        fuzz_write_program(program, to);
        fclose(to);
    }
    child_fails(false, child_of_program, program);
    return 1;
}

/* If all streams are refused, no loaded state was ever checked. */
static bool all_are_refused(void)
{
    return !progress->loaded && progress->refused >= MANY_STREAMS;
}

static int fuzz(const FuzzFace *face)
{
    gint64 until = seconds ? g_get_monotonic_time() + seconds * G_USEC_PER_SEC
                           : 0;

    progress->seed = seed;
    if (child_fails(true, child_of_seeds, &until)) {
        return show_failure(face);
    }
    printf("%s: %" PRIu64 " programs, %" PRIu64 " operations", face->name,
           progress->programs, progress->ops);
    if (streams) {
        printf(", %" PRIu64 " streams loaded, %" PRIu64 " refused",
               progress->loaded, progress->refused);
    }
    printf("\n");
    return all_are_refused();
}

static const FuzzFace *find_face(const char *name)
{
    for (unsigned i = 0; name && i < fuzz_target.nr_faces; i++) {
        if (g_str_equal(fuzz_target.faces[i].name, name)) {
            return &fuzz_target.faces[i];
        }
    }
    fprintf(stderr, "no such face; --list names them\n");
    exit(2);
}

static int show_faces(void)
{
    for (unsigned i = 0; i < fuzz_target.nr_faces; i++) {
        puts(fuzz_target.faces[i].name);
    }
    return 0;
}

int main(int argc, char **argv)
{
    g_autoptr(GOptionContext) context = g_option_context_new("FACE");
    g_autoptr(GError) err = NULL;
    const FuzzFace *face;

    g_option_context_add_main_entries(context, options, NULL);
    if (!g_option_context_parse(context, &argc, &argv, &err)) {
        fprintf(stderr, "%s\n", err->message);
        return 2;
    }
    if (list_faces) {
        return show_faces();
    }
    face = find_face(argv[1]);
    progress = mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    start_qemu(argv[0], face);
    return replay ? child_fails(false, child_of_replay,
                                fuzz_read_program(replay))
                  : fuzz(face);
}
