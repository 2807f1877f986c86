/*
 * Performance monitoring unit: which task a guest's CPU runs
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "hw/pmu/profile/task.h"

static bool read_pointer(const PmuTaskMemory *m, uint64_t addr, uint64_t *val)
{
    if (addr % sizeof(*val) || !m->read(m->opaque, addr, val, sizeof(*val))) {
        return false;
    }
    *val = m->big_endian ? GUINT64_FROM_BE(*val) : GUINT64_FROM_LE(*val);
    return true;
}

static bool read_number(const PmuTaskMemory *m, uint64_t addr, uint32_t *val)
{
    if (!m->read(m->opaque, addr, val, sizeof(*val))) {
        return false;
    }
    *val = m->big_endian ? GUINT32_FROM_BE(*val) : GUINT32_FROM_LE(*val);
    return *val < PMU_TASK_MAX_PID;
}

/* Reads aligned words, as these do not cross pages. */
static bool read_comm(const PmuTaskMemory *m, uint64_t addr, char *comm)
{
    for (unsigned at = 0; at < PMU_TASK_COMM; at += 4) {
        if (!m->read(m->opaque, addr + at, comm + at, 4)) {
            return false;
        }
    }
    return true;
}

bool pmu_task_read(const PmuTaskMemory *m, const PmuTaskLayout *layout,
                   PmuTask *task)
{
    uint64_t current;

    return read_pointer(m, m->own + layout->current, &current)
           && current % sizeof(uint32_t) == 0
           && read_number(m, current + layout->pid, &task->tid)
           && read_number(m, current + layout->tgid, &task->pid)
           && read_comm(m, current + layout->comm, task->comm);
}
