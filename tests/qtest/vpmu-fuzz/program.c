/*
 * Fuzzer of the virtual PMU: programs
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/bitops.h"
#include "qemu/cutils.h"
#include "fuzz.h"

/*
 * Numbers
 */

/* Marsaglia's xorshift, multiplied, so that close seeds differ at once. */
uint64_t fuzz_random(FuzzRandom *r)
{
    r->state ^= r->state >> 12;
    r->state ^= r->state << 25;
    r->state ^= r->state >> 27;
    return r->state * 0x2545f4914f6cdd1dull;
}

FuzzRandom fuzz_seed(uint64_t seed)
{
    FuzzRandom r = { (seed + 1) * 0x9e3779b97f4a7c15ull ?: 1 };

    fuzz_random(&r);
    return r;
}

uint64_t fuzz_below(FuzzRandom *r, uint64_t n)
{
    return (fuzz_random(r) >> 11) % n;
}

bool fuzz_chance(FuzzRandom *r, unsigned n)
{
    return fuzz_below(r, n) == 0;
}

uint64_t fuzz_number(FuzzRandom *r)
{
    uint64_t bit = BIT_ULL(fuzz_below(r, 64));

    switch (fuzz_below(r, 6)) {
    case 0:
        return fuzz_below(r, 4);
    case 1:
        return -fuzz_below(r, 4);
    case 2:
        return bit;
    case 3:
        return bit - 1 - fuzz_below(r, 3);
    case 4:
        return fuzz_random(r) & fuzz_random(r);
    default:
        return fuzz_random(r);
    }
}

uint64_t fuzz_bits(FuzzRandom *r, uint64_t bits)
{
    switch (fuzz_below(r, 12)) {
    case 0:
        return 0;
    case 1:
        return bits;
    case 2:
        return fuzz_number(r);
    case 3:
        return fuzz_random(r) & fuzz_random(r) & bits;
    default:
        return fuzz_random(r) & bits;
    }
}

/*
 * Making them
 */

static unsigned sum_of_weights(const FuzzVerb *verbs)
{
    unsigned sum = 0;

    for (; verbs->name; verbs++) {
        sum += verbs->weight;
    }
    return sum;
}

static const FuzzVerb *verb_at(const FuzzVerb *verbs, unsigned position)
{
    while (position >= verbs->weight) {
        position -= verbs->weight;
        verbs++;
    }
    return verbs;
}

static const FuzzVerb *choose_verb(FuzzRandom *r)
{
    unsigned own = sum_of_weights(fuzz_target.verbs);
    unsigned position = fuzz_below(r, own + sum_of_weights(fuzz_verbs));

    return position < own ? verb_at(fuzz_target.verbs, position)
                          : verb_at(fuzz_verbs, position - own);
}

static void append(GArray *program, FuzzRandom *r, const FuzzVerb *verb)
{
    FuzzOp op = { verb };

    if (verb->make) {
        verb->make(r, op.arg);
    }
    g_array_append_val(program, op);
}

static void append_any(GArray *program, FuzzRandom *r, unsigned length)
{
    while (length-- > 0) {
        append(program, r, choose_verb(r));
    }
}

static GArray *new_program(void)
{
    return g_array_new(false, false, sizeof(FuzzOp));
}

GArray *fuzz_make_program(uint64_t seed, unsigned length)
{
    GArray *program = new_program();
    FuzzRandom r = fuzz_seed(seed);

    append_any(program, &r, length);
    return program;
}

/* The verbs of streams are in the order in which they are used. */
GArray *fuzz_make_stream(uint64_t seed, unsigned length)
{
    const FuzzVerb *save = fuzz_stream_verbs;
    const FuzzVerb *poke = save + 1;
    const FuzzVerb *load = save + 2;
    GArray *program = new_program();
    FuzzRandom r = fuzz_seed(~seed);
    unsigned changes = 1 + fuzz_below(&r, 1 << fuzz_below(&r, 4));

    append_any(program, &r, length);
    append(program, &r, save);
    while (changes-- > 0) {
        append(program, &r, poke);
    }
    append(program, &r, load);
    append_any(program, &r, length);
    return program;
}

/*
 * Running them
 */

bool fuzz_expecting;
static uint64_t digest;

void fuzz_expect(const char *what, uint64_t got, uint64_t wanted)
{
    digest = (digest ^ got) * 0x100000001b3ull;
    if (fuzz_expecting && got != wanted) {
        fprintf(stderr, "%s is 0x%" PRIx64 " and should be 0x%" PRIx64 "\n",
                what, got, wanted);
        abort();
    }
}

uint64_t fuzz_digest(void)
{
    return digest;
}

void fuzz_run_program(const GArray *program, uint64_t *done)
{
    digest = 0;
    fuzz_expecting = true;
    fuzz_machine_begin();
    for (unsigned i = 0; i < program->len; i++) {
        const FuzzOp *op = &g_array_index(program, FuzzOp, i);

        op->verb->run(op->arg);
        if (done) {
            ++*done;
        }
    }
    fuzz_target.check();
}

/*
 * Their text
 */

static const FuzzVerb *find_in(const FuzzVerb *verbs, const char *name)
{
    while (verbs->name && !g_str_equal(verbs->name, name)) {
        verbs++;
    }
    return verbs->name ? verbs : NULL;
}

static const FuzzVerb *find_verb(const char *name)
{
    return find_in(fuzz_target.verbs, name)
           ?: find_in(fuzz_verbs, name) ?: find_in(fuzz_stream_verbs, name);
}

static bool parse_op(const char *line, FuzzOp *op)
{
    g_auto(GStrv) words = g_strsplit(line, " ", -1);

    op->verb = words[0] ? find_verb(words[0]) : NULL;
    if (!op->verb || g_strv_length(words) != 1 + op->verb->nr_args) {
        return false;
    }
    for (unsigned i = 0; i < op->verb->nr_args; i++) {
        if (qemu_strtou64(words[1 + i], NULL, 0, &op->arg[i]) < 0) {
            return false;
        }
    }
    return true;
}

static GArray *parse_program(GStrv lines)
{
    GArray *program = new_program();

    for (; *lines; lines++) {
        FuzzOp op = { };

        if (**lines == '#' || **lines == '\0') {
            continue;
        }
        if (!parse_op(*lines, &op)) {
            fprintf(stderr, "not an operation: %s\n", *lines);
            exit(2);
        }
        g_array_append_val(program, op);
    }
    return program;
}

GArray *fuzz_read_program(const char *path)
{
    g_autofree char *text = NULL;
    g_auto(GStrv) lines = NULL;
    g_autoptr(GError) err = NULL;

    if (!g_file_get_contents(path, &text, NULL, &err)) {
        fprintf(stderr, "%s\n", err->message);
        exit(2);
    }
    lines = g_strsplit(text, "\n", -1);
    return parse_program(lines);
}

void fuzz_write_program(const GArray *program, FILE *to)
{
    for (unsigned i = 0; i < program->len; i++) {
        const FuzzOp *op = &g_array_index(program, FuzzOp, i);

        fputs(op->verb->name, to);
        for (unsigned n = 0; n < op->verb->nr_args; n++) {
            fprintf(to, " 0x%" PRIx64, op->arg[n]);
        }
        fputc('\n', to);
    }
}

/*
 * Making them smaller
 */

static GArray *without(const GArray *program, unsigned from, unsigned n)
{
    GArray *rest = new_program();

    g_array_append_vals(rest, program->data, from);
    g_array_append_vals(rest, program->data + (from + n) * sizeof(FuzzOp),
                        program->len - from - n);
    return rest;
}

/* Leave out so many at a time, wherever the program still fails. */
static void leave_out(GArray *program, unsigned n,
                      bool (*fails)(const GArray *program))
{
    unsigned from = 0;

    while (from + n <= program->len) {
        GArray *rest = without(program, from, n);

        if (fails(rest)) {
            g_array_remove_range(program, from, n);
        } else {
            from += n;
        }
        g_array_unref(rest);
    }
}

static void clear_bits(const GArray *program, uint64_t *arg,
                       bool (*fails)(const GArray *program))
{
    uint64_t was = *arg;

    *arg = 0;
    if (!was || fails(program)) {
        return;
    }
    *arg = was;
    for (int bit = 63; bit >= 0; bit--) {
        was = *arg;
        *arg &= ~BIT_ULL(bit);
        if (*arg != was && !fails(program)) {
            *arg = was;
        }
    }
}

void fuzz_shrink(GArray *program, bool (*fails)(const GArray *program))
{
    unsigned before;

    do {
        before = program->len;
        for (unsigned n = MAX(1, before / 2); n > 0; n /= 2) {
            leave_out(program, n, fails);
        }
    } while (program->len < before);
    for (unsigned i = 0; i < program->len; i++) {
        FuzzOp *op = &g_array_index(program, FuzzOp, i);

        for (unsigned n = 0; n < op->verb->nr_args; n++) {
            clear_bits(program, &op->arg[n], fails);
        }
    }
}
