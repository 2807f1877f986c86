/*
 * Performance monitoring unit: the definition of a cycle under TCG
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qapi/error.h"
#include "hw/pmu/pmu-cycles.h"

#define DEFAULT_FREQUENCY 1000000000ull
#define MIN_FREQUENCY     1000000ull
#define MAX_FREQUENCY     10000000000ull
#define MAX_CPI           (1000 * PMU_CPI_ONE)

const char *pmu_cycles_given(const PmuCycleProps *props)
{
    return props->cycles ? "pmu-cycles"
           : props->cpi ? "pmu-cpi"
           : props->frequency ? "pmu-frequency"
           : NULL;
}

static bool follow_time(const PmuCycleProps *props)
{
    return g_strcmp0(props->cycles, "time") == 0;
}

static bool configure_cpi(PmuCycleProps *props, Error **errp)
{
    ERRP_GUARD();

    if (props->frequency) {
        error_setg(errp, "pmu-frequency has no meaning for cycles that follow "
                   "instructions");
        error_append_hint(errp, "Add pmu-cycles=time.\n");
        return false;
    }
    if (!props->cpi) {
        props->cpi = PMU_CPI_ONE;
    }
    if (props->cpi < PMU_CPI_ONE || props->cpi > MAX_CPI) {
        error_setg(errp, "pmu-cpi=%u is not supported", props->cpi);
        error_append_hint(errp, "Allowed: %u to %u, thousandths of a cycle "
                          "per instruction.\n", PMU_CPI_ONE, MAX_CPI);
        return false;
    }
    return true;
}

static bool configure_frequency(PmuCycleProps *props, Error **errp)
{
    ERRP_GUARD();

    if (props->cpi) {
        error_setg(errp, "pmu-cpi has no meaning for cycles that follow time");
        error_append_hint(errp, "Add pmu-cycles=instructions.\n");
        return false;
    }
    if (!props->frequency) {
        props->frequency = DEFAULT_FREQUENCY;
    }
    if (props->frequency < MIN_FREQUENCY || props->frequency > MAX_FREQUENCY) {
        error_setg(errp, "pmu-frequency=%" PRIu64 " is not supported",
                   props->frequency);
        error_append_hint(errp, "Allowed: %llu to %llu, in Hz.\n",
                          MIN_FREQUENCY, MAX_FREQUENCY);
        return false;
    }
    return true;
}

bool pmu_cycles_configure(PmuCycleProps *props, Error **errp)
{
    ERRP_GUARD();

    if (follow_time(props)) {
        return configure_frequency(props, errp);
    }
    if (props->cycles && strcmp(props->cycles, "instructions") != 0) {
        error_setg(errp, "pmu-cycles=%s is not supported", props->cycles);
        error_append_hint(errp, "Allowed: instructions or time.\n");
        return false;
    }
    return configure_cpi(props, errp);
}

PmuCycleModel pmu_cycles_model(const PmuCycleProps *props)
{
    return (PmuCycleModel) {
        .from_clock = follow_time(props),
        .cpi = props->cpi,
        .khz = props->frequency / 1000,
    };
}
