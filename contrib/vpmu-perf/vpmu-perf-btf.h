/*
 * vpmu-perf-btf - where the running kernel has the members of its structures
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef VPMU_PERF_BTF_H
#define VPMU_PERF_BTF_H

#include <stdbool.h>

/**
 * btf_open - read the types that the kernel describes
 *
 * Returns: false if it describes none.
 */
bool btf_open(void);

/**
 * btf_offset - find a member, also in a structure without a name
 * @structure: the structure's name
 * @member: the member's name
 *
 * Returns: its offset in bytes, or -1 if there is no such member.
 */
int btf_offset(const char *structure, const char *member);

/**
 * btf_close - forget the types
 */
void btf_close(void);

#endif /* VPMU_PERF_BTF_H */
