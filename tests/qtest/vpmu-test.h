/*
 * QTest of the virtual PMU: interfaces between its parts
 *
 *   vpmu-test.c             cases that all architectures share, written once
 *   vpmu-test-monitor.c     likewise, of monitor commands and events
 *   vpmu-test-x86.c         cases that x86's vendors share
 *   vpmu-test-intel.c       Intel's face and its own cases
 *   vpmu-test-amd.c         AMD's face and its own cases
 *   vpmu-test-ppc.c         Power's face and its own cases
 *   vpmu-test-profile.c     profiles, taken from outside the guest
 *   vpmu-test-ppc-freeze.c  Power's freeze bits, in every state of the CPU
 *
 * Guest code does not run under qtest.  Commands of the target access the
 * registers of a CPU for it, and report events: how many, of which kind, and in
 * which mode.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef VPMU_TEST_H
#define VPMU_TEST_H

#include "libqtest.h"
#include "qobject/qdict.h"
#include "hw/pmu/pmu-engine.h"
#include "vpmu-bits.h"
#include "vpmu-codes.h"

#define LOW_BITS(n) (UINT64_MAX >> (64 - (n)))

/**
 * struct Machine - a QEMU and the CPU that the functions below access
 * @edit: changes the file with the machine's state when it migrates; or NULL
 * @with: its argument
 */
typedef struct Machine {
    QTestState *qts;
    unsigned cpu;
    void (*edit)(const char *path, const void *with);
    const void *with;
} Machine;

/**
 * enum - options of a counter, a sum of these
 * @COUNT_USER: count programs
 * @COUNT_KERNEL: count the kernel
 * @COUNT_ALL: both
 * @INTERRUPT: interrupt at overflow
 */
enum {
    COUNT_USER = 1,
    COUNT_KERNEL = 2,
    COUNT_ALL = COUNT_USER | COUNT_KERNEL,
    INTERRUPT = 4,
};

/**
 * struct Event - an event and its tallies
 * @code: its code
 * @tallies: a set of PmuTally; 0 if it is not counted
 */
typedef struct Event {
    uint64_t code;
    uint64_t tallies;
} Event;

/**
 * struct EventTable - events of a CPU
 * @cpu: the CPU, for -cpu
 * @events: its events, ended by one without a code
 */
typedef struct EventTable {
    const char *cpu;
    const Event *events;
} EventTable;

#define EVENT(code, counted, ...) { code, COUNTS_##counted },
#define EVENT_TABLE(cpu, list) \
    { cpu, (const Event[]) { CODES_##list(EVENT) { } } }

/**
 * struct Kept - a register that the PMU keeps
 * @reg: its number
 * @reset: its value after a reset
 */
typedef struct Kept {
    uint32_t reg;
    uint64_t reset;
} Kept;

/**
 * struct Mismatch - a CPU that cannot take over the state of another
 * @name: of the case
 * @from: the source's CPU, for -cpu
 * @to: the target's CPU, for -cpu
 * @message: part of QEMU's message
 */
typedef struct Mismatch {
    const char *name, *from, *to, *message;
} Mismatch;

/**
 * struct Refusal - a CPU that QEMU refuses
 * @cpu: for -cpu
 * @message: part of QEMU's message
 * @allowed: part of its hint
 */
typedef struct Refusal {
    const char *cpu, *message, *allowed;
} Refusal;

/**
 * struct Face - a PMU in the terms that architectures share
 *
 * Counters are numbered from 0 on; the shared cases use NR_COUNTERS of them,
 * on which any event can be selected.
 *
 * @name: its name in the paths of cases
 * @cpu: a CPU with a PMU, for -cpu
 * @full_cpu: a CPU with every register of @states
 * @cpu_without: a CPU without a PMU
 * @tells_nested: its modes distinguish nested guests
 * @user: the mode of PmuTally that programs run in
 * @kernel: the mode that a kernel runs in
 * @user_modes: all modes of COUNT_USER; COUNT_KERNEL has the other modes
 * @nr_modes: how many there are
 * @width: bits of a counter
 * @overflow_at: its value just after it has overflowed
 * @interrupts_again: another overflow interrupts even before Face.rearm
 * @insns: an event: instructions
 * @cycles: an event: cycles
 * @unknown: an event that is not counted
 * @unknown_message: part of QEMU's log message about it
 * @kind: the kind of @cpu's PMU in query-pmu
 * @vendor: the vendor in query-pmu
 * @nr_shown: the number of counters in query-pmu
 * @counter_name: the first counter's name in query-pmu
 * @shown_insns: the code of @insns on that counter in query-pmu
 * @shown_modes: query-pmu's modes of a counter of programs, of the kernel, of
 *               both, and of neither
 * @shown_pending: the interrupt's name in query-pmu
 * @nr_selectors: how many counters count a selected event
 * @event_tables: events of all models
 * @nr_event_tables: how many
 * @states: all registers that the PMU keeps
 * @nr_states: how many
 * @mismatches: CPUs that cannot take over each other's state
 * @nr_mismatches: how many
 * @refusals: CPUs that cannot be had
 * @nr_refusals: how many
 *
 * @add_cases: add its own cases
 * @counter_of: the counter that counts a code; NULL if any counter does
 * @args: the arguments for a machine with such a CPU; the caller frees them
 * @hotplug: add a second CPU to a machine with -smp 1,maxcpus=2
 * @read_register: read a register of @states
 * @write_register: write one, unless it is read-only
 * @prepare: make the machine ready for interrupts
 * @select: make a counter count an event, with COUNT_* and INTERRUPT as flags,
 *          once counters are started
 * @start: start all counters that have been selected, by one write
 * @stop: stop all counters, by one write
 * @freeze_on_overflow: with an overflow that interrupts, all counters stop;
 *                      NULL if there is no such thing
 * @read: read a counter
 * @write: write a counter
 * @overflowed: the counters that have overflowed, bit n for counter n
 * @interrupted: whether there has been an interrupt since the last call
 * @rearm: do what a handler does at its end, after it has written to counters
 *         that had overflowed: counters run, and the next overflow interrupts
 * @keep_busy: change all of @states from their reset values
 */
typedef struct Face {
    const char *name;
    const char *cpu, *full_cpu, *cpu_without;
    bool tells_nested;
    unsigned user, kernel;
    PmuModes user_modes;
    unsigned nr_modes;
    unsigned width;
    uint64_t overflow_at;
    bool interrupts_again;
    uint64_t insns, cycles, unknown;
    const char *unknown_message;
    const char *kind, *vendor;
    unsigned nr_shown;
    const char *counter_name;
    uint64_t shown_insns;
    const char *shown_modes[4];
    const char *shown_pending;
    unsigned nr_selectors;
    const EventTable *event_tables;
    unsigned nr_event_tables;
    const Kept *states;
    unsigned nr_states;
    const Mismatch *mismatches;
    unsigned nr_mismatches;
    const Refusal *refusals;
    unsigned nr_refusals;

    void (*add_cases)(void);
    unsigned (*counter_of)(uint64_t code);
    char *(*args)(const char *cpu);
    void (*hotplug)(Machine *m);
    uint64_t (*read_register)(Machine *m, uint32_t reg);
    void (*write_register)(Machine *m, uint32_t reg, uint64_t val);
    void (*prepare)(Machine *m);
    void (*select)(Machine *m, unsigned counter, uint64_t event,
                   unsigned flags);
    void (*start)(Machine *m);
    void (*stop)(Machine *m);
    void (*freeze_on_overflow)(Machine *m);
    uint64_t (*read)(Machine *m, unsigned counter);
    void (*write)(Machine *m, unsigned counter, uint64_t val);
    unsigned (*overflowed)(Machine *m);
    bool (*interrupted)(Machine *m);
    void (*rearm)(Machine *m);
    void (*keep_busy)(Machine *m);
} Face;

#define NR_COUNTERS 4

extern const Face ppc_face;

/* The PMU under test, or the one whose cases are being added */
extern const Face *face;

/**
 * new_file - an empty file, to be given to delete_file()
 */
char *new_file(void);

/**
 * delete_file - delete a file and free its name
 */
void delete_file(char *path);

/**
 * start - start a machine
 * @args: QEMU's arguments
 */
Machine start(const char *args);

/**
 * stop - end a machine
 */
void stop(Machine *m);

/**
 * count - let events happen in a CPU
 */
void count(Machine *m, PmuTally tally, unsigned mode, uint64_t n);

/**
 * begin - start a machine whose counters are stopped, ready for interrupts
 * @cpu: for -cpu
 */
Machine begin(const char *cpu);

/**
 * count_insns - let a program execute so many instructions
 */
void count_insns(Machine *m, uint64_t n);

/**
 * wanted - the tallies that a CPU's engine has to count, a set of PmuTally
 */
PmuTallies wanted(Machine *m);

/**
 * start_incoming - start a machine that waits for incoming migration
 * @args: its arguments
 */
Machine start_incoming(const char *args);

/**
 * migrate_to - replace a machine by one to which it has been migrated
 * @to: the other machine, from start_incoming()
 */
void migrate_to(Machine *m, Machine to);

/**
 * migrate_machine - replace a machine by one to which it has been migrated
 * @args: the other's arguments
 */
void migrate_machine(Machine *m, const char *args);

/**
 * migrate_prepared - migrate to a machine that is prepared first
 * @prepare: prepares the other machine before it gets the state; or NULL
 */
void migrate_prepared(Machine *m, const char *args,
                      void (*prepare)(Machine *m));

/**
 * refuse_prepared - migrate to a machine that refuses the state
 *
 * Returns: its error message; the caller frees it.
 */
char *refuse_prepared(Machine *m, const char *args,
                      void (*prepare)(Machine *m));

/**
 * complaint - QEMU's message when it refuses to start; the caller frees it
 */
char *complaint(const char *args);

/**
 * read_states - values of the registers of Face.states; the caller frees them
 */
uint64_t *read_states(Machine *m);

/**
 * add - add a case
 * @path: its name below vpmu/ and the face's
 */
void add(const char *path, void (*test)(void));

/**
 * add_data - add a case that is one of several
 * @path: their common path
 * @name: its own name
 * @data: its data
 */
void add_data(const char *path, const char *name, const void *data,
              void (*test)(const void *data));

/**
 * add_number - add a case that is one of several, given a number
 */
void add_number(const char *path, unsigned n, void (*test)(const void *data));

/**
 * query_cpu - query-pmu's result for a CPU; to be unreferenced
 */
QDict *query_cpu(Machine *m);

/**
 * query_part - a part of query-pmu's result for a CPU; to be unreferenced
 * @name: of a member that is a dictionary
 */
QDict *query_part(Machine *m, const char *name);

/**
 * query_counter - query-pmu's result for a counter; to be unreferenced
 */
QDict *query_counter(Machine *m, unsigned counter);

/**
 * get_uint - get a number of 64 bits
 */
uint64_t get_uint(const QDict *dict, const char *key);

/**
 * assert_fits - check that a table fits a terminal
 * @table: what a command of the human monitor printed
 */
void assert_fits(const char *table);

/**
 * assert_words - check a list of words
 * @expected: the words, with a space between them
 */
void assert_words(const QDict *dict, const char *key, const char *expected);

/**
 * assert_stopped_by - check the reasons why a counter is stopped
 */
void assert_stopped_by(Machine *m, unsigned counter, const char *expected);

/**
 * add_monitor_cases - add the cases of the monitor
 */
void add_monitor_cases(void);

/**
 * add_profile_cases - add the cases of profiles, taken from outside
 * @whole: also those of files, readers and the guest's port, for which
 *         the CPU does not matter
 */
void add_profile_cases(bool whole);

/**
 * add_ppc_freeze_cases - add the cases of Power's freeze bits
 */
void add_ppc_freeze_cases(void);

#endif /* VPMU_TEST_H */
