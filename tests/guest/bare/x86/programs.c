/*
 * Bare-metal test guest: programs of unknown length
 *
 * This is the only file that is compiled with SSE.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "bare.h"
#include "programs.h"

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

/* ---- Computation ---------------------------------------------------- */

#define SORT_SIZE 2000

static uint32_t numbers[SORT_SIZE];

static void quicksort(uint32_t *first, uint32_t *last)
{
    uint32_t *low = first, *high = last, pivot = *first;

    while (low <= high) {
        while (*low < pivot) {
            low++;
        }
        while (*high > pivot) {
            high--;
        }
        if (low <= high) {
            uint32_t swap = *low;

            *low++ = *high;
            *high-- = swap;
        }
    }
    if (first < high) {
        quicksort(first, high);
    }
    if (low < last) {
        quicksort(low, last);
    }
}

uint64_t program_sort(uint64_t arg)
{
    uint32_t state = arg;
    uint64_t sum = 0;

    for (unsigned i = 0; i < SORT_SIZE; i++) {
        numbers[i] = next_random(&state);
    }
    quicksort(numbers, numbers + SORT_SIZE - 1);
    for (unsigned i = 0; i < SORT_SIZE; i++) {
        sum = sum * 31 + numbers[i];
    }
    return sum;
}

#define SIEVE_SIZE 20000

static uint8_t composite[SIEVE_SIZE];

uint64_t program_sieve(uint64_t arg)
{
    uint64_t count = 0;

    memset(composite, 0, SIEVE_SIZE);
    for (unsigned i = 2; i < SIEVE_SIZE; i++) {
        if (composite[i]) {
            continue;
        }
        count++;
        for (unsigned j = 2 * i; j < SIEVE_SIZE; j += i) {
            composite[j] = 1;
        }
    }
    return count + arg;
}

/* Copies, fills and searches of all lengths, most of them by REP. */
uint64_t program_strings(uint64_t arg)
{
    static uint8_t from[5000], to[5000];
    uint32_t state = arg;
    uint64_t sum = 0;

    for (unsigned i = 0; i < 300; i++) {
        unsigned size = next_random(&state) % sizeof(from);
        void *di = to;
        uint64_t left = size + 1;

        memset(from, i, size);
        memcpy(to, from, size);
        to[size] = i + 1;
        asm volatile("repne scasb" : "+D"(di), "+c"(left)
                     : "a"((uint8_t)(i + 1)) : "memory", "cc");
        sum = sum * 7 + left + memcmp(from, to, size);
    }
    return sum;
}

#define MATRIX 24

uint64_t program_float(uint64_t arg)
{
    static double a[MATRIX][MATRIX], b[MATRIX][MATRIX], c[MATRIX][MATRIX];
    long double trace = 0;

    for (unsigned i = 0; i < MATRIX; i++) {
        for (unsigned j = 0; j < MATRIX; j++) {
            a[i][j] = (double)(i * j + arg) / (i + j + 1);
            b[i][j] = __builtin_sqrt(i + 2.0 * j);
        }
    }
    for (unsigned i = 0; i < MATRIX; i++) {
        for (unsigned j = 0; j < MATRIX; j++) {
            c[i][j] = 0;
            for (unsigned k = 0; k < MATRIX; k++) {
                c[i][j] += a[i][k] * b[k][j];
            }
        }
        trace += c[i][i] / 3;
    }
    return trace * 1000;
}

/* A small machine: one indirect jump per instruction */
uint64_t program_interpreter(uint64_t arg)
{
    enum { PUSH, ADD, MUL, DUP, DEC, JNZ, END };
    static const uint8_t code[] = {
        DUP, PUSH, 3, MUL, PUSH, 1, ADD, ADD, DEC, JNZ, 0, END,
    };
    uint64_t stack[64] = { arg };
    unsigned sp = 1, pc = 0, loops = 3000;

    for (;;) {
        switch (code[pc++]) {
        case PUSH:
            stack[sp++] = code[pc++];
            break;
        case ADD:
            sp--;
            stack[sp - 1] += stack[sp];
            break;
        case MUL:
            sp--;
            stack[sp - 1] *= stack[sp];
            break;
        case DUP:
            stack[sp] = stack[sp - 1];
            sp++;
            break;
        case DEC:
            loops--;
            break;
        case JNZ:
            pc = loops ? code[pc] : pc + 1;
            break;
        default:
            return stack[sp - 1];
        }
    }
}

/* Locked operations, some of them across a line. */
uint64_t program_atomics(uint64_t arg)
{
    static uint8_t bytes[128] __attribute__((aligned(64)));
    uint64_t *split = (uint64_t *)(bytes + 61);
    uint64_t *whole = (uint64_t *)bytes, old = 0;

    memset(bytes, 0, sizeof(bytes));
    for (unsigned i = 0; i < 300; i++) {
        uint64_t sum = arg + i;

        asm volatile("lock xaddq %0, %1" : "+r"(sum), "+m"(*whole));
        old += sum;
        asm volatile("lock addq %1, %0" : "+m"(*split) : "r"(sum));
        asm volatile("lock btsq %1, %0" : "+m"(*whole)
                     : "r"((uint64_t)i % 64) : "cc");
        asm volatile("xchgq %0, %1" : "+r"(old), "+m"(whole[1]));
    }
    return old + *split + *whole;
}

/* ---- Code ----------------------------------------------------------- */

/* Writes functions of all lengths and calls them: ADD $imm8, RAX; RET. */
uint64_t program_generated_code(uint64_t arg)
{
    uint8_t *code = spare[20];
    uint64_t sum = arg;

    for (unsigned i = 1; i < 60; i++) {
        uint8_t *p = code;

        *p++ = 0x48;
        *p++ = 0x89;
        *p++ = 0xf8;
        for (unsigned j = 0; j < i; j++) {
            *p++ = 0x48;
            *p++ = 0x83;
            *p++ = 0xc0;
            *p++ = j;
        }
        *p = 0xc3;
        sum = ((code_fn *)code)(sum);
    }
    return sum;
}

/* ---- Kernel --------------------------------------------------------- */

/* A page is mapped at the first write: see test-oracle.c. */
uint64_t program_demand_paging(uint64_t arg)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < 20; i++) {
        /* every access counts */
        volatile uint64_t *page = (uint64_t *)WINDOW(i);

        for (unsigned j = 0; j < 512; j += 64) {
            page[j] += arg + j;
            sum += page[j];
        }
    }
    return sum;
}

uint64_t program_system_calls(uint64_t arg)
{
    for (unsigned i = 0; i < 200; i++) {
        asm volatile("int %1" : "+a"(arg) : "i"(VEC_SYSCALL) : "memory");
        asm volatile("syscall" : "+a"(arg) : : "rcx", "r11", "memory");
    }
    return arg;
}

/* #UD, #DE, #GP and #BP; the kernel skips the instruction. */
uint64_t program_faults(uint64_t arg)
{
    for (unsigned i = 0; i < 50; i++) {
        uint64_t quotient = i, rest = 0;

        asm volatile("ud2");
        asm volatile("divl %2" : "+a"(quotient), "+d"(rest) : "c"(i % 2));
        arg += quotient;
        asm volatile("int3");
        asm volatile("movl (%0), %%ecx" : : "a"(1ull << 63) : "rcx");
        arg = arg * 5 + i;
    }
    return arg;
}
