/*
 * Performance monitoring unit: the request of a profile's user
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/cutils.h"
#include "qemu/timer.h"
#include "qapi/error.h"
#include "request.h"

/* For instructions, this gives some thousand samples a second. */
#define DEFAULT_PERIOD 100003

/* For time, a thousand samples a second */
#define DEFAULT_PERIOD_NS SCALE_MS

#define HEX_DIGITS "0123456789abcdefABCDEF"

/* The name of time in perf */
#define CPU_CLOCK "cpu-clock"

static PmuEvent named_event(const char *name)
{
    for (int e = PMU_EVENT_NONE + 1; e < PMU_EVENT__MAX; e++) {
        if (g_str_equal(name, pmu_event_name(e))) {
            return e;
        }
    }
    return PMU_EVENT_NONE;
}

/* Returns: whether @name is written as a raw code. */
static bool raw_code(const char *name, uint64_t *code)
{
    return name[0] == 'r' && !name[1 + strspn(name + 1, HEX_DIGITS)]
           && parse_uint_full(name + 1, 16, code) == 0;
}

static void choose_event(PmuProfileRequest *r)
{
    if (!r->event) {
        r->event = g_strdup(r->accounting == PMU_ACCOUNTING_VCPU
                            ? CPU_CLOCK : pmu_event_name(PMU_EVENT_INSNS));
    }
}

static bool parse_event(PmuProfileRequest *r, Error **errp)
{
    ERRP_GUARD();

    r->cpu_clock = g_str_equal(r->event, CPU_CLOCK);
    r->named = named_event(r->event);
    if (r->cpu_clock || r->named || raw_code(r->event, &r->code)) {
        return true;
    }
    error_setg(errp, "There is no event %s", r->event);
    error_append_hint(errp, "Codes are written as rNNNN.  Events: "
                      CPU_CLOCK);
    for (int e = PMU_EVENT_NONE + 1; e < PMU_EVENT__MAX; e++) {
        error_append_hint(errp, " %s", pmu_event_name(e));
    }
    error_append_hint(errp, "\n");
    return false;
}

/* Work done for the guest takes time, as the guest's own instructions do. */
static bool check_accounting(const PmuProfileRequest *r, Error **errp)
{
    ERRP_GUARD();

    if (r->cpu_clock && r->accounting == PMU_ACCOUNTING_GUEST) {
        error_setg(errp, "event=" CPU_CLOCK " needs accounting=vcpu");
        error_append_hint(errp, "It is the time of the vCPU's thread, with the "
                          "work that this does for the guest.\n");
        return false;
    }
    if (!r->cpu_clock && r->accounting == PMU_ACCOUNTING_VCPU) {
        error_setg(errp, "event=%s does not count work done for the guest, "
                   "as accounting=vcpu requires", r->event);
        error_append_hint(errp, "event=" CPU_CLOCK " does.\n");
        return false;
    }
    return true;
}

/* Time is also spent on work that the guest does not execute. */
static bool check_of_instructions(const PmuProfileRequest *r, Error **errp)
{
    ERRP_GUARD();

    if (r->cpu_clock && (r->branch_stack || r->data_address)) {
        error_setg(errp, "%s=on needs another event than " CPU_CLOCK,
                   r->branch_stack ? "branch-stack" : "data-address");
        error_append_hint(errp, "event=instructions is one.\n");
        return false;
    }
    return true;
}

/* As for perf's modifiers of events, naming neither mode means both. */
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
        error_setg(errp, "modes=%s is not valid", modes);
        error_append_hint(errp, "Letters, as after perf's events: u for user, "
                          "k for kernel; G for the guest's guests, H for the "
                          "guest itself.\n");
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
    if (!r->cpu_clock && r->period > INT64_MAX) {
        error_setg(errp, "period=%" PRIu64 " is more than %" PRId64, r->period,
                   INT64_MAX);
        return false;
    }
    if (r->frequency > NANOSECONDS_PER_SECOND) {
        error_setg(errp, "frequency=%" PRIu64 " is more than one sample per "
                   "nanosecond", r->frequency);
        return false;
    }
    if (!r->period && !r->frequency) {
        r->period = r->cpu_clock ? DEFAULT_PERIOD_NS : DEFAULT_PERIOD;
    }
    return true;
}

bool pmu_profile_request_check(PmuProfileRequest *r, Error **errp)
{
    choose_event(r);
    return parse_event(r, errp) && check_accounting(r, errp)
           && check_of_instructions(r, errp) && parse_modes(r, errp)
           && check_period(r, errp);
}

void pmu_profile_request_destroy(PmuProfileRequest *r)
{
    g_free(r->event);
    g_free(r->modes);
}
