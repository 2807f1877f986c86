/*
 * x86 virtual PMU: between the register files and what they share
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

/* With that of IA32_FIXED_CTR3, which counts slots on CPUs that know them. */
#define X86_VPMU_MAX_FIXED 4

/* The latest version of Intel's architecture whose registers are known. */
#define X86_VPMU_MAX_INTEL_VERSION 5

/* The width of all counters. */
#define X86_VPMU_WIDTH 48

/* The modes that the two privilege filters of an x86 counter stand for. */
#define X86_VPMU_MODES_OS   0x55u
#define X86_VPMU_MODES_USER 0xaau
#define X86_VPMU_MODES_SMM  0xf0u

/* Those between VMRUN and #VMEXIT. */
#define X86_VPMU_MODES_GUEST 0xccu

/*
 * Of the registers that select events, what all vendors agree on; besides,
 * bits 0 to 15 are the event's and the unit mask.
 */
#define X86_EVTSEL_USR       (1ull << 16)
#define X86_EVTSEL_OS        (1ull << 17)
#define X86_EVTSEL_EDGE      (1ull << 18)
#define X86_EVTSEL_INT       (1ull << 20)
#define X86_EVTSEL_EN        (1ull << 22)
#define X86_EVTSEL_INV       (1ull << 23)
#define X86_EVTSEL_CMASK     24

#define MSR_IA32_DEBUGCTL    0x1d9

/* IA32_DEBUGCTL, DebugCtl: single steps end at branches alone. */
#define X86_DEBUGCTL_BTF     (1ull << 1)

/**
 * struct X86VPmuMsr - a range of registers of the same kind
 *
 * Each is read and written with the counters up to date and in a transaction,
 * by its index in the range.
 *
 * @first: the number of the first
 * @numbers: how many numbers are set aside for them
 * @step: from one to the next
 * @count: how many of those exist; the others fault
 * @writable: the bits that can be written as 1; NULL if none can
 * @read: what a register holds
 * @write: write one; what is not writable is 0.  NULL if it is read-only.
 * @valid: whether it can be written so; NULL if all that is writable can
 */
typedef struct X86VPmuMsr {
    uint32_t first;
    unsigned numbers;
    unsigned step;
    unsigned (*count)(const X86VPmu *v);
    uint64_t (*writable)(const X86VPmu *v);
    uint64_t (*read)(X86VPmu *v, unsigned i);
    void (*write)(X86VPmu *v, unsigned i, uint64_t val);
    bool (*valid)(const X86VPmu *v, uint64_t val);
} X86VPmuMsr;

/**
 * struct X86VPmuStateMsr - a range of registers that KVM keeps
 * @first: the number of the first
 * @step: from one to the next
 * @count: how many there are
 * @starts: writing one can start a counter
 * @read: what a register holds
 * @load: what the kernel says it holds; the counters follow in @update of
 *        X86VPmuOps
 */
typedef struct X86VPmuStateMsr {
    uint32_t first;
    unsigned step;
    unsigned (*count)(const X86VPmu *v);
    bool starts;
    uint64_t (*read)(X86VPmu *v, unsigned i);
    void (*load)(X86VPmu *v, unsigned i, uint64_t val);
} X86VPmuStateMsr;

/**
 * struct X86VPmuBits - what registers can hold
 * @evtsel: each of those that select events
 * @fixed_ctrl, @global_ctrl, @global_status, @debugctl: as in struct X86VPmu;
 *     0 if there is no such register
 */
typedef struct X86VPmuBits {
    uint64_t evtsel;
    uint64_t fixed_ctrl;
    uint64_t global_ctrl;
    uint64_t global_status;
    uint64_t debugctl;
} X86VPmuBits;

/**
 * enum X86VPmuStop - what registers say against a counter, a set of these
 * @X86_VPMU_STOP_EN: EN of the register that selects its event is clear
 * @X86_VPMU_STOP_FIXED_CTRL: so are both privileges in IA32_FIXED_CTR_CTRL
 * @X86_VPMU_STOP_GLOBAL_CTRL: its bit of the global control is clear
 * @X86_VPMU_STOP_CTR_FRZ: an interrupt has frozen all of them
 * @X86_VPMU_STOP_SVME: GuestOnly or HostOnly is set, and EFER.SVME clear
 * @X86_VPMU_STOP_IN_SMM: IA32_DEBUGCTL says not to count in SMM
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
 * @features: as x86_vpmu_features()
 * @configure: as x86_vpmu_configure(); only what depends on the vendor
 * @init: the numbers of counters are known; prepare what is derived from them
 * @reset: registers to their state after RESET; the counters are cleared
 * @cpuid: as x86_vpmu_cpuid(); the registers are 0
 * @misc_enable: as x86_vpmu_misc_enable(); NULL if there is nothing to add
 * @msrs: the registers
 * @nr_msrs: how many ranges there are
 * @state: those that KVM keeps, in the order in which they are written: what
 *         can start counters comes last
 * @nr_state: how many ranges these are
 * @in_stock_stream: the stream of QEMU without this PMU has the state under
 *                   KVM already, see x86_vpmu_pre_save()
 * @ignores_invalid: writing to a read-only register or to reserved bits is
 *                   ignored; otherwise it faults
 * @debug_clears: bits of IA32_DEBUGCTL that a debug exception clears
 * @put_aside_in_smm: the bit of it that has an SMI clear the same, until RSM;
 *                    0 if there is none
 * @rdpmc: as x86_vpmu_rdpmc()
 * @overflow: as PmuOverflowFn
 * @bits: what its registers can hold
 * @update: make the counters do what the registers say; in a transaction
 * @by: whose it is, for the monitor
 * @kind: what it is called there; the caller frees it
 * @counter_name: the register that is a counter, as the manual calls it
 * @event_code: of a general-purpose counter, X86_VPMU_CODE()
 * @interrupts: whether a counter's overflow raises an interrupt
 * @stops: what registers say against a counter, a set of X86VPmuStop
 */
typedef struct X86VPmuOps {
    uint64_t (*features)(X86CPU *cpu, FeatureWord w);
    bool (*configure)(X86CPU *cpu, Error **errp);
    void (*init)(X86VPmu *v);
    void (*reset)(X86VPmu *v);
    void (*cpuid)(const X86VPmu *v, uint32_t leaf, uint32_t *eax, uint32_t *ebx,
                  uint32_t *ecx, uint32_t *edx);
    uint64_t (*misc_enable)(X86VPmu *v, uint64_t val);
    const X86VPmuMsr *msrs;
    unsigned nr_msrs;
    const X86VPmuStateMsr *state;
    unsigned nr_state;
    bool in_stock_stream;
    bool ignores_invalid;
    uint64_t debug_clears;
    uint64_t put_aside_in_smm;
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

/**
 * enum X86VPmuEngine - who counts
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
 * struct X86VPmuArchLbr - what architectural branch records have of their own
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
 * struct X86VPmuSmm - what an SMI has put aside, for RSM to take back
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
 * struct X86VPmuKept - what the kernel keeps beside counters, under KVM
 * @debugctl: IA32_DEBUGCTL, DebugCtl
 * @pebs: IA32_DS_AREA, IA32_PEBS_ENABLE and MSR_PEBS_DATA_CFG, which the guest
 *        sees
 *
 * That depends on the host's kernel.  It tells none of Intel's branch records.
 */
typedef struct X86VPmuKept {
    bool debugctl;
    bool pebs;
} X86VPmuKept;

/**
 * struct X86VPmu - the PMU of one CPU
 * @cpu: the CPU
 * @ops: its vendor's register file
 * @unit: its counters, and what drives them
 * @pmu: the counters of @unit: general-purpose ones, then fixed ones
 * @hidden: of the registers that KVM should keep, those it does not; bit n is
 *          x86_vpmu_state(), n
 * @kept: those that not every kernel keeps
 * @engine: of enum X86VPmuEngine; a state does not go from one to another
 * @vendor: the CPU's, as CPUID has it in EBX
 * @version: of the architecture of the registers; AMD's are 2 with the global
 *           ones and 1 without
 * @nr_gp: general-purpose counters
 * @nr_fixed: fixed-function counters
 * @model: which codes of events the CPU knows
 * @filter: what it may count, under TCG
 * @evtsel: IA32_PERFEVTSELx, PERF_CTLx
 * @fixed_ctrl: IA32_FIXED_CTR_CTRL
 * @global_ctrl: IA32_PERF_GLOBAL_CTRL, PerfCntrGlobalCtl
 * @global_reset: what that is after RESET
 * @global_status: IA32_PERF_GLOBAL_STATUS, PerfCntrGlobalStatus
 * @debugctl: IA32_DEBUGCTL, DebugCtl
 * @dbg_extn_cfg: DBG_EXTN_CFG
 * @lbr: its last branch records, which hw/pmu records; NULL if it has none
 * @lbr_select: MSR_LBR_SELECT, LBR_SELECT
 * @lbr_info: MSR_LBR_INFO_x, IA32_LBR_x_INFO that have been written
 * @lbr_arch: of architectural branch records
 * @smm: what is put aside in SMM
 * @pebs: its event based sampling; NULL if it has none
 * @ds_area: IA32_DS_AREA
 * @pebs_enable: IA32_PEBS_ENABLE
 * @pebs_ld_lat: MSR_PEBS_LD_LAT
 * @pebs_data_cfg: MSR_PEBS_DATA_CFG
 * @pebs_armed: counters that have overflowed where there can be no record; not
 *              migrated, as they do so again
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
    const X86VPmuModel *model;
    const PmuFilter *filter;
    uint64_t evtsel[X86_VPMU_MAX_GP];
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

/* "HygonGenuine", as CPUID has it: EBX, EDX, ECX */
#define X86_VENDOR_HYGON_1 0x6f677948
#define X86_VENDOR_HYGON_2 0x6e65476e
#define X86_VENDOR_HYGON_3 0x656e6975

/**
 * x86_vpmu_is_amd - whether a CPU is AMD's, or one of Hygon's, which are AMD's
 *                   Zen
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
 * x86_vpmu_shown_as_amd - the same, of the CPU that the guest sees
 */
static inline bool x86_vpmu_shown_as_amd(const X86CPU *cpu)
{
    return x86_vpmu_is_amd(cpu->env.cpuid_vendor1, cpu->env.cpuid_vendor2,
                           cpu->env.cpuid_vendor3);
}

/**
 * x86_vpmu_asked_off - whether there is to be no PMU at all
 *
 * Otherwise a CPU without pmu=on has what CPUs without it always had: under
 * KVM on AMD's that is a PMU, and with older machine types pmu=off changed
 * nothing about it.
 */
static inline bool x86_vpmu_asked_off(const X86CPU *cpu)
{
    return cpu->vpmu_props.machine && cpu->pmu_asked_for && !cpu->enable_pmu;
}

/**
 * x86_vpmu_report_missing - a PMU that the user has asked for cannot be had
 * @cpu: the CPU
 * @why: the reason
 * @hint: what helps
 * @errp: set if the user wants no CPU then, which is what "enforce" says
 *
 * Otherwise this is a warning, and the machine starts.
 */
bool x86_vpmu_report_missing(const X86CPU *cpu, const char *why,
                             const char *hint, Error **errp);

/**
 * x86_vpmu_event_of - what a code counts on this CPU, whatever is filtered
 * @v: the PMU
 * @code: X86_VPMU_CODE()
 *
 * Returns: the event, or PMU_EVENT_NONE.
 */
PmuEvent x86_vpmu_event_of(const X86VPmu *v, uint32_t code);

/**
 * x86_vpmu_gp_select - what a general-purpose counter is to count
 * @v: the PMU
 * @i: the counter
 * @code: of its event
 * @modes: in which it may count, if its filters for privilege let it
 */
PmuSelect x86_vpmu_gp_select(const X86VPmu *v, unsigned i, uint32_t code,
                             PmuModes modes);

/**
 * x86_vpmu_low_bits - the lowest bits of a register, 0 to 63 of them
 */
static inline uint64_t x86_vpmu_low_bits(unsigned n)
{
    return (1ull << n) - 1;
}

/**
 * x86_vpmu_modes - the modes that the filters for privilege stand for
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
 * x86_vpmu_show_in_misc_enable - what IA32_MISC_ENABLE says about Intel's PMU
 * @val: its other bits
 * @pmu: whether the guest has one
 * @pebs: whether it finds PEBS
 *
 * Branch trace stores there are none, under TCG nor under KVM.
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
 * x86_vpmu_take_number - fill in a number that the CPU decides
 * @number: as the user has given it
 * @property: its name
 * @there: how many there are
 * @errp: what is allowed, if the user has given another
 */
bool x86_vpmu_take_number(uint32_t *number, const char *property,
                          uint32_t there, Error **errp);

/**
 * x86_vpmu_keep_for_host - take away what the guest is not to be shown
 * @props: the user's properties
 * @counters: how many general-purpose counters there are; then, how many the
 *            guest gets
 * @errp: what is allowed, if none would be left
 */
bool x86_vpmu_keep_for_host(const X86VPmuProps *props, uint32_t *counters,
                            Error **errp);

/**
 * x86_vpmu_wants - whether a CPU is to have what a property offers
 * @property: as the user has given it
 * @possible: nothing that the user has given is against it
 *
 * Under KVM, nobody has it who does not ask for it, and who does is refused.
 */
bool x86_vpmu_wants(OnOffAuto property, bool possible);

/**
 * x86_vpmu_refuse_lbr - there are no branch records that lbr=on could offer
 * @errp: set to that
 *
 * Returns: false.
 */
bool x86_vpmu_refuse_lbr(Error **errp);

/**
 * x86_vpmu_refuse_pebs - there is no PEBS that pebs=on could offer
 * @errp: set to that
 *
 * Returns: false.
 */
bool x86_vpmu_refuse_pebs(Error **errp);

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
 * and how they are read and written where vendors do not differ.
 */
unsigned x86_vpmu_one(const X86VPmu *v);
unsigned x86_vpmu_count_gp(const X86VPmu *v);
uint64_t x86_vpmu_counter_bits(const X86VPmu *v);
uint64_t x86_vpmu_any_bits(const X86VPmu *v);
uint64_t x86_vpmu_read_zero(X86VPmu *v, unsigned i);
uint64_t x86_vpmu_read_evtsel(X86VPmu *v, unsigned i);
uint64_t x86_vpmu_read_gp(X86VPmu *v, unsigned i);
void x86_vpmu_write_gp(X86VPmu *v, unsigned i, uint64_t val);
uint64_t x86_vpmu_read_global_ctrl(X86VPmu *v, unsigned i);
uint64_t x86_vpmu_read_global_status(X86VPmu *v, unsigned i);

/*
 * For tables of state: how it is loaded where vendors do not differ.
 */
void x86_vpmu_load_evtsel(X86VPmu *v, unsigned i, uint64_t val);
void x86_vpmu_load_global_ctrl(X86VPmu *v, unsigned i, uint64_t val);
void x86_vpmu_load_global_status(X86VPmu *v, unsigned i, uint64_t val);

/**
 * x86_vpmu_has_put_aside - whether an SMI has put aside anything
 * @v: the PMU
 */
static inline bool x86_vpmu_has_put_aside(const X86VPmu *v)
{
    return v->smm.debugctl || v->smm.lbr_enabled;
}

/**
 * x86_vpmu_raise_pmi - deliver the performance-monitoring interrupt
 * @v: the PMU
 * @counters: those that ask for it
 * @mask: whether delivery masks the local APIC's entry
 */
void x86_vpmu_raise_pmi(X86VPmu *v, uint64_t counters, bool mask);

/**
 * x86_vpmu_qtest_init - offer the commands of qtest
 */
void x86_vpmu_qtest_init(void);

/**
 * x86_vpmu_state - a register that KVM keeps
 * @v: the PMU
 * @n: which one, in the order in which they are written
 * @i: set to its index in the range of registers
 *
 * Returns: the range; NULL if there are no more.
 */
const X86VPmuStateMsr *x86_vpmu_state(const X86VPmu *v, unsigned n,
                                      unsigned *i);

#endif /* I386_VPMU_INTERNAL_H */
