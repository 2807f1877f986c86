# SPDX-License-Identifier: GPL-2.0-or-later
"""A call of vpmu-perf."""

import contextlib
import os
import re
import resource
import signal
import stat
import sys

from .arguments import arguments
from .commands.command import run as run_other_command
from .errors import (
    ENDING, Ended, Failure, StandardError, end_by_signal, restore_locale,
    say)
from .guests import forget_if_damaged, start
from .job import (
    directories_to_write, exported, give_job, ignored_signals, job, kind_of)
from .kept import (
    MANY_REQUESTS, keep_blocks, keep_for_next_call, requests, try_to_keep)
from .machine import Installation, cpu_of, hint_at_machine
from .outputs import Output, close_all, is_device
from .perf_command import SYSTEM_WIDE, Command, takes_memory
from .qemu import environment_of_qemu, temporary_log
from .session import Session

# How many files QEMU opens, and some of the program's.
FILES = 64


def say_what_is_missing(args, qemu, notes):
    """perf shows what is not counted, or not modelled, as if it were."""
    if 'multiplexed' in notes:
        say('there were more events than the CPU has counters: some were '
            'counted only part of the time, and those numbers are estimates; '
            'ask for fewer at once')
    if not args.run and takes_memory(args.perf):
        say('there are no caches: each access is shown as a hit of the first '
            'level, with one latency for all')
    if args.cpu and (lacks := qemu.lacks()):
        say(f'the CPU is without {", ".join(lacks)}, which TCG does not have')
    for report in qemu.reports():
        say(report)


def write_result(args, there, session):
    """How it ended, and what was measured, for the other commands."""
    import json
    machine = {
        'architecture': args.arch, 'cpu': cpu_of(args), 'core': args.core,
        'cpus': args.cpus, 'memory': args.memory, 'qemu': there.qemu,
        'kernel': there.kernel, 'aslr': args.aslr, 'seed': args.seed,
        'region': args.region, 'ignored': ignored_signals() or None,
        'environment': {
            'variables': len(os.environ),
            'bytes': sum(len(os.fsencode(f'{name}={value}')) + 1
                         for name, value in os.environ.items())},
    }
    with open(args.result, 'w', encoding='utf-8') as f:
        json.dump({'end': session.end, 'measured': session.measured,
                   'machine': machine}, f)


def end_as(words):
    """End as perf did."""
    status = int(words[1])
    if words[0] == 'exited':
        # Before it ends, Python would give them their default actions.
        for number in ENDING:
            signal.signal(number, signal.SIG_IGN)
        return status
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # SIGKILL, and those that the C library has for itself, are as they were.
    with contextlib.suppress(OSError):
        signal.signal(status, signal.SIG_DFL)
    os.kill(os.getpid(), status)
    return 128 + status


def end_with_program(args, command, session):
    """How a job ended: not well if a signal has ended perf's program.

    Where perf itself has sent that signal after some time, it did.
    """
    number = int(session.notes.get('crashed', 0))
    if not number or not command.program or args.run:
        return session.end
    if number == signal.SIGILL:
        say(f'{command.program} executed an invalid instruction, or one that '
            f'the CPU {args.cpu or "of the guest"} does not have under TCG, '
            'such as one of AVX-512')
    if session.end[:2] == ['exited', '0'] and \
            not command.has('--timeout', '--interval-count'):
        return ['exited', str(128 + number)]
    return session.end


def say_what_is_meant(args, command):
    """Where perf would look at the host, natively."""
    if args.cpu and 'pmu=off' in args.cpu:
        say('a CPU with pmu=off counts nothing')
    if args.perf[0] == 'top' or command.has(*SYSTEM_WIDE):
        say('perf sees the processes of the guest, and none of the host')


def show_version(there):
    import subprocess
    text = subprocess.run([there.qemu, '--version'], check=True,
                          env=environment_of_qemu(),
                          capture_output=True, text=True).stdout
    print(f'vpmu-perf: {text.splitlines()[0]}')
    with open(there.sources, encoding='utf-8') as f:
        found = re.search(r'^linux \(= (.*)\)', f.read(), re.M)
    print(f'perf, Linux: {found[1] if found else "unknown"} of Debian')
    return 0


def check_limits():
    """QEMU needs some files, and says otherwise what is not so."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most < FILES:
        raise Failure(f'the limit of open files is {most} (ulimit -Hn), and '
                      f'QEMU needs {FILES}')


def check_directory():
    """perf is started in the working directory, by its name."""
    try:
        os.getcwd()
    except OSError:
        raise Failure('the working directory is gone') from None


def run(args, there):
    check_limits()
    check_directory()
    directories = directories_to_write(args)
    command = Command(args.perf, args.run)
    kinds = [kind_of(fd) for fd in range(3)]
    if not args.run:
        command.require_known_files()
        say_what_is_meant(args, command)
        command.complete(stat.S_ISFIFO(os.fstat(1).st_mode)
                         if kinds[1] == 'pipe 0' else False)
    if args.region and not args.count:
        command.count_region()
    outputs = []
    try:
        if command.output and command.output != '-' and \
                not is_device(command.output) and \
                not any(os.path.realpath(command.output).startswith(
                    os.path.join(path, '')) for path in directories):
            outputs.append(Output(command.output, command.records))
        with temporary_log() as log:
            guest = start(args, there, exported(directories, outputs), log,
                          command.program)
            qemu = guest.qemu
            try:
                give_job(qemu, job(args, command, kinds, outputs, directories,
                                   guest.changes))
                session = Session(qemu, kinds)
                end = session.run()
                if args.census:
                    qemu.command('pmu-census-save', file=args.census)
                if args.result:
                    write_result(args, there, session)
                say_what_is_missing(args, qemu, session.notes)
                asked = requests(qemu)
                close_all(outputs)
                if not session.is_ended:
                    try_to_keep(args, 'translated blocks',
                                lambda: keep_blocks(args, guest))
            finally:
                qemu.close()
    except Failure as e:
        forget_if_damaged(args, there, e)
        raise
    finally:
        close_all(outputs)
    if int(end[4]):
        say(f'the guest ran out of memory ({args.memory >> 20}M), and Linux '
            'ended a process; --memory gives it more')
    if int(end[1]) and command.program:
        hint_at_machine(command.program, args.arch)
    if int(end[1]) and not args.run and args.perf[0] == 'ftrace' and \
            os.getuid():
        say('in the guest only its superuser may use ftrace, whom '
            '"sudo vpmu-perf" makes you; the host needs no change')
    if 'offset' in session.notes:
        os.lseek(0, int(session.notes['offset']), os.SEEK_SET)
    if 'lost' in session.notes:
        say('not all that was written is on the host: '
            + session.notes['lost'])
    if ('lost' in session.notes or session.has_lost) and \
            end[:2] == ['exited', '0']:
        return 125
    end = end_with_program(args, command, session)
    if len(asked) >= MANY_REQUESTS and not session.is_ended:
        keep_for_next_call(args, there, guest, asked, command.program)
    return end_as(end)


def main(script):
    """Returns the status; script is the file that was called."""
    sys.stderr = StandardError(sys.stderr is not None)
    restore_locale()
    return call(script, sys.argv[1:])


def call(script, words):
    if (status := run_other_command(script, words)) is not None:
        return status
    args = arguments(words)
    for number in ENDING:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, end_by_signal)
    try:
        there = Installation(script, args.arch)
        if args.version:
            return show_version(there)
        if args.prepare:
            with temporary_log() as log:
                start(args, there, [], log)
            return 0
        return run(args, there)
    except Failure as e:
        say(e)
        return 125
    except OSError as e:
        say(f'{e.filename or "the host"}: {e.strerror or e}')
        return 125
    except Ended as e:
        return end_as(('signaled', *e.args))
