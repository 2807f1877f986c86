/*
 * Performance monitoring unit: the time of vCPUs' threads, as samples
 *
 * A thread of QEMU looks at the clocks.  It must not need the big lock, which a
 * vCPU holds while it emulates a device: these samples are to show that time.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#ifdef CONFIG_LINUX
#include <sys/syscall.h>
#endif
#include "qemu/event_notifier.h"
#include "qemu/lockable.h"
#include "qemu/main-loop.h"
#include "qemu/queue.h"
#include "qemu/rcu.h"
#include "qemu/thread.h"
#include "qemu/timer.h"
#include "qapi/error.h"
#include "system/kvm.h"
#include "hw/pmu/pmu-guest.h"
#include "hw/pmu/pmu-clock.h"

/* How often to look at a period that has not ended when it could have */
#define LOOKS_PER_PERIOD 8

/**
 * struct PmuClock - a clock of one vCPU
 * @cpu: the vCPU
 * @config: its configuration
 * @id: the host's clock of the vCPU's thread
 * @seen_ns: the time of that clock at the last look
 * @used_ns: time that is not part of a period yet
 * @due_ns: periods that have ended, and that the vCPU has not sampled
 */
struct PmuClock {
    CPUState *cpu;
    PmuClockConfig config;
    clockid_t id;
    uint64_t seen_ns;
    uint64_t used_ns;
    uint64_t due_ns;
    QLIST_ENTRY(PmuClock) next;
};

/*
 * All clocks, and the thread that looks at them while there are some.  The lock
 * is held for some instructions only, and never during callbacks.  A clock is
 * added and removed in the vCPU's thread, or while the vCPU is not executed.
 */
static QemuMutex lock;
static EventNotifier changed;
static QLIST_HEAD(, PmuClock) clocks = QLIST_HEAD_INITIALIZER(clocks);
static bool stopping;
static QemuThread looker;
static unsigned users;

static void __attribute__((constructor)) init_lock(void)
{
    qemu_mutex_init(&lock);
}

/*
 * The host's clocks
 */

#ifdef CONFIG_LINUX
static bool find_host_clock(PmuClock *c, Error **errp)
{
    int error = pthread_getcpuclockid(c->cpu->thread->thread, &c->id);

    if (error) {
        error_setg_errno(errp, error, "The host does not report how much time "
                         "vCPU %d takes", c->cpu->cpu_index);
    }
    return !error;
}

/* The thread may have ended: then there is nothing new. */
static uint64_t read_host_clock(const PmuClock *c)
{
    struct timespec t;

    return clock_gettime(c->id, &t) ? c->seen_ns
           : t.tv_sec * NANOSECONDS_PER_SECOND + t.tv_nsec;
}

/* A QemuCond waits for whole milliseconds, which is longer than a period. */
static void await_change(int64_t most_ns)
{
    GPollFD fd = {
        .fd = event_notifier_get_fd(&changed), .events = G_IO_IN,
    };

    if (qemu_poll_ns(&fd, 1, most_ns) > 0) {
        event_notifier_test_and_clear(&changed);
    }
}
#else
static bool find_host_clock(PmuClock *c, Error **errp)
{
    error_setg(errp, "The time that a vCPU takes is known on Linux only");
    return false;
}

static uint64_t read_host_clock(const PmuClock *c)
{
    return c->seen_ns;
}

/* There is no clock to look at. */
static void await_change(int64_t most_ns)
{
    g_usleep(SCALE_US);
}
#endif

/*
 * Looking, in a thread of its own
 */

/* The vCPU that a thread executes now; NULL if it sleeps or does other work. */
static CPUState *executed_by(const QemuThread *vcpu_thread)
{
    CPUState *cpu;

    RCU_READ_LOCK_GUARD();
    CPU_FOREACH(cpu) {
        if (cpu->thread == vcpu_thread && qatomic_read(&cpu->running)) {
            return cpu;
        }
    }
    return NULL;
}

/*
 * Make a vCPU that is in its guest, or in the kernel, leave KVM.  Uses the
 * thread's number, as the thread may have ended.
 */
static void interrupt_kvm(const CPUState *cpu)
{
#ifdef CONFIG_LINUX
    syscall(SYS_tgkill, getpid(), cpu->thread_id, SIG_IPI);
#endif
}

/* As cpu_exit(), but the vCPU goes on at once. */
static void ask_for_sample(CPUState *cpu)
{
    qatomic_set(&cpu->pmu_clock_due, true);
    /* A thread that sees the request also sees the reason for it. */
    smp_wmb();
    if (kvm_enabled()) {
        interrupt_kvm(cpu);
    } else {
        qatomic_set(&cpu->neg.icount_decr.u16.high, -1);
    }
}

/* Until a vCPU is executed, it is not known to which one the period belongs. */
static void end_periods(PmuClock *c)
{
    uint64_t rest = c->used_ns % c->config.period_ns;
    CPUState *cpu = executed_by(c->cpu->thread);

    if (!cpu) {
        return;
    }
    if (cpu == c->cpu) {
        c->due_ns += c->used_ns - rest;
        ask_for_sample(cpu);
    }
    c->used_ns = rest;
}

/* Returns: when to look again. */
static int64_t look_at_clock(PmuClock *c)
{
    uint64_t period = c->config.period_ns;
    uint64_t now = read_host_clock(c);

    c->used_ns += now - c->seen_ns;
    c->seen_ns = now;
    if (c->used_ns >= period) {
        end_periods(c);
    }
    return MAX(period - MIN(c->used_ns, period), period / LOOKS_PER_PERIOD);
}

static int64_t look_at_all(void)
{
    int64_t soonest = INT64_MAX;
    PmuClock *c;

    QLIST_FOREACH(c, &clocks, next) {
        soonest = MIN(soonest, look_at_clock(c));
    }
    return soonest;
}

/* Returns: when to look again; -1 for never. */
static int64_t look(void)
{
    QEMU_LOCK_GUARD(&lock);
    return stopping ? -1 : look_at_all();
}

static void *look_again_and_again(void *unused)
{
    int64_t soonest;

    rcu_register_thread();
    while ((soonest = look()) >= 0) {
        await_change(soonest);
    }
    rcu_unregister_thread();
    return NULL;
}

static bool start_looking(Error **errp)
{
    int ret = event_notifier_init(&changed, false);

    if (ret < 0) {
        error_setg_errno(errp, -ret, "The time of vCPUs cannot be watched");
        return false;
    }
    stopping = false;
    qemu_thread_create(&looker, "pmu-clock", look_again_and_again, NULL,
                       QEMU_THREAD_JOINABLE);
    return true;
}

static void stop_looking(void)
{
    WITH_QEMU_LOCK_GUARD(&lock) {
        stopping = true;
    }
    event_notifier_set(&changed);
    qemu_thread_join(&looker);
    event_notifier_cleanup(&changed);
}

/*
 * Sampling, in the vCPU's thread
 */

static PmuClock *find_due(const CPUState *cpu)
{
    PmuClock *c;

    QLIST_FOREACH(c, &clocks, next) {
        if (c->cpu == cpu && c->due_ns) {
            return c;
        }
    }
    return NULL;
}

static PmuClock *take_due(const CPUState *cpu, uint64_t *ns)
{
    PmuClock *c;

    QEMU_LOCK_GUARD(&lock);
    c = find_due(cpu);
    if (c) {
        *ns = c->due_ns;
        c->due_ns = 0;
    }
    return c;
}

void pmu_clocks_sample(CPUState *cpu)
{
    PmuClock *c;
    uint64_t ns;

    while ((c = take_due(cpu, &ns))) {
        c->config.sample(c->config.opaque, ns);
    }
}

/*
 * Life
 */

/* A clock on its way to the vCPU, in whose thread it begins */
typedef struct Request {
    PmuClock *clock;
    Error *err;
    bool done;
} Request;

static void begin_clock_on_cpu(CPUState *cpu, run_on_cpu_data data)
{
    Request *r = data.host_ptr;
    PmuClock *c = r->clock;

    if (!find_host_clock(c, &r->err)) {
        return;
    }
    c->seen_ns = read_host_clock(c);
    WITH_QEMU_LOCK_GUARD(&lock) {
        QLIST_INSERT_HEAD(&clocks, c, next);
    }
    event_notifier_set(&changed);
    r->done = true;
}

static void free_clock(PmuClock *c)
{
    g_free(c);
    if (--users == 0) {
        stop_looking();
    }
}

static void end_clock_on_cpu(CPUState *cpu, run_on_cpu_data data)
{
    PmuClock *c = data.host_ptr;

    WITH_QEMU_LOCK_GUARD(&lock) {
        QLIST_REMOVE(c, next);
    }
    free_clock(c);
}

/* Releases the big lock meanwhile. */
static PmuClock *begin_clock(PmuClock *c, Error **errp)
{
    Request r = { .clock = c };
    bool is_there = pmu_guest_run(c->cpu, begin_clock_on_cpu, &r, errp);

    if (!r.done) {
        free_clock(c);
    }
    if (is_there) {
        error_propagate(errp, r.err);
    } else {
        error_free(r.err);
    }
    return is_there && r.done ? c : NULL;
}

PmuClock *pmu_clock_new(CPUState *cpu, const PmuClockConfig *config,
                        Error **errp)
{
    PmuClock *c;

    if (!users && !start_looking(errp)) {
        return NULL;
    }
    users++;
    c = g_new0(PmuClock, 1);
    c->cpu = cpu;
    c->config = *config;
    c->config.gone = NULL;
    c = begin_clock(c, errp);
    if (c) {
        c->config.gone = config->gone;
    }
    return c;
}

void pmu_clock_free(PmuClock *c)
{
    if (c) {
        pmu_guest_run(c->cpu, end_clock_on_cpu, c, NULL);
    }
}

void pmu_clocks_gone(CPUState *cpu)
{
    PmuClock *c, *next;

    QLIST_FOREACH_SAFE(c, &clocks, next, next) {
        if (c->cpu == cpu) {
            if (c->config.gone) {
                c->config.gone(c->config.opaque);
            }
            end_clock_on_cpu(cpu, RUN_ON_CPU_HOST_PTR(c));
        }
    }
}
