/*
 * To be preloaded: KVM as it answers on another host
 *
 * OTHER_HOST names what is different there:
 *
 *   busy   a mediated PMU, which some perf event keeps from being had
 *   intel  Intel's KVM, whose event selects have 8 bits
 *   old    Linux before 5.18, which cannot switch KVM's PMU off
 *   mute   the PMU's registers can be read one by one, but not together
 *   pmu:VERSION,GP,FIXED
 *          Intel's PMU of that version, with so many counters; it says which
 *          registers QEMU writes
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <errno.h>
#include <linux/kvm.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LONG_SELECT (0xfull << 32)

static bool has_long_select(const struct kvm_pmu_event_filter *f)
{
    for (unsigned i = 0; i < f->nevents; i++) {
        if (f->events[i] & LONG_SELECT) {
            return true;
        }
    }
    return false;
}

/* Intel's PMU, and its registers */
struct pmu {
    unsigned version, gp, fixed;
};

#define LEAF_PMU            0xa
#define PERFCTR0            0xc1
#define PERFEVTSEL0         0x186
#define DEBUGCTL            0x1d9
#define FIXED_CTR0          0x309
#define FIXED_CTR_CTRL      0x38d
#define GLOBAL_CTRL         0x38f

/* AMD's, of which KVM has some on Intel's processors, too: they hold nothing */
#define K7_EVNTSEL0         0xc0010000
#define NUM_K7              8
#define PERF_CTL0           0xc0010200
#define NUM_PERF            12

static bool is_among(unsigned msr, unsigned first, unsigned count)
{
    return msr >= first && msr < first + count;
}

static bool has_register(const struct pmu *pmu, unsigned msr)
{
    return is_among(msr, PERFCTR0, pmu->gp)
           || is_among(msr, PERFEVTSEL0, pmu->gp)
           || is_among(msr, FIXED_CTR0, pmu->fixed)
           || is_among(msr, K7_EVNTSEL0, NUM_K7)
           || msr == DEBUGCTL
           || (pmu->version >= 2 && msr >= FIXED_CTR_CTRL
               && msr <= GLOBAL_CTRL);
}

/* QEMU asks for those of the PMU by themselves. */
static bool is_of_pmu(unsigned msr)
{
    const struct pmu all = { 2, 32, 16 };

    return has_register(&all, msr);
}

/* Returns: how many registers are there, before one that is not. */
static int transfer(const struct pmu *pmu, bool set, struct kvm_msrs *msrs)
{
    unsigned i;

    for (i = 0; i < msrs->nmsrs; i++) {
        struct kvm_msr_entry *entry = &msrs->entries[i];

        if (!has_register(pmu, entry->index)) {
            break;
        }
        if (set) {
            fprintf(stderr, "other host: wrote 0x%x\n", entry->index);
        } else {
            entry->data = 0;
        }
    }
    return i;
}

static void tell_of_pmu(const struct pmu *pmu, struct kvm_cpuid2 *cpuid)
{
    for (unsigned i = 0; i < cpuid->nent; i++) {
        struct kvm_cpuid_entry2 *entry = &cpuid->entries[i];

        if (entry->function == LEAF_PMU) {
            entry->eax = pmu->version | pmu->gp << 8 | 48 << 16;
            entry->edx = pmu->fixed | 48 << 5;
        }
    }
}

/* What a host with Intel's PMU does; false if it does what this one does. */
static bool with_pmu(const struct pmu *pmu, int fd, unsigned long request,
                     void *argument, int *result)
{
    struct kvm_msrs *msrs = argument;

    switch (request) {
    case KVM_GET_SUPPORTED_CPUID:
        *result = syscall(SYS_ioctl, fd, request, argument);
        if (*result == 0) {
            tell_of_pmu(pmu, argument);
        }
        return true;
    case KVM_GET_MSRS:
    case KVM_SET_MSRS:
        if (msrs->nmsrs == 0 || !is_of_pmu(msrs->entries[0].index)) {
            return false;
        }
        *result = transfer(pmu, request == KVM_SET_MSRS, msrs);
        return true;
    default:
        return false;
    }
}

static bool has_register_of_amd(const struct kvm_msrs *msrs)
{
    for (unsigned i = 0; i < msrs->nmsrs; i++) {
        if (is_among(msrs->entries[i].index, PERF_CTL0, NUM_PERF)) {
            return true;
        }
    }
    return false;
}

/* What the other host returns; 0 if it does what this one does. */
static int other(const char *host, unsigned long request, void *argument)
{
    const struct kvm_enable_cap *cap = argument;
    const struct kvm_pmu_event_filter *filter = argument;
    const struct kvm_msrs *msrs = argument;

    if (!strcmp(host, "busy") && request == KVM_CREATE_VCPU) {
        return -EBUSY;
    }
    if (!strcmp(host, "old") && request == KVM_ENABLE_CAP
        && cap->cap == KVM_CAP_PMU_CAPABILITY) {
        return -EINVAL;
    }
    if (!strcmp(host, "intel") && request == KVM_SET_PMU_EVENT_FILTER
        && filter->flags && has_long_select(filter)) {
        return -EINVAL;
    }
    if (!strcmp(host, "mute") && request == KVM_GET_MSRS && msrs->nmsrs > 1
        && has_register_of_amd(msrs)) {
        return -EINVAL;
    }
    return 0;
}

int ioctl(int fd, unsigned long request, ...)
{
    const char *host = getenv("OTHER_HOST");
    struct pmu pmu;
    va_list rest;
    void *argument;
    int error, result;

    va_start(rest, request);
    argument = va_arg(rest, void *);
    va_end(rest);
    /* The kernel takes 32 bits of it; QEMU may have extended the sign. */
    request = (unsigned)request;
    if (sscanf(host, "pmu:%u,%u,%u", &pmu.version, &pmu.gp, &pmu.fixed) == 3
        && with_pmu(&pmu, fd, request, argument, &result)) {
        return result;
    }
    error = other(host, request, argument);
    if (error) {
        errno = -error;
        return -1;
    }
    return syscall(SYS_ioctl, fd, request, argument);
}
