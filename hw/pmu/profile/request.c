/*
 * Performance monitoring unit: what is asked of a profile
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/cutils.h"
#include "qemu/timer.h"
#include "qapi/error.h"
#include "request.h"
#include "sample.h"

/* Of instructions, some thousand samples a second. */
#define DEFAULT_PERIOD 100003

static PmuEvent named_event(const char *name)
{
    for (int e = PMU_EVENT_NONE + 1; e < PMU_EVENT__MAX; e++) {
        if (g_str_equal(name, pmu_event_name(e))) {
            return e;
        }
    }
    return PMU_EVENT_NONE;
}

/* Returns: whether it is written as one. */
static bool raw_code(const char *name, uint64_t *code)
{
    return name[0] == 'r' && g_ascii_isxdigit(name[1])
           && parse_uint_full(name + 1, 16, code) == 0;
}

static void choose_event(PmuProfileRequest *r)
{
    if (!r->event) {
        r->event = g_strdup(pmu_event_name(PMU_EVENT_INSNS));
    }
}

static bool parse_event(PmuProfileRequest *r, Error **errp)
{
    ERRP_GUARD();

    r->named = named_event(r->event);
    if (r->named || raw_code(r->event, &r->code)) {
        return true;
    }
    error_setg(errp, "There is no event %s", r->event);
    error_append_hint(errp, "Codes are written as rNNNN.  Events:");
    for (int e = PMU_EVENT_NONE + 1; e < PMU_EVENT__MAX; e++) {
        error_append_hint(errp, " %s", pmu_event_name(e));
    }
    error_append_hint(errp, "\n");
    return false;
}

/* As perf's modifiers of events: what is named, or both if neither is. */
static void parse_pair(const char *modes, char first, bool *is_first,
                       char second, bool *is_second)
{
    *is_first = strchr(modes, first) || !strchr(modes, second);
    *is_second = strchr(modes, second) || !strchr(modes, first);
}

static bool parse_modes(PmuProfileRequest *r, Error **errp)
{
    ERRP_GUARD();
    const char *modes = r->modes ?: "";

    if (modes[strspn(modes, "ukGH")]) {
        error_setg(errp, "modes=%s is not understood", modes);
        error_append_hint(errp, "Letters, as after perf's events: u for user, "
                          "k for kernel; G for the guest's guests, H for "
                          "itself.\n");
        return false;
    }
    parse_pair(modes, 'u', &r->user, 'k', &r->kernel);
    parse_pair(modes, 'G', &r->nested, 'H', &r->itself);
    return true;
}

static bool check_period(PmuProfileRequest *r, Error **errp)
{
    if (r->period && r->frequency) {
        error_setg(errp, "period and frequency exclude each other");
        return false;
    }
    if (r->frequency > NANOSECONDS_PER_SECOND) {
        error_setg(errp, "frequency=%" PRIu64 " is more than a sample in a "
                   "nanosecond", r->frequency);
        return false;
    }
    if (!r->period && !r->frequency) {
        r->period = DEFAULT_PERIOD;
    }
    return true;
}

static bool check_callchain(const PmuProfileRequest *r, Error **errp)
{
    if (r->callchain > PMU_SAMPLE_MAX_CALLERS) {
        error_setg(errp, "callchain=%" PRIu64 " is more than %u", r->callchain,
                   PMU_SAMPLE_MAX_CALLERS);
        return false;
    }
    return true;
}

bool pmu_profile_request_check(PmuProfileRequest *r, Error **errp)
{
    choose_event(r);
    return check_callchain(r, errp) && parse_event(r, errp)
           && parse_modes(r, errp) && check_period(r, errp);
}

void pmu_profile_request_destroy(PmuProfileRequest *r)
{
    g_free(r->event);
    g_free(r->modes);
}
