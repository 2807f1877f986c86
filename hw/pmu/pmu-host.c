/*
 * Performance monitoring unit: the host's counts of a vCPU's events
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "qemu/timer.h"
#include "hw/pmu/pmu-guest.h"
#include "hw/pmu/pmu-host.h"
#include "hw/pmu/pmu-monitor.h"
#include "system/system.h"
#include "trace.h"

#define PERIOD_MS 1000
#define WARNING_PERIOD_MS (60 * 1000)

/*
 * If a vCPU did less than this between two looks, its counters may have had
 * nothing to count: processors differ on which side of the switch to a guest
 * they count, and the kernel measures time in ticks.
 */
#define BUSY_INSNS 1000
#define BUSY_NS (20 * SCALE_MS)

/* In /proc/PID/stat, counted from the parenthesis after the name; proc(5) */
#define STAT_GUEST_TIME 41

enum { LEADER, MEMBER, NR_EVENTS };

static const uint64_t events[NR_EVENTS] = {
    [LEADER] = PERF_COUNT_HW_INSTRUCTIONS,
    [MEMBER] = PERF_COUNT_HW_CPU_CYCLES,
};

/**
 * struct Progress - the progress of a vCPU's guest
 * @in_error: the guest's account cannot be read, so its numbers are old
 * @insns: instructions by the guest's account
 * @blind_ns: for how long that account did not have the host's PMU
 * @guest_ns: how long the guest has run, by the kernel's ticks; 0 if unknown
 */
typedef struct Progress {
    bool in_error;
    uint64_t insns;
    uint64_t blind_ns;
    uint64_t guest_ns;
} Progress;

/**
 * struct Reading - a counter of the guest, as read in a look
 * @event: its event, if the counter had to move; otherwise PMU_EVENT_NONE
 * @value: its value
 */
typedef struct Reading {
    PmuEvent event;
    uint64_t value;
} Reading;

/**
 * struct PmuHost - the accounts of a vCPU
 * @cpu: the vCPU
 * @scopes: as given to pmu_host_new()
 * @first: as in PmuHostReport
 * @ready: the machine has all that it starts with
 * @fds: a group of perf events for each scope
 * @accounts: their counts when they were last read
 * @timer: when to report next; NULL if the accounts are not open
 * @pmu: the guest's counters, if they are watched
 * @sync: as given to pmu_host_watch()
 * @look_pending: the vCPU has been asked to look, but did not look yet
 * @before: the guest's counters at the last look
 * @then: the guest's progress at the last look
 * @warned_at: when the user was last warned of a loss, in ms; 0 if never
 * @lost: as in PmuHostReport
 * @losses: as in PmuHostReport
 * @last_loss_ms: as in PmuHostReport
 */
struct PmuHost {
    CPUState *cpu;
    unsigned scopes;
    bool first;
    Notifier ready;
    int fds[PMU_HOST__SCOPES][NR_EVENTS];
    PmuHostAccount accounts[PMU_HOST__SCOPES];
    QEMUTimer *timer;
    Pmu *pmu;
    PmuHostSyncFn *sync;
    bool look_pending;
    Reading before[PMU_MAX_COUNTERS];
    Progress then;
    int64_t warned_at;
    uint64_t lost;
    uint64_t losses;
    int64_t last_loss_ms;
};

/*
 * Accounts
 */

/* Descriptors are the lowest numbers that are free. */
static bool leaves_some(int fd)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_NOFILE, &limit) < 0
           || (rlim_t)fd < limit.rlim_cur - limit.rlim_cur / 4;
}

int pmu_host_open_event(const struct perf_event_attr *attr, int thread_id,
                        int group)
{
    int fd = syscall(SYS_perf_event_open, attr, thread_id, -1, group,
                     PERF_FLAG_FD_CLOEXEC);

    if (fd >= 0 && !leaves_some(fd)) {
        close(fd);
        errno = EMFILE;
        return -1;
    }
    return fd;
}

/*
 * KVM's events for the guest are the thread's, too, and pinned: they get their
 * counters before events that are not pinned.  Pinned events get counters in
 * the order in which they were opened; QEMU's are opened before the guest runs.
 */
static int open_event(const PmuHost *host, uint64_t config, PmuHostScope scope,
                      int group)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_HARDWARE,
        .size = sizeof(attr),
        .config = config,
        .pinned = host->first && group < 0,
        .exclude_host = scope == PMU_HOST_GUEST,
        .read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED
                       | PERF_FORMAT_TOTAL_TIME_RUNNING,
    };

    return pmu_host_open_event(&attr, host->cpu->thread_id, group);
}

const char *pmu_host_scope_name(PmuHostScope scope)
{
    static const char *const names[PMU_HOST__SCOPES] = {
        [PMU_HOST_GUEST] = "guest",
        [PMU_HOST_ALL] = "all",
        [PMU_HOST_HOST] = "host",
    };

    return names[scope];
}

static bool has_scope(const PmuHost *host, PmuHostScope scope)
{
    return host->scopes >> scope & 1;
}

const char *pmu_host_remedy(int error)
{
    switch (error) {
    case EACCES:
    case EPERM:
        return "Set kernel.perf_event_paranoid to 1 or less, or give QEMU "
               "CAP_PERFMON; a container or a seccomp filter may have to "
               "allow perf_event_open, too.\n";
    case ENOSYS:
        return "The host's kernel, or a seccomp filter, does not offer "
               "perf_event_open.\n";
    case ENOENT:
        return "The host has no PMU that perf can use, or its PMU does not "
               "have this event.\n";
    case ENODEV:
        return "The host has no PMU that perf can use.\n";
    case EOPNOTSUPP:
    case EBUSY:
        return "The host's PMU does not count guests apart, or a guest with a "
               "mediated PMU has it for itself (kvm's parameter "
               "enable_mediated_pmu), as it has without pmu=off, even if it "
               "does not see a PMU.\n";
    case EMFILE:
    case ENFILE:
        return "Raise the limit of open files.\n";
    default:
        return "perf_event_open(2) says when the host's kernel has this "
               "error.\n";
    }
}

static bool open_account(PmuHost *host, PmuHostScope scope)
{
    int *fds = host->fds[scope];

    for (int i = LEADER; i < NR_EVENTS; i++) {
        fds[i] = open_event(host, events[i], scope,
                            i == LEADER ? -1 : fds[LEADER]);
        if (fds[i] < 0) {
            return false;
        }
    }
    return true;
}

/* Returns: false if the kernel has disabled the group, for lack of counters. */
static bool update_account(PmuHost *host, PmuHostScope scope)
{
    PmuHostAccount *account = &host->accounts[scope];
    /* The layout that read_format asks for; perf_event_open(2). */
    struct {
        uint64_t nr;
        uint64_t enabled;
        uint64_t running;
        uint64_t values[NR_EVENTS];
    } group = {};

    if (read(host->fds[scope][LEADER], &group, sizeof(group))
        != sizeof(group)) {
        return false;
    }
    account->insns = group.values[LEADER];
    account->cycles = group.values[MEMBER];
    account->enabled_ns = group.enabled;
    account->running_ns = group.running;
    return true;
}

static PmuHostAccount read_account(PmuHost *host, PmuHostScope scope)
{
    update_account(host, scope);
    return host->accounts[scope];
}

/* A pinned event that lost its counter does not count until it is enabled. */
static void restore_account(PmuHost *host, PmuHostScope scope)
{
    if (has_scope(host, scope) && !update_account(host, scope)) {
        host->accounts[scope].losses++;
        ioctl(host->fds[scope][LEADER], PERF_EVENT_IOC_ENABLE, 0);
    }
}

bool pmu_host_report(PmuHost *host, PmuHostReport *report)
{
    if (!host->timer) {
        return false;
    }
    report->scopes = host->scopes;
    report->first = host->first;
    for (int scope = 0; scope < PMU_HOST__SCOPES; scope++) {
        if (has_scope(host, scope)) {
            report->accounts[scope] = read_account(host, scope);
        }
    }
    report->lost = host->lost;
    report->losses = host->losses;
    report->last_loss_ms = host->last_loss_ms;
    return true;
}

/*
 * The watch
 */

/*
 * Whether a counter moves as long as its CPU executes anything.  Inverted
 * thresholds count cycles in which little happened: these may not occur.
 */
static bool always_moves(const Pmu *pmu, unsigned i)
{
    const PmuSelect *s = pmu_selected(pmu, i);

    return pmu_is_running(pmu, i)
           && (s->event == PMU_EVENT_CYCLES || s->event == PMU_EVENT_INSNS)
           && s->threshold <= 1 && !(s->threshold && s->invert) && !s->edge
           && s->modes == MAKE_64BIT_MASK(0, pmu_nr_modes(pmu));
}

static Reading read_counter(const Pmu *pmu, unsigned i)
{
    return (Reading) {
        .event = always_moves(pmu, i) ? pmu_selected(pmu, i)->event
                                      : PMU_EVENT_NONE,
        .value = pmu_peek(pmu, i),
    };
}

static bool has_stood_still(const Reading *before, const Reading *now)
{
    return now->event != PMU_EVENT_NONE && before->event == now->event
           && before->value == now->value;
}

/* Returns: the counters that have stood still since the last look. */
static uint64_t read_host_counters(PmuHost *host)
{
    uint64_t lost = 0;

    for (unsigned i = 0; i < pmu_nr_counters(host->pmu); i++) {
        const Reading now = read_counter(host->pmu, i);

        if (has_stood_still(&host->before[i], &now)) {
            lost |= 1ull << i;
        }
        host->before[i] = now;
    }
    return lost;
}

static void warn(PmuHost *host)
{
    int64_t now = qemu_clock_get_ms(QEMU_CLOCK_REALTIME);

    if (host->warned_at && now - host->warned_at < WARNING_PERIOD_MS) {
        return;
    }
    host->warned_at = now;
    warn_report("The host has taken performance counters away from vCPU %d "
                "(counters 0x%" PRIx64 "): what its guest reads there is too "
                "low", host->cpu->cpu_index, host->lost);
    error_printf("End what counts on the host (perf with -a, -C or events "
                 "marked D; kernel.nmi_watchdog=1), or give the guest fewer "
                 "counters.  If the guest takes samples, the host may allow "
                 "too few (kernel.perf_event_max_sample_rate).\n");
}

static void judge(PmuHost *host)
{
    const uint64_t before = host->lost;

    host->lost = read_host_counters(host);
    if (host->lost & ~before) {
        host->losses++;
        host->last_loss_ms = qemu_clock_get_ms(QEMU_CLOCK_HOST);
        warn(host);
    }
    if (host->lost != before) {
        pmu_emit_lost(host->cpu, host->lost, host->losses);
    }
}

/* How long a vCPU's thread has been in its guest; 0 if /proc does not say */
static uint64_t guest_time(const CPUState *cpu)
{
    g_autofree char *path = g_strdup_printf("/proc/self/task/%d/stat",
                                            cpu->thread_id);
    g_autofree char *stat = NULL;
    g_auto(GStrv) words = NULL;

    if (!g_file_get_contents(path, &stat, NULL, NULL)) {
        return 0;
    }
    /* The name may hold anything. */
    words = g_strsplit(strrchr(stat, ')') ?: "", " ", 0);
    return g_strv_length(words) <= STAT_GUEST_TIME ? 0
           : g_ascii_strtoull(words[STAT_GUEST_TIME], NULL, 10)
             * (NANOSECONDS_PER_SECOND / sysconf(_SC_CLK_TCK));
}

static Progress progress(PmuHost *host)
{
    const bool in_error = !update_account(host, PMU_HOST_GUEST);
    const PmuHostAccount *guest = &host->accounts[PMU_HOST_GUEST];

    return (Progress) {
        .in_error = in_error,
        .insns = guest->insns,
        .blind_ns = guest->enabled_ns - guest->running_ns,
        .guest_ns = guest_time(host->cpu),
    };
}

/*
 * Whether the guest's account has missed some of the guest's work: a group that
 * is not pinned reports for how long it had no counters; a pinned group is in
 * error then, and reports nothing.
 */
static bool was_blind(const Progress *then, const Progress *now)
{
    return then->in_error || now->in_error
           || now->blind_ns >= then->blind_ns + BUSY_NS;
}

/*
 * Whether the guest has executed anything since the last look.  Its account
 * shows that or, if the host has taken the PMU from the account as well, its
 * time.  With -overcommit cpu-pm=on, time shows nothing: a halted guest spends
 * it, too.
 */
static bool has_executed(const Progress *then, const Progress *now)
{
    return now->insns >= then->insns + BUSY_INSNS
           || (!enable_cpu_pm && was_blind(then, now)
               && now->guest_ns >= then->guest_ns + BUSY_NS);
}

/* In the vCPU's thread, with the big lock; the guest does not run meanwhile. */
static void look_at_account(CPUState *cpu, run_on_cpu_data data)
{
    PmuHost *host = data.host_ptr;

    host->look_pending = false;
    if (host->sync(cpu)) {
        judge(host);
        host->then = progress(host);
    }
}

/* Does not wake a vCPU that is halted. */
static void ask_for_look(PmuHost *host)
{
    const Progress now = progress(host);

    if (!host->look_pending && !cpu_is_stopped(host->cpu)
        && has_executed(&host->then, &now)) {
        host->look_pending = true;
        async_run_on_cpu(host->cpu, look_at_account, RUN_ON_CPU_HOST_PTR(host));
    }
}

static void trace_account(const PmuHost *host, PmuHostScope scope,
                          const PmuHostAccount *a)
{
    trace_pmu_host_account(host->cpu->cpu_index, pmu_host_scope_name(scope),
                           a->insns, a->cycles, a->enabled_ns, a->running_ns);
}

static void trace_report(PmuHost *host)
{
    PmuHostReport r;

    pmu_host_report(host, &r);
    for (int scope = 0; scope < PMU_HOST__SCOPES; scope++) {
        if (has_scope(host, scope)) {
            trace_account(host, scope, &r.accounts[scope]);
        }
    }
    trace_pmu_host_lost(host->cpu->cpu_index, r.lost, r.losses);
}

static void period_passed(void *opaque)
{
    PmuHost *host = opaque;

    trace_report(host);
    if (host->pmu) {
        ask_for_look(host);
    }
    for (int scope = 0; scope < PMU_HOST__SCOPES; scope++) {
        restore_account(host, scope);
    }
    timer_mod(host->timer, qemu_clock_get_ms(QEMU_CLOCK_REALTIME) + PERIOD_MS);
}

void pmu_host_watch(PmuHost *host, Pmu *pmu, PmuHostSyncFn *sync)
{
    host->pmu = pmu;
    host->sync = sync;
}

/*
 * Life
 */

static bool open_accounts(PmuHost *host, Error **errp)
{
    ERRP_GUARD();

    for (int scope = 0; scope < PMU_HOST__SCOPES; scope++) {
        if (has_scope(host, scope) && !open_account(host, scope)) {
            int error = errno;

            error_setg_errno(errp, error, "The host does not count what "
                             "vCPU %d executes", host->cpu->cpu_index);
            error_append_hint(errp, "%s", pmu_host_remedy(error));
            return false;
        }
    }
    return true;
}

static void close_accounts(PmuHost *host)
{
    for (int scope = 0; scope < PMU_HOST__SCOPES; scope++) {
        for (int i = 0; i < NR_EVENTS; i++) {
            if (host->fds[scope][i] >= 0) {
                close(host->fds[scope][i]);
                host->fds[scope][i] = -1;
            }
        }
    }
}

static void warn_without_guest(const PmuHost *host)
{
    if (!has_scope(host, PMU_HOST_GUEST)) {
        warn_report_once("pmu-host-perf: the host's kernel cannot count a "
                         "guest alone; there is only the account '%s'",
                         pmu_host_scope_name(ctz32(host->scopes)));
    }
}

static void machine_is_ready(Notifier *notifier, void *unused)
{
    PmuHost *host = container_of(notifier, PmuHost, ready);
    Error *err = NULL;

    if (!open_accounts(host, &err)) {
        warn_report_err_once(err);
        close_accounts(host);
        return;
    }
    warn_without_guest(host);
    host->timer = timer_new_ms(QEMU_CLOCK_REALTIME, period_passed, host);
    timer_mod(host->timer, qemu_clock_get_ms(QEMU_CLOCK_REALTIME) + PERIOD_MS);
}

PmuHost *pmu_host_new(CPUState *cpu, unsigned scopes)
{
    PmuHost *host = g_new0(PmuHost, 1);

    host->cpu = cpu;
    host->scopes = scopes;
    host->first = pmu_guest_host_first(cpu);
    memset(host->fds, -1, sizeof(host->fds));
    host->ready.notify = machine_is_ready;
    qemu_add_machine_init_done_notifier(&host->ready);
    return host;
}

void pmu_host_free(PmuHost *host)
{
    if (!host) {
        return;
    }
    qemu_remove_machine_init_done_notifier(&host->ready);
    g_clear_pointer(&host->timer, timer_free);
    close_accounts(host);
    g_free(host);
}
