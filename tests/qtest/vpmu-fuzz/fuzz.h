/*
 * Fuzzer of the virtual PMU: between its parts
 *
 *   main.c          command line, loop, what is kept of a failure
 *   program.c       programs: made from a seed, written, read, made smaller
 *   machine.c       the CPUs, what happens in them, saving and loading
 *   x86.c, ppc.c    verbs and faces of an architecture
 *   x86-reference.c, ppc-reference.c
 *                   what the registers of a face must hold, event by event
 *   x86-memory.c    what the guest's memory must hold, where PEBS writes to it
 *
 * The fuzzer is QEMU with another main program: it calls what instructions
 * and migration would call, in one thread, with the machine stopped.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef VPMU_FUZZ_H
#define VPMU_FUZZ_H

#include "hw/core/cpu.h"
#include "hw/pmu/pmu.h"

/*
 * Numbers that a seed decides
 */

typedef struct FuzzRandom {
    uint64_t state;
} FuzzRandom;

/**
 * fuzz_seed - begin a series of numbers
 */
FuzzRandom fuzz_seed(uint64_t seed);

/**
 * fuzz_random - any number of 64 bits
 */
uint64_t fuzz_random(FuzzRandom *r);

/**
 * fuzz_below - a number below @n, which is not 0
 */
uint64_t fuzz_below(FuzzRandom *r, uint64_t n);

/**
 * fuzz_chance - true once in @n times
 */
bool fuzz_chance(FuzzRandom *r, unsigned n);

/**
 * fuzz_number - a number at which programs like to fail
 */
uint64_t fuzz_number(FuzzRandom *r);

/**
 * fuzz_bits - a number that a register with these bits can mostly hold
 */
uint64_t fuzz_bits(FuzzRandom *r, uint64_t bits);

#define fuzz_pick(r, array) ((array)[fuzz_below((r), ARRAY_SIZE(array))])

/*
 * Programs
 */

#define FUZZ_MAX_ARGS 3

/**
 * struct FuzzVerb - something that happens to a machine
 * @name: in a program's text; NULL ends a list
 * @nr_args: numbers that it takes
 * @weight: how often it is chosen, compared with the others; 0 is never
 * @make: choose its numbers; NULL if it takes none
 * @run: do it to the machine and to the reference, and compare what is seen
 */
typedef struct FuzzVerb {
    const char *name;
    unsigned nr_args;
    unsigned weight;
    void (*make)(FuzzRandom *r, uint64_t *arg);
    void (*run)(const uint64_t *arg);
} FuzzVerb;

typedef struct FuzzOp {
    const FuzzVerb *verb;
    uint64_t arg[FUZZ_MAX_ARGS];
} FuzzOp;

/**
 * fuzz_make_program - an array of FuzzOp that a seed stands for
 * @length: how many operations
 */
GArray *fuzz_make_program(uint64_t seed, unsigned length);

/**
 * fuzz_make_stream - the same, whose machine is saved in the midst of it, what
 *                    was saved is changed, and loaded
 */
GArray *fuzz_make_stream(uint64_t seed, unsigned length);

/**
 * fuzz_run_program - run it on a machine that has been reset
 * @done: counts the operations; NULL if nobody asks
 *
 * Ends the process if anything is wrong.
 */
void fuzz_run_program(const GArray *program, uint64_t *done);

/**
 * fuzz_shrink - leave out and make smaller what a failure does not need
 * @program: is changed
 * @fails: whether a program fails
 */
void fuzz_shrink(GArray *program, bool (*fails)(const GArray *program));

/**
 * fuzz_read_program, fuzz_write_program - a program's text: a line each
 */
GArray *fuzz_read_program(const char *path);
void fuzz_write_program(const GArray *program, FILE *to);

/**
 * fuzz_expect - end the process unless two numbers are the same
 * @what: they are
 * @got: the PMU's
 * @wanted: the reference's
 *
 * Nothing is expected any more once a stream that was changed is loaded.
 */
void fuzz_expect(const char *what, uint64_t got, uint64_t wanted);

/**
 * fuzz_digest - of all that has been expected since the program began
 */
uint64_t fuzz_digest(void);

/**
 * fuzz_expecting - whether what is seen is compared with the reference
 */
extern bool fuzz_expecting;

/*
 * The machine
 */

/**
 * struct FuzzFace - a PMU
 * @name: its name
 * @args: QEMU's arguments
 * @data: what the reference has to know of it
 */
typedef struct FuzzFace {
    const char *name;
    const char *args;
    const void *data;
} FuzzFace;

/**
 * struct FuzzTarget - an architecture
 * @faces: those that can be had
 * @nr_faces: how many
 * @verbs: what can happen, besides what fuzz_verbs has
 * @vmsd: the state of a CPU
 * @sections: names of those parts of it that are about the PMU; ended by NULL
 * @fixed_section: where in a state registers of the PMU lie besides, and
 * @fixed_size: how long that is; 0 if there are none
 * @start: QEMU has been started with such a PMU
 * @nr_modes: how many privilege states its PMUs tell apart
 * @retired: events that an instruction can be, besides being one, and
 * @nr_retired: how many; each is once in the list
 * @other: events that are no instruction's, and
 * @nr_other: how many
 * @happen: let events happen in the reference, one of each, at the same time
 * @note_insn: an instruction is executed in a mode that is these events; note
 *             its place as translated code does; or NULL
 * @begin_cycle: no part of a cycle has gone by in the reference
 * @check_interrupts: compare what interrupts are pending
 * @begin: the CPU is to be as after a reset, and so is the reference
 * @check: compare all registers
 * @check_legal: see that all registers hold what they can hold
 * @remember: what the reference holds now
 * @recall: the reference is to hold that again
 * @before_save: do what must have been done before the state is saved, which
 *               QEMU does when it stops the machine; or NULL
 * @before_load: do what must have been done before a load, which QEMU does by a
 *               reset; or NULL
 * @moved: the CPU, or the other one, has been loaded
 */
typedef struct FuzzTarget {
    const FuzzFace *faces;
    unsigned nr_faces;
    const FuzzVerb *verbs;
    const VMStateDescription *vmsd;
    const char *const *sections;
    size_t fixed_section, fixed_size;
    unsigned nr_modes;
    const PmuTally *retired, *other;
    unsigned nr_retired, nr_other;
    void (*start)(const FuzzFace *face);
    void (*happen)(PmuTallies events, unsigned mode);
    void (*note_insn)(PmuTallies events, unsigned mode);
    void (*begin_cycle)(void);
    void (*check_interrupts)(void);
    void (*begin)(void);
    void (*check)(void);
    void (*check_legal)(void);
    void (*remember)(void);
    void (*recall)(void);
    void (*before_save)(void);
    void (*before_load)(void);
    void (*moved)(void);
} FuzzTarget;

extern const FuzzTarget fuzz_target;

/**
 * fuzz_verbs - verbs that all architectures have
 */
extern const FuzzVerb fuzz_verbs[], fuzz_stream_verbs[];

/**
 * fuzz_cpu - the CPU that programs run on; the other one waits for its state
 */
extern CPUState *fuzz_cpu;

/**
 * fuzz_machine_start - QEMU has been started; take its CPUs
 */
void fuzz_machine_start(void);

/**
 * fuzz_machine_begin - begin with the first CPU, as after a reset
 */
void fuzz_machine_begin(void);

/**
 * fuzz_align_cycles - let no part of a cycle have gone by
 *
 * Whole cycles have, by whatever programs before.
 */
void fuzz_align_cycles(void);

/*
 * Verbs of events, with a mode and a number: instructions; instructions that
 * are something else, too; and what is no instruction.  Translated code and
 * helpers tell of them; cycles follow instructions.
 */
void fuzz_make_insns(FuzzRandom *r, uint64_t *arg);
void fuzz_run_insns(const uint64_t *arg);
void fuzz_make_retire(FuzzRandom *r, uint64_t *arg);
void fuzz_run_retire(const uint64_t *arg);
void fuzz_make_other(FuzzRandom *r, uint64_t *arg);
void fuzz_run_other(const uint64_t *arg);

/**
 * fuzz_take_branch - a branch is taken, as translated code or a helper tells
 * @branch: the branch
 * @mode: in which it ends
 */
void fuzz_take_branch(const PmuBranch *branch, unsigned mode);

/**
 * fuzz_target_of - where a branch goes: anywhere, or not far from @from
 */
uint64_t fuzz_target_of(FuzzRandom *r, uint64_t from);

/**
 * fuzz_begin_read, fuzz_end_read - around the access of an instruction that
 *                                  reads a register, and does not count
 */
void fuzz_begin_read(void);
void fuzz_end_read(void);

/**
 * fuzz_streams_loaded, fuzz_streams_refused - what became of changed streams
 */
extern uint64_t fuzz_streams_loaded, fuzz_streams_refused;

/**
 * fuzz_pokes_missed - changes for which a state had no part that is the PMU's
 */
extern uint64_t fuzz_pokes_missed;

#endif /* VPMU_FUZZ_H */
