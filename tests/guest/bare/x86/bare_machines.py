# SPDX-License-Identifier: GPL-2.0-or-later
"""Bare-metal test guests of x86: on which machines a suite runs, and how."""

import os
import re
from functools import cache, partial

import debugger
from codes import code
from jobs import (Debugged, Group, Job, NestedApart, Replayed, SpacesApart,
                  Stepped, StraightCode, agreeing)
from machine import (COMMON, KERNEL, LOGGED, MODES, ONE_MODE, PLUGGED, PROGRAMS,
                     QEMU, USUAL_MODES, Machine)
from straight import Listing

MODES['icount'] = ['-accel', 'tcg', '-icount', 'shift=0']

# How long an instruction takes, for the guest.
INSN_NS = {'icount': 1 << 0}

# The guest writes 0x10 to isa-debug-exit, or 0x11 if a case has failed.
ENDED_WELL, ENDED_WITH_FAILURE = 0x21, 0x23

DEFAULT_CPU = 'Skylake-Client-v1,pmu=on'
AMD_CPU = 'EPYC-Genoa-v1,pmu=on,+monitor,+x2apic'


class Pc(Machine):
    """With a ROM of ours in the place of the BIOS."""

    def __init__(self, name, cpu=DEFAULT_CPU, options=None, cpus=2, ended=(),
                 devices=(), **more):
        super().__init__(name, cpu, options, **more)
        self.cpus = cpus
        self.devices = devices
        self.ended = ended      # further statuses with which it may end well

    def command(self, options):
        command = [
            QEMU, *COMMON, '-machine', 'pc', '-m', '32',
            '-smp', str(self.cpus), '-cpu', self.cpu,
            '-bios', os.path.join(PROGRAMS, 'rom.bin'),
            '-global', 'apic-common.vapic=off',
            '-device', 'isa-debug-exit,iobase=0xf4,iosize=0x4', *self.devices,
        ]
        if os.environ.get('QEMU_BIOS_DIR'):
            command += ['-L', os.environ['QEMU_BIOS_DIR']]
        for key, value in {'cpus': self.cpus, **options}.items():
            command += ['-fw_cfg', f'name=opt/vpmu/{key},string={value}']
        return command

    def good_statuses(self, lines):
        failed = any(line.startswith('not ok ') for line in lines)
        return {ENDED_WITH_FAILURE if failed else ENDED_WELL, *self.ended}


def cpi(thousandths):
    return Pc(f'cpi {thousandths}', f'{DEFAULT_CPU},pmu-cpi={thousandths}',
              {'cpi': thousandths})


def clock(mhz, vendor='', cpu=DEFAULT_CPU):
    return Pc(f'{vendor}{mhz} MHz', f'{cpu},pmu-cycles=time,'
              f'pmu-frequency={mhz * 1000000}', {'mhz': mhz})


def version(number, counters=4):
    return Pc(f'v{number}', f'{DEFAULT_CPU},pmu-version={number},'
              f'pmu-gp-counters={counters}',
              {'version': number, 'counters': counters})


def lbr(name, number, thousandths=1000, depth=32, **more):
    return Pc(f'{name} v{number}',
              f'{name},pmu=on,lbr=on,pmu-version={number},'
              f'pmu-cpi={thousandths}', {'cpi': thousandths, 'depth': depth},
              **more)


def pebs(name, **options):
    return Pc(f'{name} PEBS', f'{name},pmu=on,pebs=on', options)


def cpus(number):
    return Pc(f'{number} CPUs', cpus=number)


def debugged(machine):
    return Pc(f'{machine.name} debugger'.strip(), machine.cpu,
              {**machine.options, 'debugger': 1}, machine.cpus,
              devices=machine.devices)


def model(name, codes_of):
    return Pc(name, f'{name},pmu=on',
              {event: code(codes_of, event)
               for event in ['conditional', 'loads', 'stores']})


DEFAULT = Pc('')
AMD = Pc('AMD', AMD_CPU)

# Suites that also run on AMD's PMU: all but those about registers of Intel's.
ON_AMD = ['branch', 'btf', 'count', 'cycles', 'fault', 'interrupt', 'memory',
          'mode', 'oracle', 'overflow', 'random', 'rep', 'smc', 'smm', 'smp',
          'space', 'state', 'step', 'svm']

# A modelled core, of which the preset and no size is given, and its CPU
CORE_CPU = DEFAULT_CPU + ',lbr=on,pmu-core=core0'
CORE = ['-object', 'pmu-core,id=core0,preset=skylake']

# Suites that need another machine than the default one, or several.
MACHINES = {
    'clock': [clock(1000), clock(1100), clock(3000)],
    'core': [Pc('', CORE_CPU, devices=CORE),
             Pc('SapphireRapids', 'SapphireRapids,pmu=on,lbr=on,pmu-core=core0',
                devices=CORE)],
    'count': [Pc('', DEFAULT_CPU + ',+monitor')],
    'cycles': [DEFAULT, cpi(2000), cpi(1337)],
    'lbr': [lbr('Skylake-Client-v1', 4),
            lbr('Skylake-Client-v1', 2),
            lbr('Haswell-noTSX', 3, depth=16),
            lbr('Nehalem', 3, depth=16),
            lbr('KnightsMill', 3, depth=8),
            lbr('Denverton', 4, 1500),
            lbr('Snowridge', 4),
            lbr('SapphireRapids', 5),
            lbr('SierraForest', 4, 1500),
            Pc('AMD', f'{AMD_CPU},lbr=on')],
    'memory': [Pc('', DEFAULT_CPU + ',+mpx',
                  devices=['-device', 'e1000,addr=3,romfile='])],
    'models': [
        DEFAULT,
        model('Nehalem', 'nehalem'),
        model('Haswell', 'haswell'),
        model('Icelake-Server-v5', 'ice_lake'),
        model('SapphireRapids', 'golden_cove'),
        model('Snowridge', 'tremont'),
    ],
    'mode': [DEFAULT, Pc('max', 'max,vendor=GenuineIntel')],
    'nopmu': [
        Pc('off', 'Skylake-Client-v1,pmu=off'),
        # All leaves of CPUID
        Pc('max', 'max,level=0x1f'),
        Pc('AMD', 'EPYC-Genoa'),
        Pc('Zhaoxin', 'YongFeng,pmu=on'),
    ],
    'overflow': [DEFAULT, version(3), version(5, 8)],
    'random': [DEFAULT, version(5, 8)],
    'pebs': [pebs('Nehalem', loads=code('nehalem', 'loads'),
                  stores=code('nehalem', 'stores'),
                  latency=code('nehalem_pebs', 'loads')),
             pebs('Skylake-Client-v1'), pebs('IvyBridge', store_sample=1),
             pebs('Haswell-noTSX'), pebs('Icelake-Server-v5'),
             pebs('SapphireRapids', store_sample=1, both_latencies=1),
             Pc('clock PEBS', f'{DEFAULT_CPU},pebs=on,pmu-cycles=time,'
                'pmu-frequency=1000000000'),
             Pc('core PEBS', f'{DEFAULT_CPU},pebs=on,pmu-core=core0',
                {'core': 1}, devices=CORE)],
    'reset': [clock(1000), clock(1000, 'AMD ', AMD_CPU)],
    # K8, families 10h and 15h, Zen and Zen 3
    'selectors': [Pc(name, f'{name},pmu=on')
                  for name in ['Opteron_G1', 'Opteron_G3',
                               'EPYC-v1,family=21,model=2', 'EPYC-v1',
                               'EPYC-Milan-v1']],
    'smp': [DEFAULT, cpus(4)],
    'svm': [Pc('', DEFAULT_CPU + ',+svm'),
            Pc('PEBS', DEFAULT_CPU + ',+svm,pebs=on'),
            Pc('SapphireRapids', 'SapphireRapids,pmu=on,+svm,pebs=on',
               {'interrupts': 0}),
            Pc('AMD LBR', f'{AMD_CPU},lbr=on')],
    'unfiltered': [lbr('Penryn', 2, depth=4)],
    'version': [version(1), version(2), version(3), version(4),
                version(5, 8)],
}

# Suites that reset the machine do not end it by that.
ARGUMENTS = dict.fromkeys(['reset', 'state'], ['-action', 'reboot=reset'])

# Suites that assert nothing themselves: what they print is compared.
COMPARED = ['oracle']

# Suites that are also recorded and replayed, with one CPU.  A replay may end by
# the recorded event before it has the guest's status.
REPLAYED = ['core', 'count', 'interrupt', 'memory', 'oracle', 'overflow', 'rep']
# Of long suites, no usual check has replays, or a debugger that interferes; of
# the longest, in which each observer takes some hundred thousand samples, it
# has no observers.
LONG = ['core', 'count', 'oracle', 'overflow', 'rep']
UNOBSERVED = [mode for mode in USUAL_MODES if mode != 'observed']
RECORDED = Pc('', options={'recorded': 1}, cpus=1, ended=[0])
RECORDED_MACHINES = {
    'core': Pc('', CORE_CPU, {'recorded': 1}, cpus=1, ended=[0], devices=CORE),
}

# Suites that a debugger interferes with: it stops where everything that is
# counted begins, and at stores.
INTERRUPTED = ['branch', 'core', 'count', 'fault', 'interrupt', 'memory',
               'mode',
               'oracle', 'overflow', 'rep', 'smc', 'smm', 'svm',
               'btf', 'lbr', 'pebs', 'unfiltered']
DEBUGGED = [debugged(Pc('', DEFAULT_CPU + ',+svm,+monitor'))]
# Suites that need another machine for that, too, or several.
DEBUGGED_MACHINES = {
    'core': [debugged(MACHINES['core'][0])],
    'lbr': [debugged(machine) for machine in MACHINES['lbr']
            if machine.name in ['Skylake-Client-v1 v4', 'SapphireRapids v5',
                                'AMD']],
    'pebs': [debugged(machine) for machine in MACHINES['pebs']
             if machine.name in ['Nehalem PEBS', 'SapphireRapids PEBS']],
    'unfiltered': [debugged(machine) for machine in MACHINES['unfiltered']],
}
# The suite that has guests of its own is profiled from outside.
PROFILED = Pc('profiled', DEFAULT_CPU + ',+svm')
# Suites in which branches are recorded from outside, and what no code goes
# straight on from.
BRANCHES_OUTSIDE = Pc('branches outside', DEFAULT_CPU + ',+svm')
STRAIGHT = ['branch', 'btf', 'fault', 'interrupt', 'mode', 'smm', 'state',
            'svm']
OF_32_BITS = ['branch_into', 'mode_compatibility']
LEAVING = re.compile('l?jmp|l?call|l?ret|iret|int|sys(call|ret|enter|exit)|ud2|'
                     'vmrun|rsm')
# Suites with exceptions of all kinds, of which QEMU can be told to say.
SPOKEN_OF = ['fault', 'interrupt', 'smm', 'svm']
PROGRAM = debugger.Program(KERNEL, nm='nm', counter=16, order='little')
# Modes in which a debugger interferes, and whether a usual check has them.
DEBUGGED_MODES = {'multi': False, 'observed': False, 'profiled': True}
# Those in which it takes every step of the suite "step".
STEP_MODES = [*DEBUGGED_MODES, 'icount']


def interfere(path, timeout):
    debugger.interfere(path, PROGRAM, timeout, ['run_kernel', 'run_user'],
                       'spare')


def step(path, timeout, complain):
    debugger.step_through(path, PROGRAM, timeout, complain)


@cache
def listing():
    return Listing('objdump', KERNEL, LEAVING, OF_32_BITS)


def groups(suite, cases, ways):
    """A suite on all of its machines, in these ways."""
    def job(machine, mode, cases=cases, kind=Job):
        return kind(machine, mode, cases, ARGUMENTS.get(suite, []),
                    {'insn_ns': INSN_NS.get(mode, 0)}, suite not in COMPARED)

    first, *others = MACHINES.get(suite, [DEFAULT]) + [AMD] * (suite in ON_AMD)
    if suite in PLUGGED:
        first = first.variant(usual_modes=[*USUAL_MODES, 'plugins'])
    elif suite == 'oracle':
        first = first.variant(usual_modes=UNOBSERVED)
    machines = [first, *(machine.variant(usual_modes=ONE_MODE)
                         for machine in others)]
    compared = cases if suite in COMPARED else []
    found = [agreeing(partial(job, machine), ways.modes(machine), cases,
                      compared) for machine in machines]
    if suite in INTERRUPTED:
        found[0].jobs += [job(machine, mode, kind=partial(Debugged, interfere))
                          for machine in DEBUGGED_MACHINES.get(suite, DEBUGGED)
                          for mode, usual in DEBUGGED_MODES.items()
                          if ways.beside(usual and suite not in LONG)]
    if ways.beside() and suite == 'svm':
        found[0].jobs.append(job(PROFILED, 'multi', kind=partial(
            NestedApart, KERNEL, 'svm_guest', 'svm_guest_exit')))
    if ways.beside() and suite == 'space':
        found[0].jobs.append(job(Pc('profiled'), 'multi', kind=partial(
            SpacesApart, KERNEL, ['space_home', 'space_other'])))
    if ways.beside() and suite in STRAIGHT:
        found[0].jobs.append(job(BRANCHES_OUTSIDE, 'multi', kind=partial(
            StraightCode, listing)))
    if ways.beside() and suite in SPOKEN_OF:
        found[0].jobs.append(Job(BRANCHES_OUTSIDE.variant(name=''), 'logged',
                                 cases, LOGGED))
    if suite in REPLAYED and ways.beside(suite not in LONG):
        found.append(Group([job(RECORDED_MACHINES.get(suite, RECORDED), None,
                                kind=Replayed)]))
    if ways.beside() and suite == 'step':
        found += [Group([job(DEBUGGED[0], mode, kind=partial(Stepped, step))])
                  for mode in STEP_MODES]
    return found


def all_groups(cases, ways):
    """@cases: SUITE/CASE; if the guest's own suite fails, look no further."""
    suites = {}
    for case in cases:
        suites.setdefault(case.split('/')[0], []).append(case)
    return [group
            for suite in sorted(suites, key=lambda name: (name != 'machine',
                                                          name))
            for group in groups(suite, suites[suite], ways)]
