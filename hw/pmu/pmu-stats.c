/*
 * Performance monitoring unit: query-stats
 *
 * This adds up numbers that query-pmu reports for each CPU.  A query does not
 * begin to count anything, so it costs nothing afterwards: numbers of executed
 * events come from observers that count them already.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qom/object.h"
#include "system/stats.h"
#include "hw/pmu/pmu-monitor.h"

/*
 * Numbers
 */

/* The description of a CPU */
typedef struct Source {
    CPUState *cpu;
    const PmuCpuInfo *info;
} Source;

/* Returns: whether the number is known. */
typedef bool GetFn(const Source *s, PmuEvent event, uint64_t *value);

/* The host's PMU does not count all of the time. */
static bool is_exact(const PmuObserverInfo *o)
{
    return !o->has_enabled_ns;
}

static bool counts_all(const PmuObserverInfo *o, const Source *s,
                       PmuEvent event)
{
    return g_str_equal(o->event, pmu_event_name(event)) && is_exact(o)
           && QAPI_LIST_LENGTH(o->modes) == pmu_guest_ops(s->cpu)->nr_modes;
}

/* Of several, the one that has counted for the longest time. */
static bool get_events(const Source *s, PmuEvent event, uint64_t *value)
{
    bool known = false;

    *value = 0;
    for (PmuObserverInfoList *o = s->info->observers; o; o = o->next) {
        if (counts_all(o->value, s, event)) {
            *value = MAX(*value, o->value->count);
            known = true;
        }
    }
    return known;
}

static bool get_overflows(const Source *s, PmuEvent event, uint64_t *value)
{
    const PmuInfo *pmu = s->info->pmu;

    *value = 0;
    for (PmuCounterInfoList *c = pmu ? pmu->counters : NULL; c; c = c->next) {
        *value += c->value->overflows;
    }
    return pmu && pmu->has_interrupts;
}

static bool get_pmis(const Source *s, PmuEvent event, uint64_t *value)
{
    const PmuInfo *pmu = s->info->pmu;

    *value = pmu ? pmu->interrupts : 0;
    return pmu && pmu->has_interrupts;
}

static bool get_folds(const Source *s, PmuEvent event, uint64_t *value)
{
    const PmuInfo *pmu = s->info->pmu;

    *value = pmu ? pmu->folds : 0;
    return pmu && pmu->has_folds;
}

static bool get_losses(const Source *s, PmuEvent event, uint64_t *value)
{
    const PmuHostInfo *host = s->info->host;

    *value = host ? host->losses : 0;
    return host;
}

/* By the numbers of vCPUs: the samples that profiles have lost of them */
static GArray *lost_samples;

void pmu_stats_lost_samples(unsigned cpu_index, uint64_t count)
{
    lost_samples = lost_samples ?: g_array_new(false, true, sizeof(uint64_t));
    if (cpu_index >= lost_samples->len) {
        g_array_set_size(lost_samples, cpu_index + 1);
    }
    g_array_index(lost_samples, uint64_t, cpu_index) += count;
}

static bool get_lost_samples(const Source *s, PmuEvent event, uint64_t *value)
{
    unsigned index = s->cpu->cpu_index;

    *value = lost_samples && index < lost_samples->len
             ? g_array_index(lost_samples, uint64_t, index) : 0;
    return true;
}

/**
 * struct Number - a number that can be queried
 * @name: its name
 * @get: finds it, for a CPU
 * @event: the event that observers count for it, if any
 */
static const struct Number {
    const char *name;
    GetFn *get;
    PmuEvent event;
} numbers[] = {
    { "instructions", get_events, PMU_EVENT_INSNS },
    { "branches", get_events, PMU_EVENT_BRANCHES },
    { "interrupts", get_events, PMU_EVENT_INTERRUPTS },
    { "exceptions", get_events, PMU_EVENT_EXCEPTIONS },
    { "overflows", get_overflows },
    { "pmis", get_pmis },
    { "folds", get_folds },
    { "losses", get_losses },
    { "lost-samples", get_lost_samples },
};

/**
 * struct Sums - numbers, of a CPU or of several
 * @known: whether it is known for at least one CPU
 * @values: the numbers
 */
typedef struct Sums {
    bool known[ARRAY_SIZE(numbers)];
    uint64_t values[ARRAY_SIZE(numbers)];
} Sums;

static void add_numbers(Sums *sums, const Source *s)
{
    for (unsigned i = 0; i < ARRAY_SIZE(numbers); i++) {
        uint64_t value;

        if (numbers[i].get(s, numbers[i].event, &value)) {
            sums->known[i] = true;
            sums->values[i] += value;
        }
    }
}

/*
 * The provider
 */

static StatsList *stats_of(const Sums *sums, strList *names)
{
    StatsList *list = NULL, **tail = &list;

    for (unsigned i = 0; i < ARRAY_SIZE(numbers); i++) {
        if (sums->known[i] && apply_str_list_filter(numbers[i].name, names)) {
            Stats *stats = g_new0(Stats, 1);

            stats->name = g_strdup(numbers[i].name);
            stats->value = g_new0(StatsValue, 1);
            stats->value->type = QTYPE_QNUM;
            stats->value->u.scalar = sums->values[i];
            QAPI_LIST_APPEND(tail, stats);
        }
    }
    return list;
}

/* Returns: false with @errp set if the CPU cannot be read. */
static bool ask_cpu(CPUState *cpu, Sums *sums, Error **errp)
{
    ERRP_GUARD();
    g_autoptr(PmuCpuInfo) info = pmu_describe_cpu(cpu, errp);

    if (info) {
        add_numbers(sums, &(Source) { cpu, info });
    }
    return !*errp;
}

static void add_result(StatsResultList **result, const char *path,
                       const Sums *sums, strList *names)
{
    StatsList *list = stats_of(sums, names);

    if (list) {
        add_stats_entry(result, STATS_PROVIDER_PMU, path, list);
    }
}

static void query(StatsResultList **result, StatsTarget target,
                  strList *names, strList *targets, Error **errp)
{
    g_autoptr(GPtrArray) cpus = pmu_all_cpus();
    Sums all = {};

    if (target != STATS_TARGET_VM && target != STATS_TARGET_VCPU) {
        return;
    }
    for (guint i = 0; i < cpus->len; i++) {
        CPUState *cpu = g_ptr_array_index(cpus, i);
        g_autofree char *path = object_get_canonical_path(OBJECT(cpu));
        Sums own = {};

        if (!apply_str_list_filter(path, targets)) {
            continue;
        }
        if (!ask_cpu(cpu, target == STATS_TARGET_VM ? &all : &own, errp)) {
            return;
        }
        add_result(result, path, &own, names);
    }
    add_result(result, NULL, &all, names);
}

static StatsSchemaValue *schema_of(const struct Number *number)
{
    StatsSchemaValue *value = g_new0(StatsSchemaValue, 1);

    value->name = g_strdup(number->name);
    value->type = STATS_TYPE_CUMULATIVE;
    return value;
}

static StatsSchemaValueList *schema(void)
{
    StatsSchemaValueList *list = NULL, **tail = &list;

    for (unsigned i = 0; i < ARRAY_SIZE(numbers); i++) {
        QAPI_LIST_APPEND(tail, schema_of(&numbers[i]));
    }
    return list;
}

static void query_schemas(StatsSchemaList **result, Error **errp)
{
    add_stats_schema(result, STATS_PROVIDER_PMU, STATS_TARGET_VM,
                     schema());
    add_stats_schema(result, STATS_PROVIDER_PMU, STATS_TARGET_VCPU,
                     schema());
}

static void __attribute__((constructor)) add_provider(void)
{
    add_stats_callbacks(STATS_PROVIDER_PMU, query, query_schemas);
}
