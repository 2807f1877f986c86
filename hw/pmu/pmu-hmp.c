/*
 * Performance monitoring unit: info pmu
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/qapi-commands-pmu-monitor.h"
#include "monitor/hmp.h"
#include "monitor/monitor.h"
#include "qemu/timer.h"

#define LINE_WIDTH 80
#define INDENT 19

/* Print words, and go on in the next line when a line is full. */
static void print_words(Monitor *mon, const char *title, const strList *words)
{
    unsigned column = INDENT + strlen(title);

    if (!words) {
        return;
    }
    monitor_printf(mon, "%*s%s", INDENT, "", title);
    for (; words; words = words->next) {
        if (column + 1 + strlen(words->value) > LINE_WIDTH) {
            monitor_printf(mon, "\n%*s", INDENT + 2, "");
            column = INDENT + 2;
        }
        monitor_printf(mon, " %s", words->value);
        column += 1 + strlen(words->value);
    }
    monitor_printf(mon, "\n");
}

static void print_modes(Monitor *mon, const char *title,
                        const PmuModeList *modes)
{
    g_autoptr(strList) words = NULL;
    strList **tail = &words;

    for (; modes; modes = modes->next) {
        QAPI_LIST_APPEND(tail, g_strdup(PmuMode_str(modes->value)));
    }
    print_words(mon, title, words);
}

static void add_word(strList ***tail, char *word)
{
    QAPI_LIST_APPEND(*tail, word);
}

/* How the counter is set up. */
static strList *settings(const PmuCounterInfo *c)
{
    strList *words = NULL, **tail = &words;

    if (c->has_code) {
        add_word(&tail, g_strdup_printf("code 0x%" PRIx64, c->code));
    }
    if (c->threshold) {
        add_word(&tail, g_strdup_printf("%s %u a cycle", c->invert
                                        ? "fewer than" : "at least",
                                        c->threshold));
    }
    if (c->edge) {
        add_word(&tail, g_strdup("edges"));
    }
    if (c->interrupts) {
        add_word(&tail, g_strdup("interrupts"));
    }
    return words;
}

static void print_counter(Monitor *mon, const PmuCounterInfo *c)
{
    g_autoptr(strList) setup = settings(c);
    g_autofree char *overflows = c->has_overflows
        ? g_strdup_printf("%" PRIu64, c->overflows) : g_strdup("-");

    monitor_printf(mon, " %-17s %-17s %15" PRIu64 " %15" PRIu64 " %10s\n",
                   c->q_register,
                   c->event ?: c->has_code ? "unknown" : "-", c->value,
                   c->left, overflows);
    print_words(mon, "setup:", setup);
    if (c->running) {
        print_modes(mon, "counts in:", c->modes);
    }
    print_words(mon, c->running ? "but for:" : "stopped by:", c->stopped_by);
}

static void print_pending(Monitor *mon, const PmuInfo *pmu)
{
    if (pmu->has_interrupts) {
        monitor_printf(mon, " %" PRIu64 " interrupts", pmu->interrupts);
        for (PmuInterruptList *i = pmu->pending; i; i = i->next) {
            monitor_printf(mon, ", pending: %s",
                           PmuInterrupt_str(i->value));
        }
        monitor_printf(mon, "\n");
    }
}

static void print_records(Monitor *mon, const PmuRecordsInfo *records)
{
    if (records) {
        monitor_printf(mon, " records of %u branches%s%s\n", records->depth,
                       records->call_stack ? ", as a call stack" : "",
                       records->modes ? "" : ", not recording");
        print_modes(mon, "recording in:", records->modes);
    }
}

static void print_pebs(Monitor *mon, const PmuPebsInfo *pebs)
{
    if (pebs) {
        monitor_printf(mon, " PEBS: area at 0x%" PRIx64 ", enable 0x%" PRIx64
                       "\n", pebs->area, pebs->enable);
    }
}

static void print_pmu(Monitor *mon, const PmuInfo *pmu)
{
    print_pending(mon, pmu);
    print_records(mon, pmu->records);
    print_pebs(mon, pmu->pebs);
    if (pmu->has_metrics) {
        monitor_printf(mon, " metrics of slots: 0x%" PRIx64 "\n",
                       pmu->metrics);
    }
    if (pmu->filter) {
        monitor_printf(mon, " filter %s: %s\n", pmu->filter->id,
                       KvmPmuFilterAction_str(pmu->filter->action));
    }
    print_words(mon, "hidden by KVM:", pmu->hidden);
    if (pmu->host_counters) {
        monitor_printf(mon, " the host keeps %u counters\n",
                       pmu->host_counters);
    }
    monitor_printf(mon, " %-17s %-17s %15s %15s %10s\n", "Counter", "Event",
                   "Value", "Left", "Overflows");
    for (PmuCounterInfoList *c = pmu->counters; c; c = c->next) {
        print_counter(mon, c->value);
    }
}

/* Also print for how much of the time the events were not counted. */
static void print_account(Monitor *mon, const char *whose,
                          const PmuHostAccountInfo *a)
{
    if (!a) {
        return;
    }
    monitor_printf(mon, " %-17s %15" PRIu64 " %15" PRIu64 " %12" PRIu64
                   " %12" PRIu64 "\n", whose, a->instructions, a->cycles,
                   a->enabled_ns / SCALE_MS, a->running_ns / SCALE_MS);
    if (a->losses) {
        monitor_printf(mon, "%*sno counters: %" PRIu64 " times\n", INDENT, "",
                       a->losses);
    }
}

static void print_host(Monitor *mon, const PmuHostInfo *host)
{
    monitor_printf(mon, " %-17s %15s %15s %12s %12s\n", "Host's account",
                   "Instructions", "Cycles", "Enabled ms", "Running ms");
    print_account(mon, "guest", host->guest);
    print_account(mon, "guest and host", host->all);
    print_account(mon, "host", host->host);
    if (host->has_priority) {
        monitor_printf(mon, " the %s goes first\n",
                       PmuPriority_str(host->priority));
    }
    print_words(mon, "taken away:", host->lost);
    if (host->losses) {
        g_autoptr(GDateTime) when =
            g_date_time_new_from_unix_utc(host->last_loss / 1000);
        g_autofree char *text = g_date_time_format_iso8601(when);

        monitor_printf(mon, " counters were taken away %" PRIu64
                       " times, last at %s\n", host->losses, text);
    }
}

static void print_observers(Monitor *mon, const PmuObserverInfoList *list)
{
    if (list) {
        monitor_printf(mon, " %-17s %-17s %15s %15s\n", "Observer", "Event",
                       "Count", "Period");
    }
    for (; list; list = list->next) {
        const PmuObserverInfo *o = list->value;
        g_autofree char *period = o->has_period
            ? g_strdup_printf("%" PRIu64, o->period) : g_strdup("-");

        monitor_printf(mon, " %-17s %-17s %15" PRIu64 " %15s\n",
                       o->owner, o->event, o->count, period);
        if (o->has_enabled_ns) {
            monitor_printf(mon, "%*scounted for %" PRIu64 " of %" PRIu64
                           " ms\n", INDENT, "", o->running_ns / SCALE_MS,
                           o->enabled_ns / SCALE_MS);
        }
    }
}

static void print_cache(Monitor *mon, const char *name, uint64_t size,
                        uint32_t ways, uint64_t line)
{
    monitor_printf(mon, " %-6s %15" PRIu64 " bytes %5u ways, lines of %" PRIu64
                   " bytes\n", name, size, ways, line);
}

static void print_tlb(Monitor *mon, const char *name, uint32_t entries,
                      uint32_t ways, uint64_t page)
{
    monitor_printf(mon, " %-6s %15u pages %5u ways, pages of %" PRIu64
                   " bytes\n", name, entries, ways, page);
}

static void print_geometry(Monitor *mon, const PmuCoreInfo *core)
{
    print_cache(mon, "l1i", core->l1i_size, core->l1i_ways, core->l1i_line);
    print_cache(mon, "l1d", core->l1d_size, core->l1d_ways, core->l1d_line);
    print_cache(mon, "llc", core->llc_size, core->llc_ways, core->llc_line);
    print_tlb(mon, "itlb", core->itlb_entries, core->itlb_ways,
              core->page_size);
    print_tlb(mon, "dtlb", core->dtlb_entries, core->dtlb_ways,
              core->page_size);
}

static void print_accesses(Monitor *mon, const char *name,
                           const PmuCoreAccesses *a)
{
    monitor_printf(mon, " %-9s %15" PRIu64 " %15" PRIu64 " %15" PRIu64 " %15"
                   PRIu64 "\n", name, a->references, a->l1_misses,
                   a->llc_misses, a->tlb_misses);
}

static void print_branches(Monitor *mon, const char *name,
                           const PmuCoreBranches *b)
{
    monitor_printf(mon, " %-9s %15" PRIu64 " %15" PRIu64 "\n", name,
                   b->predictions, b->mispredicted);
}

static void print_core_counts(Monitor *mon, const PmuCoreCounts *counts)
{
    monitor_printf(mon, " %-9s %15s %15s %15s %15s\n", "Accesses",
                   "References", "L1 misses", "LLC misses", "TLB misses");
    print_accesses(mon, "fetches", counts->fetches);
    print_accesses(mon, "loads", counts->loads);
    print_accesses(mon, "stores", counts->stores);
    print_accesses(mon, "modifies", counts->modifies);
    monitor_printf(mon, " %-9s %15s %15s\n", "Branches", "Predictions",
                   "Mispredicted");
    print_branches(mon, "not taken", counts->not_taken);
    print_branches(mon, "taken", counts->taken);
    print_branches(mon, "indirect", counts->indirect);
    print_branches(mon, "returns", counts->returns);
}

static void print_core(Monitor *mon, const PmuCoreInfo *core)
{
    if (core) {
        monitor_printf(mon, " core %s: %s, %s\n", core->id, core->preset,
                       PmuCoreState_str(core->state));
        print_geometry(mon, core);
    }
    if (core && core->counts) {
        print_core_counts(mon, core->counts);
    }
}

static void print_cpu(Monitor *mon, const PmuCpuInfo *info)
{
    const PmuInfo *pmu = info->pmu;

    monitor_printf(mon, "CPU %" PRId64 ": ", info->cpu_index);
    if (pmu) {
        monitor_printf(mon, "%s (%s), %u bits, engine %s\n", pmu->kind,
                       pmu->model, pmu->width,
                       PmuEngineKind_str(info->engine));
        print_pmu(mon, pmu);
    } else if (info->engine == PMU_ENGINE_KIND_NONE) {
        monitor_printf(mon, "no PMU\n");
    } else {
        monitor_printf(mon, "engine %s, which tells nothing of it\n",
                       PmuEngineKind_str(info->engine));
    }
    print_core(mon, info->core);
    print_observers(mon, info->observers);
    if (info->host) {
        print_host(mon, info->host);
    }
}

static void print_profiles(Monitor *mon, const PmuProfileInfoList *list)
{
    if (list) {
        monitor_printf(mon, "%-18s %-17s %15s %15s %10s\n", "Profile", "State",
                       "Samples", "Bytes", "Lost");
    }
    for (; list; list = list->next) {
        const PmuProfileInfo *p = list->value;

        monitor_printf(mon, "%-18s %-17s %15" PRIu64 " %15" PRIu64 " %10"
                       PRIu64 "\n", p->id, p->has_stop_reason
                       ? PmuProfileStopReason_str(p->stop_reason)
                       : PmuProfileState_str(p->state), p->samples, p->size,
                       p->lost);
    }
}

void hmp_info_pmu(Monitor *mon, const QDict *qdict)
{
    Error *err = NULL;
    g_autoptr(PmuCpuInfoList) list = qmp_query_pmu(&err);
    g_autoptr(PmuProfileInfoList) profiles = NULL;

    if (hmp_handle_error(mon, err)) {
        return;
    }
    for (PmuCpuInfoList *i = list; i; i = i->next) {
        print_cpu(mon, i->value);
    }
    profiles = qmp_query_pmu_profiles(&error_abort);
    print_profiles(mon, profiles);
}
