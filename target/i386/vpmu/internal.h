/*
 * x86 virtual PMU: the interface between the register files and common code
 *
 * SPDX-License-Identifier: GPL-2.0-or-later
 */

#ifndef I386_VPMU_INTERNAL_H
#define I386_VPMU_INTERNAL_H

#include "hw/pmu/pmu-cpu.h"
#include "qapi/qapi-types-pmu-monitor.h"
#include "vpmu.h"
#include "events.h"
#include "filter.h"

#define X86_VPMU_MAX_GP 8

/* Including IA32_FIXED_CTR3, which counts slots on CPUs that support them */
#define X86_VPMU_MAX_FIXED 4

/* The counters of MSR_PERF_METRICS */
#define X86_VPMU_MAX_METRICS 4

/*
 * The latest version of Intel's architecture that is supported, and the one
 * under KVM: what CPUID leaf 0x23 says there is not passed on
 */
#define X86_VPMU_MAX_INTEL_VERSION 6
#define X86_VPMU_MAX_KVM_VERSION   5

/* The width of all counters */
#define X86_VPMU_WIDTH 48

/* The modes that the two privilege filters of an x86 counter select */
#define X86_VPMU_MODES_OS   0x55u
#define X86_VPMU_MODES_USER 0xaau
#define X86_VPMU_MODES_SMM  0xf0u

/* The modes between VMRUN and #VMEXIT */
#define X86_VPMU_MODES_GUEST 0xccu

/*
 * The bits that the registers for selecting events have in common with all
 * vendors; besides, bits 0 to 15 are the event and the unit mask.
 */
#define X86_EVTSEL_USR       (1ull << 16)
#define X86_EVTSEL_OS        (1ull << 17)
#define X86_EVTSEL_EDGE      (1ull << 18)
#define X86_EVTSEL_INT       (1ull << 20)
#define X86_EVTSEL_EN        (1ull << 22)
#define X86_EVTSEL_INV       (1ull << 23)
#define X86_EVTSEL_CMASK     24

/* IA32_PERF_GLOBAL_STATUS, PerfCntrGlobalStatus: frozen by an interrupt */
#define X86_STATUS_LBRS_FROZEN     (1ull << 58)
#define X86_STATUS_COUNTERS_FROZEN (1ull << 59)

/* IA32_PERF_GLOBAL_INUSE: there can be an interrupt. */
#define X86_INUSE_PMI              (1ull << 63)

/**
 * struct X86VPmuMsr - a range of registers of the same kind; an empty one ends
 *                     a list
 *
 * A register is read and written by its index in the range, with the counters
 * up to date and in a transaction.
 *
 * @first: the number of the first
 * @numbers: how many numbers are reserved for them
 * @step: the distance of their numbers
 * @count: how many of them exist; the others fault.  NULL if all do
 * @writable: the bits that can be written as 1; NULL if it is read-only
 * @field: where their values are, X86_VPMU_FIELD(); 0 if they are in no field
 * @write: put the value that was written into effect, after it is in @field;
 *         other bits than @writable are 0.  NULL if there is nothing to do
 * @read: read a register that is in no field; NULL if it reads 0
 * @valid: whether a value can be written; NULL if each in @writable can
 */
typedef struct X86VPmuMsr {
    uint32_t first;
    unsigned numbers;
    unsigned step;
    unsigned (*count)(const X86VPmu *v);
    uint64_t (*writable)(const X86VPmu *v);
    size_t field;
    void (*write)(X86VPmu *v, unsigned i, uint64_t val);
    uint64_t (*read)(X86VPmu *v, unsigned i);
    bool (*valid)(const X86VPmu *v, uint64_t val);
} X86VPmuMsr;

/* The place of a register, or of the first of several, in struct X86VPmu */
#define X86_VPMU_FIELD(_field) offsetof(X86VPmu, _field)

/**
 * struct X86VPmuStateMsr - a range of registers that KVM saves; an empty one
 *                          ends a list
 * @first: the number of the first
 * @step: the distance of their numbers
 * @count: how many there are
 * @starts: writing one can start a counter
 * @field: as in struct X86VPmuMsr
 * @load: take a value from the kernel that is for no field; the counters follow
 *        in @update of X86VPmuOps
 * @read: read a register that is in no field
 */
typedef struct X86VPmuStateMsr {
    uint32_t first;
    unsigned step;
    unsigned (*count)(const X86VPmu *v);
    bool starts;
    size_t field;
    void (*load)(X86VPmu *v, unsigned i, uint64_t val);
    uint64_t (*read)(X86VPmu *v, unsigned i);
} X86VPmuStateMsr;

/**
 * struct X86VPmuFeature - what a PMU can have besides counters
 * @msrs: its registers
 * @ignored: whether QEMU ignores them, as all that it does not know, on a CPU
 *           that does not have them, although processors of its model do
 * @state: those that some versions of KVM save, besides the vendor's
 * @offers: as x86_vpmu_features(), of a CPU that may have it
 * @lacks: as x86_vpmu_missing_features(), under KVM
 * @init: find out whether the CPU has it, and which kind
 * @reset: registers to their state after RESET
 * @ends_at_init: whether INIT resets them, too
 * @cpuid: as x86_vpmu_cpuid(); sets bits of its own
 * @evtsel, @fixed_ctrl, @status, @debugctl, @inuse: the bits that it adds to
 *     IA32_PERFEVTSELx, IA32_FIXED_CTR_CTRL, PerfCntrGlobalStatus,
 *     IA32_DEBUGCTL, and IA32_PERF_GLOBAL_INUSE
 * @global: those that it adds to IA32_PERF_GLOBAL_CTRL and
 *          IA32_PERF_GLOBAL_STATUS
 * @event: the event of a code that only CPUs with the feature have
 * @update: follow the registers; in a transaction, after the counters
 * @skips: the modes in which it stops a counter
 * @written: handle that a counter was written; in a transaction.  Returns
 *           whether its events have to be selected again.
 * @claims: the counters whose overflow neither interrupts nor sets the global
 *          status, but is handled by @overflow
 * @overflow: handle the overflow of a set of these; in the handler of overflow,
 *            and in a transaction.  Returns the counters that interrupt, as a
 *            buffer is full.  Their events are selected again after this.
 * @on_pmi: freeze, before counters interrupt
 * @is_used: whether there is state that a stream should have
 * @stops: as in struct X86VPmuOps
 * @describe: fill in its part of the monitor's answer
 *
 * Each function is NULL if there is nothing to do, and does nothing for a PMU
 * that does not have the feature.
 */
typedef struct X86VPmuFeature {
    const X86VPmuMsr *msrs;
    bool (*ignored)(const X86VPmu *v);
    const X86VPmuStateMsr *state;
    uint64_t (*offers)(X86CPU *cpu, FeatureWord w);
    uint64_t (*lacks)(const X86CPU *cpu, FeatureWord w);
    void (*init)(X86VPmu *v);
    void (*reset)(X86VPmu *v);
    bool (*ends_at_init)(const X86VPmu *v);
    void (*cpuid)(const X86VPmu *v, uint32_t leaf, uint32_t *eax, uint32_t *ebx,
                  uint32_t *ecx, uint32_t *edx);
    uint64_t (*evtsel)(const X86VPmu *v);
    uint64_t (*fixed_ctrl)(const X86VPmu *v);
    uint64_t (*status)(const X86VPmu *v);
    uint64_t (*debugctl)(const X86VPmu *v);
    uint64_t (*inuse)(const X86VPmu *v);
    uint64_t (*global)(const X86VPmu *v);
    PmuEvent (*event)(const X86VPmu *v, uint32_t code);
    void (*update)(X86VPmu *v);
    PmuModes (*skips)(const X86VPmu *v, unsigned counter);
    bool (*written)(X86VPmu *v, unsigned counter);
    uint64_t (*claims)(const X86VPmu *v);
    uint64_t (*overflow)(X86VPmu *v, uint64_t counters);
    void (*on_pmi)(X86VPmu *v);
    bool (*is_used)(const X86VPmu *v);
    unsigned (*stops)(const X86VPmu *v, unsigned i);
    void (*describe)(const X86VPmu *v, PmuInfo *info);
} X86VPmuFeature;

/**
 * X86_VPMU_FOREACH_FEATURE - go through the features of a vendor's CPUs
 * @_f: a name for the feature
 * @_ops: the vendor's register file
 */
#define X86_VPMU_FOREACH_FEATURE(_f, _ops) \
    for (const X86VPmuFeature *const *_p = (_ops)->features, *_f; \
         (_f = *_p); _p++)

/**
 * X86_VPMU_CALL - call a function of each feature of a vendor's CPUs
 * X86_VPMU_UNION - likewise, with the union of the results as value
 */
#define X86_VPMU_CALL(_ops, _function, ...) \
    ({ \
        X86_VPMU_FOREACH_FEATURE(_f, _ops) { \
            if (_f->_function) { \
                _f->_function(__VA_ARGS__); \
            } \
        } \
    })
#define X86_VPMU_UNION(_ops, _function, ...) \
    ({ \
        uint64_t _all = 0; \
        X86_VPMU_FOREACH_FEATURE(_f, _ops) { \
            _all |= _f->_function ? _f->_function(__VA_ARGS__) : 0; \
        } \
        _all; \
    })

/**
 * struct X86VPmuBits - the bits that registers can hold
 * @evtsel: for each register that selects an event
 * @fixed_ctrl, @global_ctrl, @global_status: as in struct X86VPmu; 0 if there
 *     is no such register
 */
typedef struct X86VPmuBits {
    uint64_t evtsel;
    uint64_t fixed_ctrl;
    uint64_t global_ctrl;
    uint64_t global_status;
} X86VPmuBits;

/**
 * enum X86VPmuStop - the reasons in registers why a counter stops; a set
 * @X86_VPMU_STOP_EN: EN of the register that selects its event is clear
 * @X86_VPMU_STOP_FIXED_CTRL: so are both privileges in IA32_FIXED_CTR_CTRL
 * @X86_VPMU_STOP_GLOBAL_CTRL: its bit of the global control is clear
 * @X86_VPMU_STOP_CTR_FRZ: an interrupt has frozen all of them
 * @X86_VPMU_STOP_SVME: GuestOnly or HostOnly is set, and EFER.SVME clear
 * @X86_VPMU_STOP_IN_SMM: IA32_DEBUGCTL disables counting in SMM
 */
typedef enum X86VPmuStop {
    X86_VPMU_STOP_EN          = 1 << 0,
    X86_VPMU_STOP_FIXED_CTRL  = 1 << 1,
    X86_VPMU_STOP_GLOBAL_CTRL = 1 << 2,
    X86_VPMU_STOP_CTR_FRZ     = 1 << 3,
    X86_VPMU_STOP_SVME        = 1 << 4,
    X86_VPMU_STOP_IN_SMM      = 1 << 5,
} X86VPmuStop;

/**
 * struct X86VPmuOps - a vendor's register file
 * @offers: as x86_vpmu_features()
 * @init: initialize fields that depend on the numbers of counters
 * @reset: registers to their state after RESET; the counters are cleared
 * @cpuid: as x86_vpmu_cpuid(); the registers are 0
 * @msrs: the registers
 * @state: the registers that KVM saves, in the order of writing: registers
 *         that can start counters come last
 * @features: what such a CPU can have besides, ended by NULL
 * @in_stock_stream: the stream of QEMU without this PMU has the state under
 *                   KVM already, see x86_vpmu_pre_save()
 * @ignores_invalid: writing to a read-only register or to reserved bits is
 *                   ignored; otherwise it faults
 * @rdpmc: as x86_vpmu_rdpmc()
 * @overflow: as PmuOverflowFn
 * @bits: the bits that its registers can hold
 * @update: make the counters follow the registers; in a transaction
 * @by: the vendor, for the monitor
 * @kind: the name of the PMU's kind there; the caller frees it
 * @counter_name: the register that is a counter, as the manual calls it
 * @event_code: the code of a general-purpose counter, X86_VPMU_CODE()
 * @interrupts: whether a counter's overflow raises an interrupt
 * @stops: why registers stop a counter, a set of X86VPmuStop
 */
typedef struct X86VPmuOps {
    uint64_t (*offers)(X86CPU *cpu, FeatureWord w);
    void (*init)(X86VPmu *v);
    void (*reset)(X86VPmu *v);
    void (*cpuid)(const X86VPmu *v, uint32_t leaf, uint32_t *eax, uint32_t *ebx,
                  uint32_t *ecx, uint32_t *edx);
    const X86VPmuMsr *msrs;
    const X86VPmuStateMsr *state;
    const X86VPmuFeature *const *features;
    bool in_stock_stream;
    bool ignores_invalid;
    bool (*rdpmc)(X86VPmu *v, uint32_t index, uint64_t *val);
    PmuOverflowFn *overflow;
    X86VPmuBits (*bits)(const X86VPmu *v);
    void (*update)(X86VPmu *v);
    PmuVendor by;
    char *(*kind)(const X86VPmu *v);
    const char *(*counter_name)(const X86VPmu *v, unsigned i);
    uint32_t (*event_code)(const X86VPmu *v, unsigned i);
    bool (*interrupts)(const X86VPmu *v, unsigned i);
    unsigned (*stops)(const X86VPmu *v, unsigned i);
} X86VPmuOps;

/* offcore.h */
typedef struct X86VPmuOffcore X86VPmuOffcore;
#define X86_VPMU_MAX_OFFCORE 2

/**
 * enum X86VPmuEngine - the engine that counts
 */
typedef enum X86VPmuEngine {
    X86_VPMU_TCG,
    X86_VPMU_QTEST,
    X86_VPMU_KVM,
} X86VPmuEngine;

/* lbr.h */
typedef struct X86VPmuLbr X86VPmuLbr;
#define X86_VPMU_MAX_LBR PMU_RECORDER_MAX

/* The last event record, IA32_LER_x, in the order of their numbers. */
enum {
    X86_VPMU_LER_FROM,
    X86_VPMU_LER_TO,
    X86_VPMU_LER_INFO,
    X86_VPMU_LER__MAX,
};

/**
 * struct X86VPmuArchLbr - the registers of architectural branch records alone
 * @ctl: IA32_LBR_CTL
 * @depth: IA32_LBR_DEPTH
 * @ler: the last event record
 */
typedef struct X86VPmuArchLbr {
    uint64_t ctl;
    uint64_t depth;
    uint64_t ler[X86_VPMU_LER__MAX];
} X86VPmuArchLbr;

/**
 * struct X86VPmuSmm - the state that an SMI has put aside until RSM
 * @debugctl: IA32_DEBUGCTL; 0 if it stays in SMM as it was
 * @lbr_enabled: IA32_LBR_CTL.LBREn
 */
typedef struct X86VPmuSmm {
    uint64_t debugctl;
    bool lbr_enabled;
} X86VPmuSmm;

/* pebs.h */
typedef struct X86VPmuPebs X86VPmuPebs;

/**
 * struct X86VPmuKept - the registers besides counters that KVM saves
 * @debugctl: IA32_DEBUGCTL, DebugCtl
 * @pebs: IA32_DS_AREA, IA32_PEBS_ENABLE and MSR_PEBS_DATA_CFG, if the guest
 *        sees them
 *
 * This depends on the host's kernel.  No kernel saves Intel's branch records.
 */
typedef struct X86VPmuKept {
    bool debugctl;
    bool pebs;
} X86VPmuKept;

/**
 * struct X86VPmu - the PMU of one CPU
 * @cpu: the CPU
 * @ops: its vendor's register file
 * @unit: its counters, and their engine
 * @pmu: the counters of @unit: general-purpose ones, then fixed ones, then
 *       those of MSR_PERF_METRICS
 * @hidden: registers that KVM should save and does not; bit n is
 *          x86_vpmu_state(), n
 * @kept: the registers that only some kernels save
 * @engine: of enum X86VPmuEngine; a state does not go from one to another
 * @vendor: the CPU's, as CPUID has it in EBX
 * @version: of the architecture of the registers; AMD's are 2 with the global
 *           ones and 1 without
 * @nr_gp: general-purpose counters
 * @nr_fixed: fixed-function counters
 * @nr_metrics: counters of MSR_PERF_METRICS; 0 without that register
 * @model: the codes of events that the CPU supports
 * @filter: the events that it may count, under TCG
 * @evtsel: IA32_PERFEVTSELx, PERF_CTLx
 * @offcore_rsp: MSR_OFFCORE_RSP_x
 * @fixed_ctrl: IA32_FIXED_CTR_CTRL
 * @global_ctrl: IA32_PERF_GLOBAL_CTRL, PerfCntrGlobalCtl
 * @global_reset: its value after RESET
 * @global_status: IA32_PERF_GLOBAL_STATUS, PerfCntrGlobalStatus
 * @debugctl: IA32_DEBUGCTL, DebugCtl
 * @dbg_extn_cfg: DBG_EXTN_CFG
 * @lbr: its kind of last branch records; NULL without these
 * @lbr_select: MSR_LBR_SELECT, LBR_SELECT
 * @lbr_info: MSR_LBR_INFO_x, IA32_LBR_x_INFO that have been written
 * @lbr_arch: the registers of architectural branch records
 * @smm: the state that is put aside in SMM
 * @pebs: its kind of event based sampling; NULL without it
 * @ds_area: IA32_DS_AREA
 * @pebs_enable: IA32_PEBS_ENABLE
 * @pebs_ld_lat: MSR_PEBS_LD_LAT
 * @pebs_data_cfg: MSR_PEBS_DATA_CFG
 * @pebs_armed: counters that have overflowed where no record can be written;
 *              not migrated, as they do so again
 * @pmis: how many interrupts it has raised; not migrated
 */
struct X86VPmu {
    X86CPU *cpu;
    const X86VPmuOps *ops;
    PmuCpu *unit;
    Pmu *pmu;
    uint64_t hidden;
    X86VPmuKept kept;
    uint32_t engine;
    uint32_t vendor;
    uint32_t version;
    uint32_t nr_gp;
    uint32_t nr_fixed;
    uint32_t nr_metrics;
    const X86VPmuModel *model;
    const PmuFilter *filter;
    uint64_t evtsel[X86_VPMU_MAX_GP];
    uint64_t offcore_rsp[X86_VPMU_MAX_OFFCORE];
    uint64_t fixed_ctrl;
    uint64_t global_ctrl;
    uint64_t global_reset;
    uint64_t global_status;
    uint64_t debugctl;
    uint64_t dbg_extn_cfg;
    const X86VPmuLbr *lbr;
    uint64_t lbr_select;
    uint64_t lbr_info[X86_VPMU_MAX_LBR];
    X86VPmuArchLbr lbr_arch;
    X86VPmuSmm smm;
    const X86VPmuPebs *pebs;
    uint64_t ds_area;
    uint64_t pebs_enable;
    uint64_t pebs_ld_lat;
    uint64_t pebs_data_cfg;
    uint64_t pebs_armed;
    uint64_t pmis;
};

extern const X86VPmuOps intel_vpmu_ops, amd_vpmu_ops;
extern const X86VPmuFeature *const intel_features[], *const amd_features[];
extern const VMStateDescription *const x86_vpmu_subsections[];

/* "HygonGenuine", as CPUID has it: EBX, EDX, ECX */
#define X86_VENDOR_HYGON_1 0x6f677948
#define X86_VENDOR_HYGON_2 0x6e65476e
#define X86_VENDOR_HYGON_3 0x656e6975

/**
 * x86_vpmu_is_amd - whether a CPU is AMD's, or one of Hygon's, which are Zen
 *                   CPUs of AMD's
 * @ebx, @edx, @ecx: its vendor, as CPUID has it
 */
static inline bool x86_vpmu_is_amd(uint32_t ebx, uint32_t edx, uint32_t ecx)
{
    return (ebx == CPUID_VENDOR_AMD_1 && edx == CPUID_VENDOR_AMD_2
            && ecx == CPUID_VENDOR_AMD_3)
           || (ebx == X86_VENDOR_HYGON_1 && edx == X86_VENDOR_HYGON_2
               && ecx == X86_VENDOR_HYGON_3);
}

/**
 * x86_vpmu_shown_as_amd - whether the guest sees a CPU as AMD's
 */
static inline bool x86_vpmu_shown_as_amd(const X86CPU *cpu)
{
    return x86_vpmu_is_amd(cpu->env.cpuid_vendor1, cpu->env.cpuid_vendor2,
                           cpu->env.cpuid_vendor3);
}

/**
 * x86_vpmu_asked_off - whether the CPU must not have any PMU
 *
 * Otherwise a CPU without pmu=on is as in QEMU without this PMU: under KVM on
 * AMD it has a PMU, and with older machine types pmu=off does not change that.
 */
static inline bool x86_vpmu_asked_off(const X86CPU *cpu)
{
    return cpu->vpmu_props.machine && cpu->pmu_asked_for && !cpu->enable_pmu;
}

/**
 * x86_vpmu_ops_for - the register file that a CPU would have
 * @cpu: the CPU, not necessarily realized
 *
 * Returns: NULL if it would have no PMU.
 */
const X86VPmuOps *x86_vpmu_ops_for(X86CPU *cpu);

/**
 * x86_vpmu_wanted_lbr, x86_vpmu_wanted_pebs - what a CPU is to have, according
 *                                             to its properties
 * @cpu: the CPU, not necessarily realized
 *
 * Returns: the kind of its model; NULL if it is to have none.
 */
const X86VPmuLbr *x86_vpmu_wanted_lbr(X86CPU *cpu);
const X86VPmuPebs *x86_vpmu_wanted_pebs(const X86CPU *cpu);

/**
 * x86_vpmu_wants_metrics - whether a CPU is to count slots, and to tell what
 *                          became of them
 * @cpu: the CPU, not necessarily realized
 */
bool x86_vpmu_wants_metrics(X86CPU *cpu);

/**
 * x86_vpmu_wants_extended - whether CPUID leaf 0x23 is to describe a CPU's PMU
 * @cpu: the CPU, not necessarily realized
 */
bool x86_vpmu_wants_extended(X86CPU *cpu);

/**
 * x86_vpmu_intel_version - the version of Intel's architecture, as given by the
 *                          user or as its features need
 * @cpu: the CPU, not necessarily realized
 */
uint32_t x86_vpmu_intel_version(X86CPU *cpu);

/**
 * intel_nr_arch_events - how many architectural events CPUID tells of
 * intel_unavailable_events - those of them that are not counted, a set of bits
 * @v: the PMU
 */
unsigned intel_nr_arch_events(const X86VPmu *v);
uint32_t intel_unavailable_events(const X86VPmu *v);

/* The CPUID leaf of PerfMonV2 */
#define AMD_LEAF_PERFMON 0x80000022

/**
 * x86_vpmu_perf_capabilities - the bits of IA32_PERF_CAPABILITIES that the user
 *                              did not disable and that the PMU supports
 * @v: the PMU
 */
uint64_t x86_vpmu_perf_capabilities(const X86VPmu *v);

/**
 * amd_has_core_counters - whether there are six counters that the user did not
 *                         disable
 * @cpu: the CPU
 *
 * Under KVM the host decides, whatever model the guest sees.
 */
bool amd_has_core_counters(const X86CPU *cpu);

/**
 * amd_has_global_registers - whether a CPU has the registers of PerfMonV2
 * @cpu: the CPU
 *
 * PerfMonV2 extends PerfCtrExtCore.  Under KVM, CPUID does not have it without
 * that (x86_vpmu_missing_features()), but on old machine types.
 */
bool amd_has_global_registers(X86CPU *cpu);

/**
 * amd_count_counters - the number of counters, without the user's properties
 * @cpu: the CPU
 */
uint32_t amd_count_counters(X86CPU *cpu);

/**
 * x86_vpmu_event_of - the event of a code on this CPU, without any filter
 * @v: the PMU
 * @code: X86_VPMU_CODE()
 *
 * Returns: the event, or PMU_EVENT_NONE.
 */
PmuEvent x86_vpmu_event_of(const X86VPmu *v, uint32_t code);

/**
 * x86_vpmu_gp_select - the event selection of a general-purpose counter
 * @v: the PMU
 * @i: the counter
 * @code: the code of its event
 * @modes: in which it may count, if its filters for privilege allow it
 */
PmuSelect x86_vpmu_gp_select(const X86VPmu *v, unsigned i, uint32_t code,
                             PmuModes modes);

/**
 * x86_vpmu_freezes_in_status - whether interrupts freeze by status bits
 * @v: the PMU
 *
 * Otherwise an interrupt clears the bits that enable what it freezes.
 */
static inline bool x86_vpmu_freezes_in_status(const X86VPmu *v)
{
    return v->ops->by == PMU_VENDOR_AMD || v->version >= 4;
}

/**
 * x86_vpmu_low_bits - the lowest bits of a register, 0 to 63 of them
 */
static inline uint64_t x86_vpmu_low_bits(unsigned n)
{
    return (1ull << n) - 1;
}

/**
 * x86_vpmu_modes - the modes that the filters for privilege select
 */
static inline PmuModes x86_vpmu_modes(bool os, bool user)
{
    return (os ? X86_VPMU_MODES_OS : 0) | (user ? X86_VPMU_MODES_USER : 0);
}

/* IA32_MISC_ENABLE */
#define X86_MISC_ENABLE_PERFMON       (1ull << 7)
#define X86_MISC_ENABLE_BTS_UNAVAIL   (1ull << 11)
#define X86_MISC_ENABLE_PEBS_UNAVAIL  (1ull << 12)

/**
 * x86_vpmu_show_in_misc_enable - set the bits of IA32_MISC_ENABLE for the PMU
 * @val: its other bits
 * @pmu: whether the guest has one
 * @pebs: whether it finds PEBS
 *
 * Branch trace stores are not available, neither under TCG nor under KVM.
 */
static inline uint64_t x86_vpmu_show_in_misc_enable(uint64_t val, bool pmu,
                                                    bool pebs)
{
    val &= ~(X86_MISC_ENABLE_PERFMON | X86_MISC_ENABLE_PEBS_UNAVAIL);
    return val | X86_MISC_ENABLE_BTS_UNAVAIL
           | (pmu ? X86_MISC_ENABLE_PERFMON : 0)
           | (pebs ? 0 : X86_MISC_ENABLE_PEBS_UNAVAIL);
}

/**
 * x86_vpmu_read, x86_vpmu_write - access a register of the table
 * @v: the PMU
 * @msr: its number
 * @val: as in x86_vpmu_rdmsr(), and x86_vpmu_wrmsr()
 */
X86VPmuAccess x86_vpmu_read(X86VPmu *v, uint32_t msr, uint64_t *val);
X86VPmuAccess x86_vpmu_write(X86VPmu *v, uint32_t msr, uint64_t val);

/*
 * For tables of registers: how many there are, the bits that can be written,
 * and functions to read and write them that all vendors use.
 */
unsigned x86_vpmu_count_gp(const X86VPmu *v);
uint64_t x86_vpmu_counter_bits(const X86VPmu *v);
uint64_t x86_vpmu_any_bits(const X86VPmu *v);
uint64_t x86_vpmu_read_gp(X86VPmu *v, unsigned i);
void x86_vpmu_write_gp(X86VPmu *v, unsigned i, uint64_t val);

/**
 * x86_vpmu_raise_pmi - deliver the performance-monitoring interrupt
 * @v: the PMU
 * @counters: the counters that ask for it
 * @mask: whether delivery masks the local APIC's entry
 */
void x86_vpmu_raise_pmi(X86VPmu *v, uint64_t counters, bool mask);

/**
 * x86_vpmu_qtest_init - offer the commands of qtest
 */
void x86_vpmu_qtest_init(void);

/**
 * x86_vpmu_state - find a register that KVM saves
 * @v: the PMU
 * @n: which one, in the order in which they are written
 * @i: set to its index in the range of registers
 *
 * Returns: the range; NULL if there are no more.
 */
const X86VPmuStateMsr *x86_vpmu_state(const X86VPmu *v, unsigned n,
                                      unsigned *i);

/**
 * x86_vpmu_read_state, x86_vpmu_load_state - access such a register
 * @v: the PMU, in a transaction to load it
 * @m: the range
 * @i: its index there
 * @val: the value
 */
uint64_t x86_vpmu_read_state(X86VPmu *v, const X86VPmuStateMsr *m, unsigned i);
void x86_vpmu_load_state(X86VPmu *v, const X86VPmuStateMsr *m, unsigned i,
                         uint64_t val);

#endif /* I386_VPMU_INTERNAL_H */
