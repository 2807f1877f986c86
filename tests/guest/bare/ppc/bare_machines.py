# SPDX-License-Identifier: GPL-2.0-or-later
"""Bare-metal test guests of Power: which suites run on a machine, and how."""

import os
import re
from functools import cache, partial

import assistant
import debugger
from jobs import Debugged, Group, Job, StraightCode, agreeing
from machine import (COMMON, KERNEL, LOGGED, MODES, ONE_MODE, PLUGGED, PROGRAMS,
                     QEMU, USUAL_MODES, Machine)
from straight import Listing

MODES['icount'] = ['-accel', 'tcg', '-icount', 'shift=1']

IMAGE = os.path.join(PROGRAMS, 'kernel.bin')
PROGRAM = debugger.Program(KERNEL, nm='powerpc64le-linux-gnu-nm', counter=64,
                           order='big')

# Cases that print something to compare, beside what they assert.
COMPARED = ['random/overflows', 'random/branches']


class PowerNV(Machine):
    """With an image of ours in the place of skiboot."""

    # What QEMU says when it is told to end, when it starts, and of a facility
    # that a case finds unavailable.
    usual = re.compile('terminating on signal 15|warning: machine has no BMC|'
                       r'Facility SPR \d+ is unavailable|WARNING: ASan')
    ends_itself = False

    def __init__(self, name, suites=None, but=(), cpu='', options=None,
                 model='powernv9', smp='1', usual_modes=USUAL_MODES,
                 devices=()):
        super().__init__(name, cpu, options, usual_modes)
        self.suites = suites            # if none: all
        self.but = but
        self.model = model
        self.smp = smp
        self.devices = devices

    def command(self, options):
        words = ' '.join(f'{key}={value}' for key, value in options.items())
        cpu = {'powernv9': 'power9', 'powernv10': 'power10'}[self.model]
        return [
            QEMU, *COMMON, '-machine', self.model,
            '-cpu', ','.join(filter(None, [cpu, self.cpu])),
            '-m', '1G', '-smp', self.smp, *self.devices,
            # There is no command line without a kernel, which is just loaded.
            '-bios', IMAGE, '-kernel', IMAGE, '-append', f'vpmu {words}',
        ]

    def good_statuses(self, lines):
        return {0}

    def suitable(self, cases):
        suites = [case.split('/')[0] for case in cases]
        return [case for case, suite in zip(cases, suites)
                if (self.suites is None or suite in self.suites)
                and suite not in self.but]


def cpi(thousandths):
    return PowerNV(f'cpi {thousandths}', ['cycles'],
                   cpu=f'pmu-cpi={thousandths}', options={'cpi': thousandths})


def with_core(name, model):
    """A modelled core, of which the preset and no size is given."""
    return PowerNV(name, ['core'], cpu='pmu-core=core0', model=model,
                   devices=['-object', 'pmu-core,id=core0,preset=power9'])


OTHERS = ['nopmu', 'smp', 'debugger', 'core']
DEFAULT = PowerNV('POWER9', but=OTHERS)
ASSISTED = PowerNV('debugger', ['debugger'])
MACHINES = [
    DEFAULT,
    PowerNV('POWER10', but=OTHERS, model='powernv10', usual_modes=ONE_MODE),
    ASSISTED,
    PowerNV('two cores', ['smp'], smp='2,cores=2'),
    PowerNV('four cores', ['smp'], smp='4,cores=4', options={'cpus': 4}),
    PowerNV('two threads', ['smp'], smp='2,threads=2', model='powernv10'),
    cpi(2000),
    cpi(1337),
    with_core('core', 'powernv9'),
    with_core('core POWER10', 'powernv10').variant(usual_modes=ONE_MODE),
    PowerNV('off', ['machine', 'nopmu'], cpu='pmu=off'),
]

# Suites that a debugger interferes with, as on x86: it stops where everything
# that is counted begins, and at stores.
INTERRUPTED = [PowerNV('debugger', [suite]) for suite in
               ('alert', 'bhrb', 'branch', 'count', 'ebb', 'fault',
                'interrupt', 'memory', 'overflow')]
# Modes in which it does so, and whether a usual check has them.
DEBUGGED_MODES = {'multi': False, 'observed': False, 'profiled': True}
# Suites in which branches are recorded from outside, and what no code goes
# straight on from.
STRAIGHT = ['branch', 'domain', 'ebb', 'fault', 'freeze', 'interrupt']
LEAVING = re.compile(r'(ba?|bla?|b(l|ct)rl?|scv?|trap|h?rfid|rfebb|rfscv)'
                     r'(\s|$)')
# Suites with exceptions of all kinds, of which QEMU can be told to say.
SPOKEN_OF = PowerNV('POWER9', ['alert', 'domain', 'ebb', 'fault', 'interrupt'])


def interfere(path, timeout):
    debugger.interfere(path, PROGRAM, timeout, ['run'], 'memory_word')


def assist(path, timeout):
    assistant.assist(path, PROGRAM, timeout)


@cache
def listing():
    return Listing('powerpc64le-linux-gnu-objdump', KERNEL, LEAVING)


def debugged(machine, cases, ways):
    """Cases with a debugger, in these ways."""
    return Group([Debugged(interfere, machine, mode, cases)
                  for mode, usual in DEBUGGED_MODES.items()
                  if ways.beside(usual)])


def all_groups(cases, ways):
    """The suites of each machine, in these ways."""
    found = []
    for machine in MACHINES:
        kind = partial(Debugged, assist) if machine is ASSISTED else Job
        suitable = machine.suitable(cases)
        if suitable:
            found.append(agreeing(
                partial(kind, machine), ways.modes(machine), suitable,
                [case for case in COMPARED if case in suitable]))
    for machine in INTERRUPTED:
        suitable = machine.suitable(cases)
        if suitable:
            found.append(debugged(machine, suitable, ways))
    for suite in STRAIGHT if ways.beside() else []:
        machine = PowerNV('branches outside', [suite])
        suitable = machine.suitable(cases)
        if suitable:
            found.append(Group([StraightCode(listing, machine, 'multi',
                                             suitable)]))
    if ways.beside():
        plugged = PowerNV('POWER9', PLUGGED).suitable(cases)
        found.append(Group([Job(DEFAULT, 'plugins', plugged)] * bool(plugged)))
        logged = SPOKEN_OF.suitable(cases)
        found.append(Group([Job(SPOKEN_OF, 'logged', logged, LOGGED)]
                           * bool(logged)))
    return [group for group in found if group.jobs]
