/*
 * vpmu-perf-seed - let the kernel hand out the same random bytes in each run
 *
 * Linux cannot be told to do so, and its generator is seeded anew as time goes
 * by.  So programs for its virtual machine (BPF) write other bytes over the
 * random ones, before the process goes on.  Each thread has a generator of its
 * own, SplitMix64, whose state begins with a number that its parent's generator
 * has made.  So the bytes depend neither on the order in which processes and
 * threads run, nor on their numbers.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vpmu-perf-btf.h"
#include "vpmu-perf-seed.h"

/* What getrandom() and the devices have in common */
#define SOURCE "get_random_bytes_user"
#define PROBES "/sys/bus/event_source/devices/kprobe/type"
/* As many as Linux has numbers for, or nearly so */
#define THREADS 65536

/* In a kernel's struct pt_regs: the first argument, and what is returned. */
#if defined(__x86_64__)
#define ARGUMENT 112
#define RETURNED 80
#elif defined(__powerpc64__)
#define ARGUMENT 24
#define RETURNED 24
#endif

/* Of the kernel's enum iter_type */
enum { ITER_UBUF, ITER_IOVEC };

/* A thread's: its generator, and where it wants bytes. */
struct thread {
    uint64_t state;
    /* Of enum iter_type: its buffer, or a list of buffers in the kernel */
    uint64_t kind, where;
    /* How long this buffer still is, and how much is still to be replaced */
    uint64_t room, left;
};
/* The key of the job's generator; a thread's key is its address. */
#define JOB 0
#define FIELD(NAME) ((int)offsetof(struct thread, NAME))

static struct {
    int map;
    /* Offsets in the kernel's structures */
    int stack, counts, kind, where;
} seed;

/*
 * Programs
 *
 * Registers: R0 has results; R1 to R5 arguments, which a call destroys; R6 to
 * R9 are kept; FP is the end of the stack.
 */

enum { R0, R1, R2, R3, R4, R5, R6, R7, R8, R9, FP };

#define INSTRUCTION(CODE, DST, SRC, OFF, IMM)                       \
    { .code = CODE, .dst_reg = DST, .src_reg = SRC, .off = OFF,     \
      .imm = (int32_t)(IMM) }
#define ALU(OP, DST, SRC)                                           \
    INSTRUCTION(BPF_ALU64 | BPF_X | (OP), DST, SRC, 0, 0)
#define ALUI(OP, DST, IMM)                                          \
    INSTRUCTION(BPF_ALU64 | BPF_K | (OP), DST, 0, 0, IMM)
#define MOV(DST, SRC) ALU(BPF_MOV, DST, SRC)
#define MOVI(DST, IMM) ALUI(BPF_MOV, DST, IMM)
#define ADDI(DST, IMM) ALUI(BPF_ADD, DST, IMM)
/* The lower half */
#define LOW(DST, SRC) INSTRUCTION(BPF_ALU | BPF_X | BPF_MOV, DST, SRC, 0, 0)
#define LOAD(DST, BASE, OFF)                                        \
    INSTRUCTION(BPF_LDX | BPF_DW | BPF_MEM, DST, BASE, OFF, 0)
#define STORE(BASE, OFF, SRC)                                       \
    INSTRUCTION(BPF_STX | BPF_DW | BPF_MEM, BASE, SRC, OFF, 0)
#define STOREI(BASE, OFF, IMM)                                      \
    INSTRUCTION(BPF_ST | BPF_DW | BPF_MEM, BASE, 0, OFF, IMM)
#define WIDE(DST, SRC, VALUE)                                       \
    INSTRUCTION(BPF_LD | BPF_DW | BPF_IMM, DST, SRC, 0, VALUE),     \
    INSTRUCTION(0, 0, 0, 0, (uint64_t)(VALUE) >> 32)
#define CALL(WHAT)                                                  \
    INSTRUCTION(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_##WHAT)
#define RETURN                                                      \
    MOVI(R0, 0), INSTRUCTION(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)

/* Where a jump goes: no instruction, and taken out before Linux sees it. */
#define IS_LABEL 0xff
#define LABEL(NAME) INSTRUCTION(IS_LABEL, 0, 0, NAME, 0)
enum { END, FOUND, NEXT, LONG, WRITE, REST, LABELS };

#define JUMP(TO) INSTRUCTION(BPF_JMP | BPF_JA, 0, 0, TO, 0)
#define JUMP_IF(DST, OP, IMM, TO)                                   \
    INSTRUCTION(BPF_JMP | BPF_K | (OP), DST, 0, TO, IMM)
#define JUMP_IF_R(DST, OP, SRC, TO)                                 \
    INSTRUCTION(BPF_JMP | BPF_X | (OP), DST, SRC, TO, 0)
/* It jumps when it was executed 8 million times: Linux wants loops to end. */
#define JUMP_AT_LAST(TO) INSTRUCTION(BPF_JMP | 0xe0, 0, 0, TO, 0)

/* An address on the stack */
#define STACK(DST, OFF) MOV(DST, FP), ADDI(DST, OFF)
#define MAP(DST) WIDE(DST, BPF_PSEUDO_MAP_FD, seed.map)
/* On the stack: which thread it is, by its address in the kernel */
#define THREAD (-8)
/* R0 becomes its struct thread, or NULL. */
#define LOOK_UP MAP(R1), STACK(R2, THREAD), CALL(map_lookup_elem)
#define LOOK_UP_CURRENT                                             \
    CALL(get_current_task), STORE(FP, THREAD, R0), LOOK_UP
/* Copy to the stack from the kernel's address in R3. */
#define READ(OFF, SIZE)                                             \
    STACK(R1, OFF), MOVI(R2, SIZE), CALL(probe_read_kernel)
/* The same from the process's address */
#define READ_USER(OFF, SIZE)                                        \
    STACK(R1, OFF), MOVI(R2, SIZE), CALL(probe_read_user)
/* Copy from the stack to the process's address in R1. */
#define WRITE_USER(OFF, SIZE)                                       \
    STACK(R2, OFF), MOVI(R3, SIZE), CALL(probe_write_user)

#define XOR_SHIFT(DST, N)                                           \
    MOV(R5, DST), ALUI(BPF_RSH, R5, N), ALU(BPF_XOR, DST, R5)
#define MULTIPLY(DST, VALUE) WIDE(R5, 0, VALUE), ALU(BPF_MUL, DST, R5)
/* The next number of the generator at an address */
#define DRAW(DST, GENERATOR)                                        \
    LOAD(DST, GENERATOR, 0), WIDE(R5, 0, 0x9e3779b97f4a7c15),          \
    ALU(BPF_ADD, DST, R5), STORE(GENERATOR, 0, DST),                \
    XOR_SHIFT(DST, 30), MULTIPLY(DST, 0xbf58476d1ce4e5b9),          \
    XOR_SHIFT(DST, 27), MULTIPLY(DST, 0x94d049bb133111eb),          \
    XOR_SHIFT(DST, 31)
/* The same, to the stack */
#define DRAW_TO(OFF) DRAW(R1, R6), STORE(FP, OFF, R1)

static bool is_jump(const struct bpf_insn *one)
{
    return BPF_CLASS(one->code) == BPF_JMP &&
           BPF_OP(one->code) != BPF_CALL && BPF_OP(one->code) != BPF_EXIT;
}

/* Take out the labels; returns how many instructions are left. */
static size_t resolve(struct bpf_insn *program, size_t n)
{
    size_t i, used = 0, labels[LABELS] = { 0 };

    for (i = 0; i < n; i++) {
        if (program[i].code == IS_LABEL) {
            labels[program[i].off] = used;
        } else {
            program[used++] = program[i];
        }
    }
    for (i = 0; i < used; i++) {
        if (is_jump(&program[i])) {
            program[i].off = labels[program[i].off] - (i + 1);
        }
    }
    return used;
}

static int bpf(int what, union bpf_attr *attr)
{
    return syscall(SYS_bpf, what, attr, sizeof(*attr));
}

static int load(unsigned type, struct bpf_insn *program, size_t size,
                die_fn *die)
{
    union bpf_attr attr = { };
    int fd;

    attr.prog_type = type;
    attr.insns = (uintptr_t)program;
    attr.insn_cnt = resolve(program, size / sizeof(*program));
    attr.license = (uintptr_t)"GPL";
    fd = bpf(BPF_PROG_LOAD, &attr);
    if (fd < 0) {
        die("--seed: the kernel does not take a program: %s", strerror(errno));
    }
    return fd;
}

/* Run a program at one of the kernel's tracepoints. */
static void at_point(const char *name, struct bpf_insn *program, size_t size,
                     die_fn *die)
{
    union bpf_attr attr = { };

    attr.raw_tracepoint.name = (uintptr_t)name;
    attr.raw_tracepoint.prog_fd =
        load(BPF_PROG_TYPE_RAW_TRACEPOINT, program, size, die);
    if (bpf(BPF_RAW_TRACEPOINT_OPEN, &attr) < 0) {
        die("--seed: %s cannot be followed: %s", name, strerror(errno));
    }
}

/* Run a program where SOURCE begins, or where it returns. */
static void at_source(bool returns, struct bpf_insn *program, size_t size,
                      die_fn *die)
{
    struct perf_event_attr attr = {
        .size = sizeof(attr),
        .config = returns,
        .kprobe_func = (uintptr_t)SOURCE,
    };
    FILE *f = fopen(PROBES, "re");
    int fd;

    if (!f || fscanf(f, "%u", &attr.type) != 1) {
        die("--seed: %s cannot be read", PROBES);
    }
    fclose(f);
    fd = syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0 || ioctl(fd, PERF_EVENT_IOC_SET_BPF,
                        load(BPF_PROG_TYPE_KPROBE, program, size, die)) < 0) {
        die("--seed: %s cannot be followed: %s", SOURCE, strerror(errno));
    }
}

/* Its arguments are a thread, and its new child: that has a generator, too. */
static void follow_forks(die_fn *die)
{
    struct bpf_insn program[] = {
        LOAD(R6, R1, 8), LOAD(R1, R1, 0), STORE(FP, THREAD, R1), LOOK_UP,
        MOV(R7, R0), JUMP_IF(R0, BPF_JNE, 0, FOUND),
        /* This process has the one of the job. */
        CALL(get_current_pid_tgid), ALUI(BPF_RSH, R0, 32),
        JUMP_IF(R0, BPF_JNE, getpid(), END),
        STOREI(FP, THREAD, JOB), LOOK_UP, MOV(R7, R0),
        JUMP_IF(R0, BPF_JEQ, 0, END),
        LABEL(FOUND),
        DRAW(R1, R7),
        STORE(FP, -48 + FIELD(state), R1), STOREI(FP, -48 + FIELD(kind), 0),
        STOREI(FP, -48 + FIELD(where), 0), STOREI(FP, -48 + FIELD(room), 0),
        STOREI(FP, -48 + FIELD(left), 0), STORE(FP, THREAD, R6),
        MAP(R1), STACK(R2, THREAD), STACK(R3, -48), MOVI(R4, BPF_ANY),
        CALL(map_update_elem),
        LABEL(END), RETURN,
    };

    at_point("sched_process_fork", program, sizeof(program), die);
}

static void follow_ends(die_fn *die)
{
    struct bpf_insn program[] = {
        LOAD(R1, R1, 0), STORE(FP, THREAD, R1),
        MAP(R1), STACK(R2, THREAD), CALL(map_delete_elem),
        RETURN,
    };

    at_point("sched_process_exit", program, sizeof(program), die);
}

/*
 * A new stack has words: the number of arguments, their addresses, the
 * addresses of variables, and then pairs of a type and a value, where AT_RANDOM has the
 * address of 16 bytes.  A word is half as long in a process of 32 bits, whose
 * first two are not 0.
 *
 * The vDSO makes random numbers without a call, by a key that it takes anew
 * after some time.  So it is hidden; then, the time takes a call, too.
 */
static void follow_executions(die_fn *die)
{
    struct bpf_insn program[] = {
        LOAD(R7, R1, 16),
        LOOK_UP_CURRENT, JUMP_IF(R0, BPF_JEQ, 0, END), MOV(R6, R0),
        MOV(R3, R7), ADDI(R3, seed.stack), READ(-8, 8), LOAD(R8, FP, -8),
        MOV(R3, R7), ADDI(R3, seed.counts), READ(-8, 8), LOAD(R7, FP, -8),
        MOV(R3, R8), READ_USER(-8, 8), LOAD(R1, FP, -8), ALUI(BPF_RSH, R1, 32),
        MOVI(R9, 8), JUMP_IF(R1, BPF_JEQ, 0, FOUND), MOVI(R9, 4),
        LABEL(FOUND),
        LOW(R1, R7), ALUI(BPF_RSH, R7, 32), ALU(BPF_ADD, R7, R1), ADDI(R7, 3),
        ALU(BPF_MUL, R7, R9), ALU(BPF_ADD, R8, R7),
        LABEL(NEXT),
        JUMP_AT_LAST(END), MOV(R3, R8), READ_USER(-16, 16),
        JUMP_IF(R0, BPF_JNE, 0, END), LOAD(R1, FP, -16), LOAD(R7, FP, -8),
        JUMP_IF(R9, BPF_JEQ, 8, LONG), MOV(R7, R1), ALUI(BPF_RSH, R7, 32),
        LOW(R1, R1), JUMP_IF(R1, BPF_JEQ, AT_SYSINFO_EHDR, REST),
        LABEL(LONG),
        JUMP_IF(R1, BPF_JEQ, AT_NULL, END),
        JUMP_IF(R1, BPF_JEQ, AT_RANDOM, WRITE),
        JUMP_IF(R1, BPF_JNE, AT_SYSINFO_EHDR, REST),
        STOREI(FP, -8, AT_IGNORE), MOV(R1, R8), WRITE_USER(-8, 8),
        LABEL(REST),
        ALU(BPF_ADD, R8, R9), ALU(BPF_ADD, R8, R9), JUMP(NEXT),
        LABEL(WRITE),
        DRAW_TO(-16), DRAW_TO(-8), MOV(R1, R7), WRITE_USER(-16, 16),
        LABEL(END), RETURN,
    };

    at_point("sched_process_exec", program, sizeof(program), die);
}

/* Its argument says where the thread wants bytes. */
static void follow_requests(die_fn *die)
{
    struct bpf_insn program[] = {
        LOAD(R7, R1, ARGUMENT),
        LOOK_UP_CURRENT, JUMP_IF(R0, BPF_JEQ, 0, END), MOV(R6, R0),
        STOREI(FP, -16, 0), MOV(R3, R7), ADDI(R3, seed.kind), READ(-16, 1),
        LOAD(R1, FP, -16), STORE(R6, FIELD(kind), R1),
        MOV(R3, R7), ADDI(R3, seed.where), READ(-16, 8),
        LOAD(R1, FP, -16), STORE(R6, FIELD(where), R1),
        LABEL(END), RETURN,
    };

    at_source(false, program, sizeof(program), die);
}

/*
 * It returns how many bytes there are, which are replaced by 32 at a time, at
 * R7.  Linux accepts the loop because what ends it comes from memory.
 */
static void follow_answers(die_fn *die)
{
    struct bpf_insn program[] = {
        LOAD(R9, R1, RETURNED), JUMP_IF(R9, BPF_JSLE, 0, END),
        LOOK_UP_CURRENT, JUMP_IF(R0, BPF_JEQ, 0, END), MOV(R6, R0),
        STORE(R6, FIELD(left), R9), STORE(R6, FIELD(room), R9),
        LOAD(R7, R6, FIELD(where)), MOV(R8, R7), LOAD(R1, R6, FIELD(kind)),
        JUMP_IF(R1, BPF_JEQ, ITER_UBUF, NEXT),
        JUMP_IF(R1, BPF_JNE, ITER_IOVEC, END), STOREI(R6, FIELD(room), 0),
        LABEL(NEXT),
        JUMP_AT_LAST(END), LOAD(R9, R6, FIELD(left)),
        JUMP_IF(R9, BPF_JEQ, 0, END), LOAD(R3, R6, FIELD(room)),
        JUMP_IF(R3, BPF_JNE, 0, WRITE),
        /* The next of the list, a struct iovec */
        MOV(R3, R8), READ(-16, 16), JUMP_IF(R0, BPF_JNE, 0, END),
        ADDI(R8, 16), LOAD(R7, FP, -16), LOAD(R1, FP, -8),
        STORE(R6, FIELD(room), R1), JUMP(NEXT),
        LABEL(WRITE),
        DRAW_TO(-32), DRAW_TO(-24), DRAW_TO(-16), DRAW_TO(-8),
        JUMP_IF_R(R9, BPF_JGE, R3, FOUND), MOV(R3, R9),
        LABEL(FOUND),
        JUMP_IF(R3, BPF_JLE, 32, REST), MOVI(R3, 32),
        LABEL(REST),
        ALU(BPF_SUB, R9, R3), STORE(R6, FIELD(left), R9),
        LOAD(R1, R6, FIELD(room)), ALU(BPF_SUB, R1, R3),
        STORE(R6, FIELD(room), R1), MOV(R1, R7), ALU(BPF_ADD, R7, R3),
        STACK(R2, -32), CALL(probe_write_user), JUMP(NEXT),
        LABEL(END), RETURN,
    };

    at_source(true, program, sizeof(program), die);
}

static void find_members(die_fn *die)
{
    if (!btf_open()) {
        die("--seed: the kernel does not describe its structures");
    }
    seed.stack = btf_offset("linux_binprm", "p");
    /* The number of variables follows the number of arguments. */
    seed.counts = btf_offset("linux_binprm", "argc");
    seed.kind = btf_offset("iov_iter", "iter_type");
    /* The list is at the same place. */
    seed.where = btf_offset("iov_iter", "ubuf");
    btf_close();
    if (seed.stack < 0 || seed.counts < 0 || seed.kind < 0 || seed.where < 0) {
        die("--seed: the kernel has other structures");
    }
}

/* Give a thread another generator. */
static void set_generator(uint64_t key, uint64_t state, die_fn *die)
{
    struct thread thread = { .state = state };
    union bpf_attr attr = { };

    attr.map_fd = seed.map;
    attr.key = (uintptr_t)&key;
    attr.value = (uintptr_t)&thread;
    if (bpf(BPF_MAP_UPDATE_ELEM, &attr) < 0) {
        die("--seed: %s", strerror(errno));
    }
}

void seed_prepare(die_fn *die)
{
    union bpf_attr attr = { };

    if (!getenv("SEEDED")) {
        return;
    }
    find_members(die);
    /* Where the CPU has no random numbers, Linux takes its time. */
    if (getrandom(&attr, 1, 0) < 0) {
        die("--seed: there are no random numbers: %s", strerror(errno));
    }
    memset(&attr, 0, sizeof(attr));
    attr.map_type = BPF_MAP_TYPE_HASH;
    attr.key_size = sizeof(uint64_t);
    attr.value_size = sizeof(struct thread);
    attr.max_entries = THREADS;
    seed.map = bpf(BPF_MAP_CREATE, &attr);
    if (seed.map < 0) {
        die("--seed: the kernel has no BPF: %s", strerror(errno));
    }
    /* perf is started before there is a job. */
    set_generator(JOB, 0, die);
    follow_forks(die);
    follow_ends(die);
    follow_executions(die);
    follow_requests(die);
    follow_answers(die);
}

bool seed_understand(const char *key, const char *value, die_fn *die)
{
    /* This process, perf's parent, and perf, which waits */
    uint64_t threads[3];
    union bpf_attr attr = { };
    int n = 0;

    if (strcmp(key, "seed")) {
        return false;
    }
    attr.map_fd = seed.map;
    attr.next_key = (uintptr_t)threads;
    while (n < 3 && bpf(BPF_MAP_GET_NEXT_KEY, &attr) == 0) {
        attr.key = attr.next_key;
        attr.next_key = (uintptr_t)&threads[++n];
    }
    while (n--) {
        set_generator(threads[n], strtoull(value, NULL, 10), die);
    }
    return true;
}
