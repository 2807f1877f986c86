/*
 * Fuzzer of the virtual PMU: interfaces between its parts
 *
 *   main.c          command line, loop, output of failures
 *   program.c       programs: made from a seed, written, read, made smaller
 *   machine.c       the CPUs, their events, saving and loading
 *   x86.c, ppc.c    verbs and faces of an architecture
 *   x86-reference.c, ppc-reference.c
 *                   references of the registers of a face, event by event
 *   x86-memory.c    reference of the guest's memory, where PEBS writes to it
 *   core-reference.c
 *                   reference of a modelled core, access by access
 *
 * The fuzzer is QEMU with another main program: it calls the
 * functions that instructions and migration would call, in one thread, with
 * the machine stopped.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef VPMU_FUZZ_H
#define VPMU_FUZZ_H

#include "hw/core/cpu.h"
#include "hw/pmu/pmu.h"
#include "hw/pmu/pmu-core.h"
#include "hw/pmu/pmu-recorder.h"

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
 * fuzz_number - a number of a kind on which programs often fail
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
 * @nr_args: how many numbers it takes
 * @weight: how often to choose it, relative to the others; 0 is never
 * @make: choose its numbers; NULL if it does not take any
 * @run: do it to the machine and to the reference, and compare results
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
 * fuzz_make_program - make an array of FuzzOp from a seed
 * @length: how many operations
 */
GArray *fuzz_make_program(uint64_t seed, unsigned length);

/**
 * fuzz_make_stream - make such a program that also saves the machine, changes
 *                    the saved state, and loads it
 */
GArray *fuzz_make_stream(uint64_t seed, unsigned length);

/**
 * fuzz_run_program - run a program on a machine that has been reset
 * @done: counts the operations; may be NULL
 *
 * Ends the process if anything is wrong.
 */
void fuzz_run_program(const GArray *program, uint64_t *done);

/**
 * fuzz_shrink - leave out operations that a failure does not need, and make
 *               numbers smaller
 * @program: the program, which is changed
 * @fails: whether a program fails
 */
void fuzz_shrink(GArray *program, bool (*fails)(const GArray *program));

/**
 * fuzz_read_program, fuzz_write_program - a program's text, with one operation
 *                                         per line
 */
GArray *fuzz_read_program(const char *path);
void fuzz_write_program(const GArray *program, FILE *to);

/**
 * fuzz_expect - end the process unless two numbers are the same
 * @what: the meaning of the numbers
 * @got: the PMU's number
 * @wanted: the reference's number
 *
 * Once a changed stream has been loaded, no expectations are checked.
 */
void fuzz_expect(const char *what, uint64_t got, uint64_t wanted);

/**
 * fuzz_digest - a digest of all expectations since the program began
 */
uint64_t fuzz_digest(void);

/**
 * fuzz_expecting - whether results are compared with the reference
 */
extern bool fuzz_expecting;

/*
 * The machine
 */

/**
 * FUZZ_INSN_BYTES, FUZZ_DATA_BYTES - the bytes of an instruction and of an
 *                                    access to data
 */
#define FUZZ_INSN_BYTES 4
#define FUZZ_DATA_BYTES 8

/**
 * struct FuzzInsn - an instruction, as a modelled core sees it
 * @pc: its address
 * @access: how it accesses memory; PMU_CORE_FETCH if it does not
 * @data: the lowest address that it accesses
 * @branch: the kind of its branch; PMU_CORE_FETCH without a branch
 * @to: where that goes, or where a call returns to
 */
typedef struct FuzzInsn {
    uint64_t pc;
    PmuCoreKind access;
    uint64_t data;
    PmuCoreKind branch;
    uint64_t to;
} FuzzInsn;

/**
 * struct FuzzFace - a PMU
 * @name: its name
 * @args: QEMU's arguments
 * @data: the reference's description of it
 */
typedef struct FuzzFace {
    const char *name;
    const char *args;
    const void *data;
} FuzzFace;

/**
 * struct FuzzTarget - an architecture
 * @faces: its faces
 * @nr_faces: how many
 * @verbs: its verbs, in addition to fuzz_verbs
 * @vmsd: the state of a CPU
 * @sections: names of its parts that hold the PMU's state; ended by NULL
 * @fixed_section: the offset of other registers of the PMU in a state, and
 * @fixed_size: their size; 0 if there are no others
 * @start: called when QEMU has been started with such a PMU
 * @nr_modes: how many privilege states its PMUs distinguish
 * @retired: events that an instruction can cause in addition to itself, and
 * @nr_retired: how many; each is once in the list
 * @other: events that no instruction causes, and
 * @nr_other: how many
 * @happen: let events happen in the reference, one of each, at the same time
 * @step: let an instruction be executed in the reference's core in a mode, and
 *        let its events happen; NULL if no face has a core
 * @note_insn: an instruction that causes these events is executed in a mode;
 *             store its address as translated code does; or NULL
 * @note_step: the same for an instruction that a modelled core sees
 * @begin_cycle: begin a whole cycle in the reference
 * @check_interrupts: compare pending interrupts
 * @begin: bring the CPU and the reference to the state after a reset
 * @check: compare all registers
 * @check_legal: check that all registers hold values that they can hold
 * @remember: save the reference's state
 * @recall: restore that state
 * @before_save: make the preparations for saving the state that QEMU makes when
 *               it stops the machine; or NULL
 * @before_load: make the preparations for a load that QEMU makes by a reset; or
 *               NULL
 * @moved: called when the CPU, or the other one, has been loaded
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
    void (*step)(const FuzzInsn *insn, PmuTallies events, unsigned mode);
    void (*note_insn)(PmuTallies events, unsigned mode);
    void (*note_step)(const FuzzInsn *insn, unsigned mode);
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
 * fuzz_machine_start - take the CPUs of the QEMU that has been started
 */
void fuzz_machine_start(void);

/**
 * fuzz_machine_begin - begin with the first CPU, as after a reset
 */
void fuzz_machine_begin(void);

/**
 * fuzz_align_cycles - let a whole cycle begin
 *
 * Earlier programs may have left a part of a cycle.
 */
void fuzz_align_cycles(void);

/*
 * Verbs of events, with a mode and a number: instructions; instructions that
 * cause another event; and events without an instruction.  Translated code and
 * helpers report them; cycles follow from instructions.
 */
void fuzz_make_insns(FuzzRandom *r, uint64_t *arg);
void fuzz_run_insns(const uint64_t *arg);
void fuzz_make_retire(FuzzRandom *r, uint64_t *arg);
void fuzz_run_retire(const uint64_t *arg);
void fuzz_make_other(FuzzRandom *r, uint64_t *arg);
void fuzz_run_other(const uint64_t *arg);

/**
 * fuzz_make_step, fuzz_run_step - an instruction that a modelled core sees,
 *     with its access and its branch; nothing without a core
 */
void fuzz_make_step(FuzzRandom *r, uint64_t *arg);
void fuzz_run_step(const uint64_t *arg);

/**
 * fuzz_take_branch - take a branch, as translated code or a helper reports it
 * @branch: the branch
 * @mode: the mode in which it ends
 */
void fuzz_take_branch(const PmuBranch *branch, unsigned mode);

/**
 * fuzz_target_of - where a branch goes: anywhere, or not far from @from
 */
uint64_t fuzz_target_of(FuzzRandom *r, uint64_t from);

/**
 * fuzz_begin_read, fuzz_end_read - call these before and after the access of an
 *                                  instruction that reads a register; the
 *                                  access does not count the instruction
 */
void fuzz_begin_read(void);
void fuzz_end_read(void);

/**
 * fuzz_streams_loaded, fuzz_streams_refused - how many changed streams were
 *     loaded, and how many refused
 */
extern uint64_t fuzz_streams_loaded, fuzz_streams_refused;

/**
 * fuzz_pokes_missed - changes that were not made, as the state had no part of
 *                     the PMU's
 */
extern uint64_t fuzz_pokes_missed;

#endif /* VPMU_FUZZ_H */
