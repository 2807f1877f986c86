/*
 * Performance monitoring unit: profiles in the monitor
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qapi/qapi-commands-pmu-monitor.h"
#include "object.h"

static PmuProfileState state_of(const PmuProfile *p)
{
    if (p->stopped) {
        return PMU_PROFILE_STATE_STOPPED;
    }
    return p->enabled ? PMU_PROFILE_STATE_SAMPLING : PMU_PROFILE_STATE_DISABLED;
}

static PmuProfileInfo *describe_profile(const PmuProfile *p)
{
    PmuProfileInfo *info = g_new0(PmuProfileInfo, 1);

    info->id = g_strdup(p->config.owner);
    info->state = state_of(p);
    info->has_stop_reason = p->stopped;
    info->stop_reason = p->stop_reason;
    info->samples = p->writer.samples;
    info->lost = p->writer.lost;
    info->throttled = p->writer.throttled;
    info->size = p->writer.size;
    return info;
}

static int add_profile(Object *object, void *opaque)
{
    PmuProfileInfoList ***tail = opaque;

    if (object_dynamic_cast(object, TYPE_PMU_PROFILE)) {
        QAPI_LIST_APPEND(*tail, describe_profile(PMU_PROFILE(object)));
    }
    return 0;
}

PmuProfileInfoList *qmp_query_pmu_profiles(Error **errp)
{
    PmuProfileInfoList *list = NULL, **tail = &list;

    object_child_foreach(object_get_objects_root(), add_profile, &tail);
    return list;
}
