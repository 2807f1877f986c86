/*
 * Names that differ between the series of QEMU that this code supports
 *
 * Include this after QEMU's own headers.
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef HW_PMU_COMPAT_H
#define HW_PMU_COMPAT_H

#define IS_AFTER_10_2 \
    (QEMU_VERSION_MAJOR > 10 \
     || (QEMU_VERSION_MINOR == 2 && QEMU_VERSION_MICRO >= 50))

/*
 * QEMU 11.0 itself migrates AMD's PMU under KVM, which only CPUs with pmu=on
 * have.
 */
#define STOCK_HAS_AMD_PMU IS_AFTER_10_2

/* Machine types that did not raise CPUID's level by themselves are gone. */
#if IS_AFTER_10_2
#define full_cpuid_auto_level(cpu) true
#else
#define full_cpuid_auto_level(cpu) ((cpu)->full_cpuid_auto_level)
#endif

#if QEMU_VERSION_MAJOR == 10 && QEMU_VERSION_MINOR == 0

#ifndef CONFIG_USER_ONLY
#include "exec/address-spaces.h"
#include "exec/memory.h"
#include "exec/ramblock.h"
#include "hw/boards.h"
#include "hw/qdev-properties.h"
#endif

#define INSN_START_WORDS TARGET_INSN_START_WORDS
#define queue_tb_flush(cpu) tb_flush(cpu)
#define chardev_frontend(chr) ((chr)->be)
#define apic_read_msr(apic, index, val) apic_msr_read(index, val)
#define apic_write_msr(apic, index, val) apic_msr_write(index, val)
#define save_vmstate(f, vmsd, opaque) \
    vmstate_save_state(f, vmsd, opaque, NULL)
#define load_vmstate(f, vmsd, opaque, version) \
    vmstate_load_state(f, vmsd, opaque, version)

typedef void ClassData;

#ifdef COMPILING_PER_TARGET
#include "exec/exec-all.h"

typedef struct TCGTBCPUState {
    vaddr pc;
    uint64_t cs_base;
    uint32_t flags;
} TCGTBCPUState;

static inline TCGTBCPUState state_of_block(CPUState *cpu)
{
    TCGTBCPUState s;

    cpu_get_tb_cpu_state(cpu_env(cpu), &s.pc, &s.cs_base, &s.flags);
    return s;
}
#endif

#else /* 10.2, and later */

#include "exec/cpu-common.h"
#include "exec/icount.h"
#include "exec/target_page.h"
#ifndef CONFIG_USER_ONLY
#include "accel/accel-ops.h"
#include "system/address-spaces.h"
#include "system/memory.h"
#include "system/ramblock.h"
#if IS_AFTER_10_2
#include "hw/core/boards.h"
#include "hw/core/qdev-properties.h"
#else
#include "hw/boards.h"
#include "hw/qdev-properties.h"
#endif
#endif

#define CharBackend CharFrontend
#define chardev_frontend(chr) ((chr)->fe)
#define apic_read_msr apic_msr_read
#define apic_write_msr apic_msr_write
#define save_vmstate(f, vmsd, opaque) \
    vmstate_save_state(f, vmsd, opaque, NULL, NULL)
#define load_vmstate(f, vmsd, opaque, version) \
    vmstate_load_state(f, vmsd, opaque, version, NULL)

typedef const void ClassData;

#if defined(COMPILING_PER_TARGET) && defined(CONFIG_TCG)
#include "accel/tcg/cpu-ops.h"
#include "accel/tcg/getpc.h"
#include "accel/tcg/probe.h"
#include "exec/tlb-flags.h"
#include "exec/translation-block.h"

static inline TCGTBCPUState state_of_block(CPUState *cpu)
{
    return cpu->cc->tcg_ops->get_tb_cpu_state(cpu);
}
#endif

#endif

#endif
