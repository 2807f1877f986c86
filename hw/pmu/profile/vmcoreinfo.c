/*
 * Performance monitoring unit: the kernel that a guest reports
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "hw/misc/vmcoreinfo.h"
#include "hw/pmu/profile/guest-kernel.h"
#include "hw/pmu/compat.h"

/* Linux uses a page, of at most 64 KiB, and the header of the note. */
#define MAX_NOTE (68 * 1024)

/* The device with which a guest reports its kernel; NULL without one */
static const VMCoreInfoState *device;

/*
 * vmcoreinfo_find() searches all objects, so it is called early: some objects
 * are gone already when the last samples are written.
 */
bool pmu_guest_kernel_can_be_told(void)
{
    device = vmcoreinfo_find();
    return device;
}

static bool is_offered(const VMCoreInfoState *s)
{
    return s && s->has_vmcoreinfo
           && le16_to_cpu(s->vmcoreinfo.guest_format)
              == FW_CFG_VMCOREINFO_FORMAT_ELF;
}

bool pmu_guest_kernel_find(PmuGuestKernel *kernel)
{
    const VMCoreInfoState *s = device;
    g_autofree char *note = NULL;
    uint32_t size;

    if (!is_offered(s)) {
        return false;
    }
    size = MIN(le32_to_cpu(s->vmcoreinfo.size), MAX_NOTE);
    note = g_malloc(size);
    return address_space_read_ram(&address_space_memory,
                                  le64_to_cpu(s->vmcoreinfo.paddr),
                                  MEMTXATTRS_UNSPECIFIED, note, size)
           && pmu_guest_kernel_parse(kernel, note, size);
}
