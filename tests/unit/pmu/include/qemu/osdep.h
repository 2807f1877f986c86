/*
 * Parts of QEMU's osdep.h that hw/pmu's model needs, to build it on its own
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef QEMU_OSDEP_H
#define QEMU_OSDEP_H

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <glib.h>

#define HOST_BIG_ENDIAN (G_BYTE_ORDER == G_BIG_ENDIAN)
#define QEMU_BUILD_BUG_ON(x) _Static_assert(!(x), #x)

#endif /* QEMU_OSDEP_H */
