/*
 * Performance monitoring unit: messages from a guest to its profile
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "hw/pmu/profile/talk.h"

#define MAX_NUMBERS 5

/**
 * struct Number - the valid values of a number
 * @max: the highest
 * @step: they are multiples of this
 */
typedef struct Number {
    uint64_t max;
    uint64_t step;
} Number;

/**
 * struct Said - the contents of a line
 * @numbers: the numbers
 * @path: the rest of the line
 */
typedef struct Said {
    uint64_t numbers[MAX_NUMBERS];
    const char *path;
} Said;

/**
 * struct Sentence - a kind of line
 * @word: its first word
 * @numbers: the valid values of its numbers; a step of 0 ends the list
 * @has_path: a path follows the numbers
 * @understood: called for a valid line
 * @otherwise: the error for any other line with this word
 */
typedef struct Sentence {
    const char *word;
    Number numbers[MAX_NUMBERS];
    bool has_path;
    void (*understood)(const PmuTalkOps *ops, void *opaque, const Said *said);
    const char *otherwise;
} Sentence;

static void tell_task(const PmuTalkOps *ops, void *opaque, const Said *said)
{
    const PmuTaskLayout layout = {
        .current = said->numbers[0],
        .pid = said->numbers[1],
        .tgid = said->numbers[2],
        .comm = said->numbers[3],
    };

    ops->task(opaque, &layout);
}

static void tell_map(const PmuTalkOps *ops, void *opaque, const Said *said)
{
    const PmuTalkMap map = {
        .age_ns = said->numbers[0],
        .pid = said->numbers[1],
        .start = said->numbers[2],
        .length = said->numbers[3],
        .offset = said->numbers[4],
        .path = said->path,
    };

    ops->map(opaque, &map);
}

static void tell_fork(const PmuTalkOps *ops, void *opaque, const Said *said)
{
    const PmuTalkFork fork = {
        .age_ns = said->numbers[0],
        .pid = said->numbers[1],
        .parent = said->numbers[2],
    };

    ops->fork(opaque, &fork);
}

static void tell_flush(const PmuTalkOps *ops, void *opaque,
                       const Said *said G_GNUC_UNUSED)
{
    ops->flush(opaque);
}

#define AGE     { PMU_TALK_MAX_AGE, 1 }
#define PID     { PMU_TASK_MAX_PID - 1, 1 }
#define OFFSET  { PMU_TASK_MAX_OFFSET, 4 }
#define ANY     { UINT64_MAX, 1 }
#define POINTER { UINT64_MAX, 8 }

static const Sentence sentences[] = {
    { "task", { POINTER, OFFSET, OFFSET, OFFSET }, false, tell_task,
      "not a valid line of task" },
    { "map", { AGE, PID, ANY, ANY, ANY }, true, tell_map,
      "not a valid line of map" },
    { "fork", { AGE, PID, PID }, false, tell_fork,
      "not a valid line of fork" },
    { "flush", {}, false, tell_flush, "not a valid line of flush" },
};

/* Returns: the next word, which is cut off from @rest, or NULL at the end */
static char *next_word(char **rest)
{
    char *word = *rest;
    char *space = word ? strchr(word, ' ') : NULL;

    *rest = space ? space + 1 : NULL;
    if (space) {
        *space = '\0';
    }
    return word;
}

static bool parse_number(const char *word, const Number *may_be, uint64_t *val)
{
    unsigned base = 10;

    if (g_str_has_prefix(word, "0x")) {
        word += 2;
        base = 16;
    }
    return g_ascii_string_to_unsigned(word, base, 0, may_be->max, val, NULL)
           && *val % may_be->step == 0;
}

static bool parse_numbers(const Sentence *s, char **rest, Said *said)
{
    for (unsigned i = 0; i < MAX_NUMBERS && s->numbers[i].step; i++) {
        const char *word = next_word(rest);

        if (!word || !parse_number(word, &s->numbers[i], &said->numbers[i])) {
            return false;
        }
    }
    said->path = *rest;
    return !said->path == !s->has_path;
}

static void parse_sentence(const Sentence *s, char *rest,
                           const PmuTalkOps *ops, void *opaque)
{
    Said said = {};

    if (parse_numbers(s, &rest, &said)) {
        s->understood(ops, opaque, &said);
    } else {
        ops->nonsense(opaque, s->otherwise);
    }
}

static void parse_line(char *line, const PmuTalkOps *ops, void *opaque)
{
    const char *word = next_word(&line);

    for (unsigned i = 0; i < G_N_ELEMENTS(sentences); i++) {
        if (g_str_equal(word, sentences[i].word)) {
            parse_sentence(&sentences[i], line, ops, opaque);
            return;
        }
    }
    ops->nonsense(opaque, "neither task, map, fork nor flush");
}

static void end_line(PmuTalk *talk, const PmuTalkOps *ops, void *opaque)
{
    talk->line[talk->length] = '\0';
    if (talk->too_long) {
        ops->nonsense(opaque, "a line that is too long");
    } else if (strlen(talk->line) != talk->length) {
        ops->nonsense(opaque, "a line with a NUL");
    } else {
        parse_line(talk->line, ops, opaque);
    }
    pmu_talk_begin(talk);
}

void pmu_talk_begin(PmuTalk *talk)
{
    talk->length = 0;
    talk->too_long = false;
}

void pmu_talk_listen(PmuTalk *talk, const void *said, size_t size,
                     const PmuTalkOps *ops, void *opaque)
{
    const char *bytes = said;

    for (size_t i = 0; i < size; i++) {
        if (bytes[i] == '\n') {
            end_line(talk, ops, opaque);
        } else if (talk->length < PMU_TALK_MAX_LINE - 1) {
            talk->line[talk->length++] = bytes[i];
        } else {
            talk->too_long = true;
        }
    }
}
