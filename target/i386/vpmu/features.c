/*
 * x86 virtual PMU: the features of each vendor's CPUs, and their registers
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "debugctl.h"
#include "internal.h"
#include "lbr.h"
#include "metrics.h"
#include "offcore.h"
#include "pebs.h"
#include "perfmon-ext.h"

const X86VPmuFeature *const intel_features[] = {
    &intel_metrics,
    &intel_offcore,
    &x86_debugctl,
    &intel_lbr,
    &arch_lbr,
    &intel_pebs,
    &intel_perfmon_ext,
    NULL
};

const X86VPmuFeature *const amd_features[] = {
    &x86_debugctl,
    &amd_lbr,
    NULL
};

const VMStateDescription *const x86_vpmu_subsections[] = {
    &vmstate_x86_vpmu_offcore,
    &vmstate_x86_vpmu_lbr,
    &vmstate_x86_vpmu_pebs,
    &vmstate_x86_vpmu_smm,
    NULL
};

static uint64_t *field_of(X86VPmu *v, size_t field, unsigned i)
{
    return (uint64_t *)((char *)v + field) + i;
}

static const X86VPmuMsr *find_in(const X86VPmuMsr *m, uint32_t msr,
                                 unsigned *index)
{
    for (; m && m->numbers; m++) {
        uint32_t offset = msr - m->first;

        if (offset % m->step == 0 && offset / m->step < m->numbers) {
            *index = offset / m->step;
            return m;
        }
    }
    return NULL;
}

static const X86VPmuMsr *find_msr(const X86VPmu *v, uint32_t msr,
                                  unsigned *index)
{
    const X86VPmuMsr *m = find_in(v->ops->msrs, msr, index);

    X86_VPMU_FOREACH_FEATURE(f, v->ops) {
        if (!m && !(f->ignored && f->ignored(v))) {
            m = find_in(f->msrs, msr, index);
        }
    }
    return m;
}

static bool register_exists(const X86VPmu *v, const X86VPmuMsr *m, unsigned i)
{
    return !m->count || i < m->count(v);
}

X86VPmuAccess x86_vpmu_read(X86VPmu *v, uint32_t msr, uint64_t *val)
{
    unsigned i;
    const X86VPmuMsr *m = find_msr(v, msr, &i);

    if (!m) {
        return X86_VPMU_NOT_MINE;
    }
    if (!register_exists(v, m, i)) {
        return X86_VPMU_FAULT;
    }
    pmu_begin(v->pmu);
    *val = m->field ? *field_of(v, m->field, i) : m->read ? m->read(v, i) : 0;
    pmu_commit(v->pmu);
    return X86_VPMU_DONE;
}

static void store_register(X86VPmu *v, const X86VPmuMsr *m, unsigned i,
                           uint64_t val)
{
    pmu_begin(v->pmu);
    if (m->field) {
        *field_of(v, m->field, i) = val;
    }
    if (m->write) {
        m->write(v, i, val);
    }
    pmu_commit(v->pmu);
}

X86VPmuAccess x86_vpmu_write(X86VPmu *v, uint32_t msr, uint64_t val)
{
    unsigned i;
    const X86VPmuMsr *m = find_msr(v, msr, &i);
    uint64_t writable;

    if (!m) {
        return X86_VPMU_NOT_MINE;
    }
    if (!register_exists(v, m, i) || (m->valid && !m->valid(v, val))) {
        return X86_VPMU_FAULT;
    }
    writable = m->writable ? m->writable(v) : 0;
    if ((!m->writable || val & ~writable) && !v->ops->ignores_invalid) {
        return X86_VPMU_FAULT;
    }
    if (m->writable) {
        store_register(v, m, i, val & writable);
    }
    return X86_VPMU_DONE;
}

/* Find register @n of some ranges; otherwise subtract their number from @n. */
static const X86VPmuStateMsr *find_state(const X86VPmu *v,
                                         const X86VPmuStateMsr *m,
                                         unsigned *n)
{
    for (; m && m->count; m++) {
        const unsigned count = m->count(v);

        if (*n < count) {
            return m;
        }
        *n -= count;
    }
    return NULL;
}

const X86VPmuStateMsr *x86_vpmu_state(const X86VPmu *v, unsigned n,
                                      unsigned *i)
{
    const X86VPmuStateMsr *m = NULL;

    *i = n;
    X86_VPMU_FOREACH_FEATURE(f, v->ops) {
        m = m ?: find_state(v, f->state, i);
    }
    return m ?: find_state(v, v->ops->state, i);
}

uint64_t x86_vpmu_read_state(X86VPmu *v, const X86VPmuStateMsr *m, unsigned i)
{
    return m->field ? *field_of(v, m->field, i) : m->read(v, i);
}

void x86_vpmu_load_state(X86VPmu *v, const X86VPmuStateMsr *m, unsigned i,
                         uint64_t val)
{
    if (m->field) {
        *field_of(v, m->field, i) = val;
    } else {
        m->load(v, i, val);
    }
}
