# SPDX-License-Identifier: GPL-2.0-or-later
"""Bare-metal test guests: machines, and how one is booted."""

import copy
import os
import re
import subprocess
import tempfile
import threading

ROOT = os.path.normpath(os.path.join(os.path.dirname(__file__), '../../../..'))
BUILD = os.path.abspath(os.environ.get('BUILD', os.path.join(ROOT, 'build')))
ARCH = os.environ.get('ARCH', 'x86_64')
PROGRAMS = os.path.join(BUILD, 'tests/guest/bare',
                        {'x86_64': 'x86', 'ppc64': 'ppc'}[ARCH])
KERNEL = os.path.join(PROGRAMS, 'kernel.elf')
QEMU = os.environ.get('QEMU', f'qemu-system-{ARCH}')

# Of all machines.
COMMON = ['-nodefaults', '-no-reboot', '-display', 'none',
          '-serial', 'stdio', '-monitor', 'none']

DATA = {'x86_64': 'off', 'ppc64': 'on'}[ARCH]

# Whoever looks from outside must not be noticed.  Instructions have a period so
# short that most blocks have the end of one; events of many kinds cannot.  One
# has all branches recorded, beside what the guest records; on Power, another
# has the addresses of data noted (x86 needs a core for that).  The last one
# comes from another thread, whenever that pleases; it wakes up several times in
# each period, which takes the host's time.
OBSERVERS = [word for number, what in enumerate([
                 'event=instructions,period=97',
                 'event=branches,period=4001,branch-stack=on',
                 f'event=accesses,period=1009,data-address={DATA}',
                 'accounting=vcpu,event=cpu-clock,period=1000000'])
             for word in ('-object', f'pmu-profile,id=observer{number},{what},'
                          'callchain=4,file=/dev/null')]

# One that lets blocks be executed whole, and looks behind them.
LATE_OBSERVER = ['-object', 'pmu-profile,id=late,period=97,file=/dev/null']

# QEMU's own, which instrument each instruction and each access, in both ways.
PLUGINS = os.path.join(os.path.dirname(QEMU), 'tests/tcg/plugins')
# Power has no clock yet when libinsn reads its registers.
PLUGGED_IN = [*(['-plugin', f'{PLUGINS}/libinsn.so,inline=on']
                if ARCH == 'x86_64' else []),
              '-plugin', f'{PLUGINS}/libmem.so,callback=on',
              '-object', 'pmu-profile,id=accesses,event=accesses,period=1009,'
              'file=/dev/null']

# All that QEMU can say of exceptions and of the PMU, for who debugs a guest.
LOGGED = ['-accel', 'tcg', '-D', '/dev/null', '-d', 'int,guest_errors,unimp',
          *(word for events in ('ppc_excp*', 'ppc_vpmu*', 'x86_vpmu*', 'pmu_*')
            for word in ('-trace', events))]

# Everything must hold in each of these; beside them there is icount, with a
# time for each instruction that suits the architecture.
MODES = {
    'multi': ['-accel', 'tcg,thread=multi'],
    'single': ['-accel', 'tcg,thread=single'],
    # With so little room for blocks that all are flushed often.
    'one-insn': ['-accel', 'tcg,one-insn-per-tb=on,tb-size=1'],
    'no-chain': ['-accel', 'tcg,tb-size=1', '-d', 'nochain'],
    'observed': ['-accel', 'tcg,thread=multi', *OBSERVERS],
    'profiled': ['-accel', 'tcg,thread=multi', *LATE_OBSERVER],
    'plugins': ['-accel', 'tcg,thread=multi', *PLUGGED_IN],
}
# Modes of a usual check.  It has one thread for all in icount; nothing is
# chained in one-insn; late observers look where a debugger interferes; and
# plugins look at some suites.
USUAL_MODES = ('multi', 'one-insn', 'observed', 'icount')
PLUGGED = ['count', 'fault', 'memory', 'pebs', 'rep']
# The same for a machine on which a suite runs after it has in all of these on
# another: engine and guest are the same, only the model differs.
ONE_MODE = ('multi',)


class Ways:
    """What is to be run: some modes alone; or a usual check, what that leaves
    out, or both."""

    def __init__(self, modes, ways):
        self._modes = modes
        self._ways = ways               # 'usual', 'other' or None for both

    def modes(self, machine):
        """Those in which a machine's suites run."""
        return self._modes or [mode for mode in MODES
                               if self._has(mode in machine.usual_modes)]

    def beside(self, usual=True):
        """Whether to run something else; @usual: a usual check does"""
        return not self._modes and self._has(usual)

    def _has(self, usual):
        return self._ways in (None, 'usual' if usual else 'other')


class Machine:
    """A way to start suites: what differs from the default machine.

    An architecture's machines say how QEMU is called, what it may say, whether
    the guest can end it, and with which statuses it may end then.
    """

    # Of features that TCG lacks, and of a QEMU under sanitizers.
    usual = re.compile('warning:|WARNING: ASan')
    ends_itself = True

    def __init__(self, name, cpu='', options=None, usual_modes=USUAL_MODES):
        self.name = name
        self.cpu = cpu
        self.options = options or {}    # of the guest
        self.usual_modes = usual_modes  # of a usual check

    def variant(self, **changes):
        """A machine that differs in what is named."""
        other = copy.copy(self)
        other.__dict__.update(changes)
        return other

    def command(self, options):
        """QEMU and its options, with options of the guest."""
        raise NotImplementedError

    def good_statuses(self, lines):
        """Those with which QEMU may end when a guest has printed that."""
        raise NotImplementedError

    def boot(self, args, options, timeout, meddle=None):
        """
        Start QEMU, call @meddle meanwhile, and wait for the end.

        Returns the guest's lines, and what was wrong with how QEMU ended, if
        anything: a crash after the guest's last line is one, too.
        """
        command = self.command({**options, **self.options}) + list(args)
        with tempfile.TemporaryFile() as file:
            lines, status = self._run(command, timeout, file, meddle)
            file.seek(0)
            said = file.read().decode(errors='replace').splitlines()
        said = [line for line in said if line and not self.usual.search(line)]
        if 'end' in lines and not said and status in self.good_statuses(lines):
            return lines, None
        complaint = (f'no end after {timeout} s' if status is None
                     else f'QEMU ended with status {status}')
        return lines, ': '.join([complaint, *said[-1:]])

    def _run(self, command, timeout, errors, meddle):
        """Returns the lines and the status, which is None after the timeout."""
        with subprocess.Popen(command, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=errors, text=True,
                              errors='replace') as process:
            late = threading.Timer(timeout, process.kill)
            late.start()
            meddler = threading.Thread(target=meddle or (lambda: None))
            meddler.start()
            try:
                lines = self._read(process)
                status = process.wait() if late.is_alive() else None
            finally:
                late.cancel()
                process.kill()
                meddler.join()
        return lines, status

    def _read(self, process):
        lines = []
        for line in process.stdout:
            lines.append(line.rstrip('\r\n'))
            if lines[-1] == 'end' and not self.ends_itself:
                process.terminate()
        return lines
