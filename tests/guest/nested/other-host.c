/*
 * To be preloaded: KVM as it answers on another host
 *
 * OTHER_HOST names what is different there:
 *
 *   busy   a mediated PMU, which some perf event keeps from being had
 *   intel  Intel's KVM, whose event selects have 8 bits
 *   old    Linux before 5.18, which cannot switch KVM's PMU off
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include <errno.h>
#include <linux/kvm.h>
#include <stdarg.h>
#include <stdbool.h>
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

/* What the other host returns; 0 if it does what this one does. */
static int other(const char *host, unsigned long request, void *argument)
{
    const struct kvm_enable_cap *cap = argument;
    const struct kvm_pmu_event_filter *filter = argument;

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
    return 0;
}

int ioctl(int fd, unsigned long request, ...)
{
    va_list rest;
    void *argument;
    int error;

    va_start(rest, request);
    argument = va_arg(rest, void *);
    va_end(rest);
    error = other(getenv("OTHER_HOST"), request, argument);
    if (error) {
        errno = -error;
        return -1;
    }
    return syscall(SYS_ioctl, fd, request, argument);
}
