/*
 * Bare-metal test guest: the library for both architectures
 *
 * A kernel of our own, small enough that every instruction of it is known.
 * machine.h has the parts for the processor: its registers, the states in which
 * code under test runs, traps.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#ifndef BARE_H
#define BARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vpmu-bits.h"
#include "vpmu-codes.h"

#define ARRAY_SIZE(a)   (sizeof(a) / sizeof((a)[0]))

/* ---- Tests ---------------------------------------------------------- */

/**
 * struct test - a test case
 * @suite: the suite to which it belongs
 * @name: the case's name in its suite
 * @fn: the function, which reports through expect()
 */
struct test {
    const char *suite;
    const char *name;
    void (*fn)(void);
};

/**
 * TEST - define a test case
 * @suite_: its suite, without quotation marks
 * @name_: its name
 *
 * The function body follows.  Before it runs, reset_machine() and prepare_pmu()
 * prepare the machine and the PMU: see runner.h.
 */
#define TEST(suite_, name_)                                             \
    static void test_##suite_##_##name_(void);                          \
    static const struct test entry_##suite_##_##name_                   \
        __attribute__((used, section("tests"), aligned(8))) =           \
        { #suite_, #name_, test_##suite_##_##name_ };                   \
    static void test_##suite_##_##name_(void)

/**
 * expect - check a value
 * @got: the value
 * @want: the value that it must have
 * @...: a description, as a printf() format
 *
 * The first check that fails decides the case; the test goes on.
 *
 * Returns: whether the check has passed.
 */
bool expect_at(uint64_t got, uint64_t want, const char *what, ...)
    __attribute__((format(printf, 3, 4)));
#define expect(got, want, ...) \
    expect_at((uint64_t)(got), (uint64_t)(want), __VA_ARGS__)

/**
 * fail - end the test case with a failure
 * @why: printf() format
 *
 * The first CPU can call this in any state.  If another CPU calls it, that CPU
 * stops for good, and a wait of the first CPU for it times out.
 */
void fail(const char *why, ...) __attribute__((format(printf, 1, 2), noreturn));

/**
 * skip - end the test case, as this machine lacks its subject
 */
void skip(void) __attribute__((noreturn));

/**
 * option - read a number that `run` passes to the guest
 * @name: the option's name
 * @value: the default
 */
uint64_t option(const char *name, uint64_t value);

/* %c %s %d %u %x %lu %lx; no width or precision. */
void print(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- Code under test ------------------------------------------------ */

/* A function whose instructions are counted, usually in assembly */
typedef uint64_t code_fn(uint64_t arg);

/**
 * CODE - define functions and labels in assembly
 * @text: the lines
 */
#define CODE(text) \
    asm(".pushsection .text.code, \"ax\"\n.balign 128\n" text "\n.popsection")

/**
 * LABEL - declare a label that CODE() or an assembly file defines
 * @name: the label
 */
#define LABEL(name) \
    extern const char name[]

/* Addresses noted by count_steps() of machine.h */
#define MAX_TRACE 4096
extern uint64_t step_trace[MAX_TRACE];

#include "machine.h"

/**
 * spin_until - wait for a condition, but not for ever
 * @condition: expression that an interrupt handler or another CPU makes true
 *
 * Returns: whether it came true.
 */
#define spin_until(condition)                                           \
    ({                                                                  \
        uint64_t tries_ = 20000000;                                     \
        while (!(condition) && --tries_) {                              \
            pause();                                                    \
        }                                                               \
        tries_ != 0;                                                    \
    })

/* ---- C library ------------------------------------------------------ */

void *memcpy(void *to, const void *from, size_t size);
void *memset(void *to, int byte, size_t size);
int memcmp(const void *a, const void *b, size_t size);
size_t strlen(const char *s);
bool streq(const char *a, const char *b);

/**
 * random - get the next number of a sequence, which is the same in every case
 * seed_random - begin another sequence
 */
uint64_t random(void);
void seed_random(uint64_t seed);

#endif /* BARE_H */
