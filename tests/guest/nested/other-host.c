/*
 * Library to preload: answers to KVM's ioctls as on another host
 *
 * OTHER_HOST names the difference:
 *
 *   busy   a mediated PMU, which some perf event keeps from being had
 *   intel  Intel's KVM, whose event selects have 8 bits
 *   old    Linux before 5.18, which cannot switch KVM's PMU off
 *   mute   the PMU's registers can be read one by one, but not together
 *   deny   perf_event_open(), as a seccomp filter may
 *   hides=MSR
 *          that register of AMD's PMU is not there
 *   pmu:VERSION,GP,FIXED[,hides=MSR][,holds=MSR:VALUE][,pebs]
 *          Intel's PMU of that version, with so many counters, and a debug
 *          store; it says what QEMU writes to which registers, and whether the
 *          guest is shown the store.  One register may not be there, and one
 *          hold the same for ever.  With PEBS, its registers are there, too
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/kvm.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#define NR_ARGUMENTS 6
#define LONG_SELECT (0xfull << 32)

/* What this host's kernel does; the library has a syscall() of its own. */
static long kernel(long number, const long *a)
{
    static long (*next)(long number, ...);

    if (!next) {
        next = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    }
    return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static int kernel_ioctl(int fd, unsigned long request, void *argument)
{
    return kernel(SYS_ioctl, (const long[NR_ARGUMENTS]) {
        fd, request, (long)argument,
    });
}

static bool has_long_select(const struct kvm_pmu_event_filter *f)
{
    for (unsigned i = 0; i < f->nevents; i++) {
        if (f->events[i] & LONG_SELECT) {
            return true;
        }
    }
    return false;
}

/* Intel's PMU; @hides and @holds are numbers of its registers, or 0 */
struct pmu {
    unsigned version, gp, fixed;
    unsigned hides, holds;
    unsigned long long value;
    bool pebs;
};

#define LEAF_FEATURES       1
#define LEAF_PMU            0xa
#define ECX_DTES64          (1u << 2)
#define ECX_DSCPL           (1u << 4)
#define ECX_PDCM            (1u << 15)
#define EDX_DS              (1u << 21)

#define PERFCTR0            0xc1
#define PERFEVTSEL0         0x186
#define MISC_ENABLE         0x1a0
#define DEBUGCTL            0x1d9
#define FIXED_CTR0          0x309
#define PERF_CAPABILITIES   0x345
#define PEBS_FORMAT_4       (4u << 8)
#define FIXED_CTR_CTRL      0x38d
#define GLOBAL_CTRL         0x38f
#define PEBS_ENABLE         0x3f1
#define PEBS_DATA_CFG       0x3f2
#define DS_AREA             0x600

/* AMD's.  KVM has some on Intel's processors, too, which hold nothing. */
#define K7_EVNTSEL0         0xc0010000
#define NUM_K7              8
#define PERF_CTL0           0xc0010200
#define NUM_PERF            12

static bool is_among(unsigned msr, unsigned first, unsigned count)
{
    return msr >= first && msr < first + count;
}

static bool is_of_pebs(unsigned msr)
{
    return msr == DS_AREA || msr == PEBS_ENABLE || msr == PEBS_DATA_CFG;
}

static bool has_register(const struct pmu *pmu, unsigned msr)
{
    return msr != pmu->hides
           && (is_among(msr, PERFCTR0, pmu->gp)
               || is_among(msr, PERFEVTSEL0, pmu->gp)
               || is_among(msr, FIXED_CTR0, pmu->fixed)
               || is_among(msr, K7_EVNTSEL0, NUM_K7)
               || msr == DEBUGCTL
               || (pmu->pebs && is_of_pebs(msr))
               || (pmu->version >= 2 && msr >= FIXED_CTR_CTRL
                   && msr <= GLOBAL_CTRL));
}

/* QEMU transfers the PMU's registers separately from others. */
static bool is_of_pmu(unsigned msr)
{
    const struct pmu all = { .version = 2, .gp = 32, .fixed = 16,
                             .pebs = true };

    return has_register(&all, msr);
}

/* The value that was last written to a register */
static __u64 *content_of(unsigned msr)
{
    static __u64 intel[0x1000], amd[NUM_K7];

    return msr < K7_EVNTSEL0 ? &intel[msr % 0x1000] : &amd[msr % NUM_K7];
}

static void say_written(const struct kvm_msr_entry *entry)
{
    fprintf(stderr, "other host: wrote 0x%x 0x%llx\n", entry->index,
            (unsigned long long)entry->data);
}

static void transfer_one(const struct pmu *pmu, bool set,
                         struct kvm_msr_entry *entry)
{
    if (set) {
        say_written(entry);
        *content_of(entry->index) = entry->data;
    } else {
        entry->data = entry->index == pmu->holds ? pmu->value
                      : *content_of(entry->index);
    }
}

/* Returns: how many registers are there, before one that is not. */
static int transfer(const struct pmu *pmu, bool set, struct kvm_msrs *msrs)
{
    unsigned i;

    if (set) {
        fprintf(stderr, "other host: writes %u\n", msrs->nmsrs);
    }
    for (i = 0; i < msrs->nmsrs; i++) {
        if (!has_register(pmu, msrs->entries[i].index)) {
            break;
        }
        transfer_one(pmu, set, &msrs->entries[i]);
    }
    return i;
}

/*
 * Registers of the processor itself, one by one: this host's has them, but for
 * IA32_PERF_CAPABILITIES.  Returns: how many there are, before one that is not.
 */
static int pass_on(const struct pmu *pmu, int fd, unsigned long request,
                   struct kvm_msrs *msrs)
{
    unsigned i;

    for (i = 0; i < msrs->nmsrs; i++) {
        struct kvm_msr_entry *entry = &msrs->entries[i];
        struct {
            struct kvm_msrs head;
            struct kvm_msr_entry entry;
        } one = { .head.nmsrs = 1, .entry = *entry };

        if (entry->index == PERF_CAPABILITIES) {
            entry->data = pmu->pebs ? PEBS_FORMAT_4 : 0;
            continue;
        }
        if (request == KVM_SET_MSRS && entry->index == MISC_ENABLE) {
            say_written(entry);
        }
        if (kernel_ioctl(fd, request, &one) != 1) {
            break;
        }
        *entry = one.entry;
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
        } else if (entry->function == LEAF_FEATURES) {
            entry->ecx |= ECX_DTES64 | ECX_DSCPL | ECX_PDCM;
            entry->edx |= EDX_DS;
        }
    }
}

static void say_shown(const struct kvm_cpuid2 *cpuid)
{
    for (unsigned i = 0; i < cpuid->nent; i++) {
        const struct kvm_cpuid_entry2 *entry = &cpuid->entries[i];

        if (entry->function == LEAF_FEATURES) {
            fprintf(stderr, "other host: shows%s%s%s\n",
                    entry->edx & EDX_DS ? " DS" : "",
                    entry->ecx & ECX_DTES64 ? " DTES64" : "",
                    entry->ecx & ECX_DSCPL ? " DS-CPL" : "");
        }
    }
}

/* With PEBS, its register is one of the registers to be saved. */
static int list_registers(const struct pmu *pmu, int fd,
                          struct kvm_msr_list *list)
{
    const unsigned room = list->nmsrs;
    int result = kernel_ioctl(fd, KVM_GET_MSR_INDEX_LIST, list);

    if (!pmu->pebs) {
        return result;
    }
    if (result == 0 && list->nmsrs < room) {
        list->indices[list->nmsrs] = PEBS_ENABLE;
    }
    list->nmsrs++;
    return result;
}

/* Acts as a host with Intel's PMU; false if this host would act alike. */
static bool with_pmu(const struct pmu *pmu, int fd, unsigned long request,
                     void *argument, int *result)
{
    struct kvm_msrs *msrs = argument;

    switch (request) {
    case KVM_GET_SUPPORTED_CPUID:
        *result = kernel_ioctl(fd, request, argument);
        if (*result == 0) {
            tell_of_pmu(pmu, argument);
        }
        return true;
    case KVM_SET_CPUID2:
        say_shown(argument);
        return false;
    case KVM_GET_MSR_INDEX_LIST:
        *result = list_registers(pmu, fd, argument);
        return true;
    case KVM_GET_MSRS:
    case KVM_SET_MSRS:
        *result = msrs->nmsrs && is_of_pmu(msrs->entries[0].index)
                  ? transfer(pmu, request == KVM_SET_MSRS, msrs)
                  : pass_on(pmu, fd, request, msrs);
        return true;
    default:
        return false;
    }
}

/* Returns: how many registers come before that one. */
static unsigned before(const struct kvm_msrs *msrs, unsigned msr)
{
    unsigned i = 0;

    while (i < msrs->nmsrs && msrs->entries[i].index != msr) {
        i++;
    }
    return i;
}

/* Where one register is not there, and the rest is as on this host. */
static bool without(unsigned msr, int fd, unsigned long request,
                    void *argument, int *result)
{
    struct kvm_msrs *msrs = argument;
    unsigned all, there;

    if (request != KVM_GET_MSRS && request != KVM_SET_MSRS) {
        return false;
    }
    all = msrs->nmsrs;
    there = before(msrs, msr);
    if (there == all) {
        return false;
    }
    msrs->nmsrs = there;
    *result = there ? kernel_ioctl(fd, request, msrs) : 0;
    msrs->nmsrs = all;
    return true;
}

/* Returns: whether the host has Intel's PMU. */
static bool parse(const char *host, struct pmu *pmu)
{
    const char *hides = strstr(host, "hides="), *holds = strstr(host, "holds=");

    *pmu = (struct pmu) { .pebs = strstr(host, ",pebs") };
    if (hides) {
        sscanf(hides, "hides=0x%x", &pmu->hides);
    }
    if (holds) {
        sscanf(holds, "holds=0x%x:0x%llx", &pmu->holds, &pmu->value);
    }
    return sscanf(host, "pmu:%u,%u,%u", &pmu->version, &pmu->gp, &pmu->fixed)
           == 3;
}

static bool with_registers(const char *host, int fd, unsigned long request,
                           void *argument, int *result)
{
    struct pmu pmu;

    return parse(host, &pmu)
           ? with_pmu(&pmu, fd, request, argument, result)
           : pmu.hides && without(pmu.hides, fd, request, argument, result);
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

/* The other host's result; 0 if it acts as this host does. */
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

/* An old kernel does not offer this capability; QEMU 11.0 asks before. */
static bool lacks(const char *host, unsigned long request, void *argument)
{
    return !strcmp(host, "old") && request == KVM_CHECK_EXTENSION
           && (uintptr_t)argument == KVM_CAP_PMU_CAPABILITY;
}

int ioctl(int fd, unsigned long request, ...)
{
    const char *host = getenv("OTHER_HOST");
    va_list rest;
    void *argument;
    int error, result;

    va_start(rest, request);
    argument = va_arg(rest, void *);
    va_end(rest);
    /* The kernel takes 32 bits of it; QEMU may have extended the sign. */
    request = (unsigned)request;
    if (with_registers(host, fd, request, argument, &result)) {
        return result;
    }
    if (lacks(host, request, argument)) {
        return 0;
    }
    error = other(host, request, argument);
    if (error) {
        errno = -error;
        return -1;
    }
    return kernel_ioctl(fd, request, argument);
}

long syscall(long number, ...)
{
    const bool opens_event = number == SYS_perf_event_open;
    long a[NR_ARGUMENTS];
    va_list rest;

    va_start(rest, number);
    for (unsigned i = 0; i < NR_ARGUMENTS; i++) {
        a[i] = va_arg(rest, long);
    }
    va_end(rest);
    if (opens_event && !strcmp(getenv("OTHER_HOST"), "deny")) {
        errno = EACCES;
        return -1;
    }
    return kernel(number, a);
}
