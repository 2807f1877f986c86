# SPDX-License-Identifier: GPL-2.0-or-later
"""What QEMU says of its host when it starts: what other hosts refuse, and with
which remedy, and what it writes to other PMUs.  Hosts that are not at hand are
made of this one, other-host.c.
"""

import json

import pytest

from nested_host import FUNCTIONS, on

KVM = '-accel kvm -cpu host'
HOST_PERF = f'{KVM},pmu=on,pmu-host-perf=on'
MONITOR = '-S -monitor stdio'
STATE = '/tmp/state'


def filter_of(*events):
    return "-object '" + json.dumps(
        {'qom-type': 'kvm-pmu-filter', 'id': 'f0', 'action': 'deny',
         'events': events}) + "'"


def masked(select):
    return {'format': 'x86-masked-entry', 'select': select, 'mask': 1,
            'match': 1, 'exclude': False}


UNREADABLE = 'Failed to synchronize CPU state'
# How QEMU ends: by its monitor, for an error, or as the second guest does.
QUIT, REFUSED, ENDED = 0, 1, ord('!') << 1 | 1
# What QEMU says, before it goes on or gives up: on which host, with which
# options, how it ends, and parts of the message.
MESSAGES = {
    'mediated_pmu_that_is_busy': (
        'busy', f'{KVM},pmu=on', REFUSED,
        ['enable_mediated_pmu', 'perf', 'pmu=off']),
    'entry_that_intel_does_not_know': (
        'intel', '-accel kvm,pmu-filter=f0 -cpu host,pmu=on '
        + filter_of(masked(0xc0), masked(0x1c0)), REFUSED,
        ['entry 2', '0x1c0', '0xff']),
    'kernel_that_cannot_disable_its_pmu': (
        'old', f'{KVM},pmu=off', ENDED, ['Linux 5.18']),
    'fewer_fixed_counters': (
        'pmu:2,4,3', f'{KVM},pmu=on,pmu-fixed-counters=2', REFUSED,
        ['pmu-fixed-counters=2', 'Allowed: 3']),
    'all_counters_for_the_host': (
        'pmu:2,4,3', f'{KVM},pmu=on,pmu-host-counters=4', REFUSED,
        ['leaves no counter', 'up to 3']),
    'counters_that_the_host_keeps': (
        'pmu:2,4,3', f'{KVM},pmu=on,pmu-host-counters=1,pmu-gp-counters=4',
        REFUSED, ['pmu-gp-counters=4', 'up to 3']),
    'newer_version_of_pmu': (
        'pmu:2,4,3', f'{KVM},pmu=on,pmu-version=4', REFUSED,
        ['pmu-version=4', 'up to 2']),
    'filter_that_makes_no_sense': (
        None, '-accel kvm -cpu host ' + filter_of(
            {**masked(1), 'match': 2}), REFUSED, ['gives 0x2', 'set in mask']),
    'state_that_cannot_be_read': (
        'mute', f'{KVM},pmu=on {MONITOR}', QUIT, [UNREADABLE, 'EIP=']),
    # AMD's processors do not count it; perf has no other code for that.
    'event_that_the_host_lacks': (
        None, f'{KVM} -object pmu-profile,id=p,event=dtlb-store-misses,'
        'file=/tmp/profile', REFUSED, ['does not have this event']),
    'denied_guest_first': (
        'deny', HOST_PERF, ENDED, ['Permission denied', 'seccomp']),
    'denied_host_first': (
        'deny', f'{HOST_PERF},pmu-priority=host', ENDED,
        ['Permission denied', 'seccomp']),
}
# The same where KVM has no PMU for guests.
MESSAGES_WITHOUT_PMU = {
    'counters_of_no_pmu': (
        None, f'{KVM},pmu-gp-counters=4', REFUSED, ['enable_pmu must be Y']),
}
# So many vCPUs need most of so many file descriptors, without accounts: they
# start, and what QEMU has to open later still can be.
DESCRIPTORS = 60
CPUS = 12
SCARCE = {
    'few_descriptors_guest_first': HOST_PERF,
    'few_descriptors_host_first': f'{HOST_PERF},pmu-priority=host',
}
# How a migration ended is shown in one way by 10.0, and in another by 11.0.
SAYS_SCARCE = ['Raise the limit of open files', 'tatus: completed']

# What QEMU writes to other PMUs, and what it does not; by its version and how
# many counters it has.
WROTE = 'other host: wrote'
WRITES = 'other host: writes'
SHOWS = 'other host: shows'
HIDES = 'hides'
PMUS = {
    'pmu': ('2,4,3', f'{KVM},pmu=on', ['0xc4', '0x189', '0x30b', '0x38f'],
            ['0xc5', '0x18a', '0x30c']),
    # QEMU's state has room for three fixed counters.
    'pmu_with_more_fixed_counters': (
        '2,4,4', f'{KVM},pmu=on', ['0x30b', '0x38f'], ['0x30c']),
    'pmu_without_fixed_counters': (
        '2,4,0', f'{KVM},pmu=on', ['0xc4', '0x38f'], ['0x309']),
    'pmu_of_version_1': (
        '1,2,0', f'{KVM},pmu=on', ['0xc2', '0x187'],
        ['0xc3', '0x309', '0x38d', '0x38f']),
    'pmu_of_which_the_host_keeps_counters': (
        '4,8,3', f'{KVM},pmu=on,pmu-host-counters=5',
        ['0xc3', '0x188', '0x30b'], ['0xc4', '0x189']),
    # Which version 1 has not, whatever CPUID says there.
    'fixed_counters_of_version_1': (
        '1,2,3', f'{KVM},pmu=on', ['0xc2'], ['0x309', '0x38f']),
    'older_version_of_pmu': (
        '4,8,3', f'{KVM},pmu=on,pmu-version=1', ['0xc8'],
        ['0x309', '0x38d', '0x38f']),
    'no_number_of_fixed_counters': (
        '4,8,3', f'{KVM},pmu=on,pmu-fixed-counters=0', ['0x30b'], []),
    # CPUs that are too old for the leaf of CPUID; they start, with AMD's.
    **{f'no_registers_of_{cpu}': (
        '2,4,3', f'-accel kvm -cpu {cpu},pmu=on', [], ['0x186', '0x38f'])
       for cpu in ('kvm32', 'qemu32', 'pentium3')},
}
# The order of registers: none counts before all of them are there.
STOP = ['0x38d', '0x38f']
VALUES = ['0xc1', '0xc2', '0x309', '0x30a', '0x38e']
START = ['0x186', '0x187', '0x38d', '0x38f']

# What Intel's guests are told of PEBS and of branch trace stores, which need
# the same buffer, and KVM has none of the latter: options, IA32_MISC_ENABLE,
# and features.
MISC_ENABLE = '0x1a0'
INTEL = f'{KVM},vendor=GenuineIntel'
ALL = ['DS', 'DTES64', 'DS-CPL']
STORES = {
    'none': ('', f'{INTEL},pmu=on', 0x1881, []),
    'none_without_pmu': ('', f'{INTEL},pmu=off', 0x1801, []),
    'pebs': (',pebs', f'{INTEL},pmu=on,migratable=off', 0x881, ALL),
    # The host has it; a guest that may migrate is not shown what.
    'pebs_without_its_format': (',pebs', f'{INTEL},pmu=on', 0x1881, []),
    'pebs_without_its_buffer': (
        ',pebs', f'{INTEL},pmu=on,migratable=off,ds=off', 0x1881, []),
    'pebs_without_pmu': (
        ',pebs', f'{INTEL},pmu=off,migratable=off', 0x1801, []),
    # As it was.
    'old_machine': ('', f'{INTEL},pmu=on -machine pc-i440fx-9.2', 1, ALL),
    'other_vendor': ('', f'{KVM},vendor=AuthenticAMD,pmu=on', 1, []),
}

# Migrations, where a guest uses a register: of the source's and the
# destination's PMU, whether that goes.
SHAPE = 'pmu:2,4,3'
USED = f'{SHAPE},holds=0x189:0x43003c'
MOVES = {
    'used': (USED, SHAPE, True),
    'hidden': (USED, f'{SHAPE},hides=0x189', False),
    'hidden_and_unused': (SHAPE, f'{SHAPE},hides=0x189', True),
    'hidden_on_both': (f'{SHAPE},hides=0x189', f'{SHAPE},hides=0x189', True),
    # A reset leaves something there.
    'control_hidden_and_unused': (SHAPE, f'{SHAPE},hides=0x38f', True),
    'control_hidden': (f'{SHAPE},holds=0x38f:0x8', f'{SHAPE},hides=0x38f',
                       False),
}
HIDDEN = "which this host's KVM hides"
LOADED = 'process_incoming_migration_co_end'
ARRIVE = f'{MONITOR} -incoming file:{STATE} -D /tmp/trace -trace {LOADED}'
# AMD's: the first selector, of a guest that uses it.
AMD_SELECTOR = '0xc0010200'
AMD_MOVES = {'amd': ('', True),
             'amd_hidden': (f'hides={AMD_SELECTOR}', False)}

# vCPUs that are plugged in where QEMU has another root directory.
JAIL = '/tmp/jail'
PLUGGED = ('device_add host-x86_64-cpu,id=c1,socket-id=0,core-id=1,thread-id=0'
           '\\ninfo pmu\\n')


def told(*commands):
    """What the monitor is told."""
    return "commands='" + ''.join(f'{command}\\n' for command in commands) + "'"


def messages(table):
    for name, (host, options, *_) in table.items():
        yield on(host, f'say {name} {options}')


def scarce():
    yield told('migrate file:/tmp/unused', 'info migrate', 'quit')
    for name, options in SCARCE.items():
        yield (f'(ulimit -n {DESCRIPTORS}; '
               f'say {name} {options} -smp {CPUS} {MONITOR})')


def other_pmus():
    for name, (shape, options, *_) in PMUS.items():
        yield on(f'pmu:{shape}', f'say {name} {options}')
    for name, (more, options, *_) in STORES.items():
        yield on(f'{SHAPE}{more}', f'say store/{name} {options}')


def moves():
    for name, (source, target, _) in MOVES.items():
        yield told(f'migrate file:{STATE}', 'quit')
        yield on(source, f'say left/{name} {KVM},pmu=on {MONITOR}')
        yield told('info status', 'quit') + f' wanted={LOADED}'
        yield on(target, f'say arrived/{name} {KVM},pmu=on {ARRIVE}')
        yield 'wanted='
    yield 'watch amd running pmu=on; watched amd x86_vpmu_kvm_put 1'
    yield "until_in /tmp/amd.out amd '!'"
    yield f"""tell amd migrate '{{"uri": "file:{STATE}"}}'"""
    yield ('for try in $(seq 60); do tell amd query-migrate; sleep 1; '
           'grep -q \'"status": "completed"\' /tmp/amd.said && break; done')
    yield 'ended amd'
    yield told('info status', 'quit') + f' wanted={LOADED}'
    for name, (host, _) in AMD_MOVES.items():
        yield on(host, f'say arrived/{name} {KVM},pmu=on -bios /running.bin '
                 f'-serial null {ARRIVE}')
    yield 'wanted='


def plugged():
    yield f'mkdir -p {JAIL}'
    yield told(PLUGGED, 'quit')
    yield (f'say plugged {KVM} -smp 1,maxcpus=2 -run-with chroot={JAIL} '
           f'{MONITOR}')


def script(_):
    yield FUNCTIONS
    yield from messages(MESSAGES)
    yield from other_pmus()
    yield from scarce()
    yield from moves()
    yield 'reload_kvm enable_pmu=0'
    yield told('quit')
    yield from messages(MESSAGES_WITHOUT_PMU)
    yield from plugged()
    yield 'echo @ l1 end'


@pytest.fixture(scope='module')
def said(output):
    """By name of a run, lines."""
    said = {}
    now = []
    for level, what, values in output.lines:
        if level == 'l2':
            now.append(' '.join([what, *values]))
        elif what == 'said':
            now = said[values[0]] = []
    return said


def test_ends(output):
    output.require(('l1', 'end'))


def require_said(lines, status):
    """The text of it; QEMU ends as it has to."""
    assert lines[-1] == f'status {status}', lines
    return '\n'.join(lines)


ALL_MESSAGES = {**MESSAGES, **MESSAGES_WITHOUT_PMU}


@pytest.mark.parametrize('name', ALL_MESSAGES)
def test_says(said, name):
    _, _, status, parts = ALL_MESSAGES[name]
    text = require_said(said[name], status)
    for part in parts:
        assert part in text


@pytest.mark.parametrize('name', SCARCE)
def test_descriptors_are_left(said, name):
    text = require_said(said[name], QUIT)
    for part in SAYS_SCARCE:
        assert part in text


def writes_of(lines):
    """Pairs of register and value, in their order."""
    return [line.split()[3:] for line in lines if line.startswith(WROTE)]


@pytest.mark.parametrize('name', PMUS)
def test_writes(said, name):
    """CPUID and the registers agree; QEMU says so where they do not."""
    _, _, written, others = PMUS[name]
    assert HIDES not in require_said(said[name], ENDED)
    writes = {register for register, _ in writes_of(said[name])}
    assert set(written) <= writes
    assert not set(others) & writes


def test_order_of_writes(said):
    """All at once: what stops counters, values, and what starts them."""
    parts = '\n'.join(said['pmu']).split(WRITES)[1:]
    together = max((writes_of(part.splitlines()) for part in parts), key=len)
    together = [write for write in together if write[0] != MISC_ENABLE]
    registers = [register for register, _ in together]
    begin = max(registers.index(register) for register in STOP)
    values = [registers.index(register) for register in VALUES]
    starts = [len(registers) - 1 - registers[::-1].index(register)
              for register in START]
    assert all(value == '0x0' for _, value in together[:begin + 1])
    assert begin < min(values) and max(values) < min(starts)
    assert together[-1] == ['0x38f', '0xf']


@pytest.mark.parametrize('name', STORES)
def test_stores(said, name):
    _, _, misc_enable, features = STORES[name]
    lines = said[f'store/{name}']
    require_said(lines, ENDED)
    assert {value for register, value in writes_of(lines)
            if register == MISC_ENABLE} == {f'{misc_enable:#x}'}
    (shown,) = {line for line in lines if line.startswith(SHOWS)}
    assert shown.split()[3:] == features


@pytest.mark.parametrize('name', MOVES)
def test_moves(said, name):
    require_said(said[f'left/{name}'], QUIT)
    require_arrived(said[f'arrived/{name}'], MOVES[name][-1])


@pytest.mark.parametrize('name', AMD_MOVES)
def test_moves_of_amd(said, name):
    require_arrived(said[f'arrived/{name}'], AMD_MOVES[name][-1])


def require_arrived(lines, goes):
    text = require_said(lines, QUIT if goes else REFUSED)
    assert ('VM status: paused' in text) == goes
    assert 'inmigrate' not in text
    assert (HIDDEN in text) != goes


def test_plugged(said):
    """None of the two CPUs has a PMU."""
    text = require_said(said['plugged'], QUIT)
    assert 'CPU 1' in text and 'amd-perfctr' not in text
