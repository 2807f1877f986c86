# SPDX-License-Identifier: GPL-2.0-or-later
"""What QEMU says of its host: of counters that a guest has lost, what other
hosts refuse, and with which remedy.

The second guests are of a few instructions each, rom.S.  What they have not
lost is not reported, however often QEMU looks, which its trace shows; and what
they have is.  Hosts that are not at hand are made of this one, other-host.c.
"""

import json

import pytest

# More instructions than any of them has before it halts or loops.
ROM_LENGTH = 50
PMU = 'pmu=on,pmu-host-perf=on'
# What is run: name, second guest, CPU properties.
RUNS = {
    'halted': ('halted', PMU),
    'running': ('running', PMU),
    'programming': ('programming', PMU),
    'without_pmu': ('endless', 'pmu=off,pmu-host-perf=on'),
}
# So often QEMU looks, at each of them at the same time.
LOOKS = 30
LOST = 'has taken performance counters away'
# All the counters there are.
HOGS = ','.join(['cycles:D'] * 6)
LINE = 'pmu_host_account cpu 0, guest'

FUNCTIONS = """
# say NAME OPTION...: what QEMU says of these options, and how it ends; its
# monitor, if it has one here, is told to show the CPU
say() {
    echo "@ l1 said $1"
    shift
    { printf 'info registers\\nquit\\n' |
        env $other qemu-system-x86_64 -L /usr/share/qemu -nodefaults \\
            -display none -machine pc -m 32 -bios /ending.bin \\
            -global apic-common.vapic=off \\
            -device isa-debug-exit,iobase=0xf4,iosize=0x4 "$@" 2>&1
      echo "status $?"
    } | sed 's/^/@ l2 /'
}
# on OTHER NAME OPTION...: what it says on another host
on() {
    other="LD_PRELOAD=/other-host.so OTHER_HOST=$1"
    shift
    say "$@"
    other=
}
# watch NAME ROM PROPERTIES: a second guest with the host's accounts, and a
# monitor that says all in NAME.said
watch() {
    mkfifo /tmp/$1.qmp
    qemu-system-x86_64 -L /usr/share/qemu -nodefaults -display none \\
        -machine pc -m 32 -bios /$2.bin -global apic-common.vapic=off \\
        -chardev file,id=qmp,path=/tmp/$1.said,input-path=/tmp/$1.qmp \\
        -mon qmp,mode=control \\
        -accel kvm -cpu host,$3 -serial file:/tmp/$1.out -D /tmp/$1.trace \\
        -trace 'pmu_host_*' -trace 'x86_vpmu_kvm_*' \\
        < /dev/null 2> /tmp/$1.errors 9<> /tmp/$1.qmp &
    eval "$1=$!"
    touch /tmp/$1.out /tmp/$1.trace /tmp/$1.said
    said $1 QMP > /dev/null
    tell $1 qmp_capabilities
}
# tell NAME COMMAND: to its monitor
tell() { echo "{\\"execute\\": \\"$2\\"}" 1<> /tmp/$1.qmp; }
# has_ended PROCESS: it may be a zombie, as the shell does not look for its
# children while it waits for a command's output.
has_ended() { ! grep -qs '^State:.[^Z]' /proc/$1/status; }
# said NAME PATTERN: what it has said of that, as soon as it has
said() {
    eval "process=\\$$1"
    until grep -m 1 "$2" /tmp/$1.said || has_ended $process; do
        sleep 1
    done
}
# lines NAME PATTERN: in its trace
lines() { grep -c "$2" /tmp/$1.trace; }
# watched NAME PATTERN COUNT: until its trace has so many, or it is no more
watched() {
    eval "process=\\$$1"
    until [ "$(lines "$1" "$2")" -ge $3 ] || has_ended $process; do
        sleep 1
    done
}
"""


def filter_of(*events):
    return "-object '" + json.dumps(
        {'qom-type': 'kvm-pmu-filter', 'id': 'f0', 'action': 'deny',
         'events': events}) + "'"


def masked(select):
    return {'format': 'x86-masked-entry', 'select': select, 'mask': 1,
            'match': 1, 'exclude': False}


KVM = '-accel kvm -cpu host'
UNREADABLE = 'Failed to synchronize CPU state'
# How QEMU ends: by its monitor, for an error, or as the second guest does.
QUIT, REFUSED, ENDED = 0, 1, ord('!') << 1 | 1
# It refuses all that it has messages for but these.
ACCEPTED = {'kernel_that_cannot_disable_its_pmu': ENDED,
            'state_that_cannot_be_read': QUIT}
# What QEMU says, before it goes on or gives up: on which host, with which
# options, and parts of the message.
MESSAGES = {
    'mediated_pmu_that_is_busy': (
        'busy', f'{KVM},pmu=on', ['enable_mediated_pmu', 'perf']),
    'entry_that_intel_does_not_know': (
        'intel', '-accel kvm,pmu-filter=f0 -cpu host,pmu=on '
        + filter_of(masked(0xc0), masked(0x1c0)),
        ['entry 2', '0x1c0', '0xff']),
    'kernel_that_cannot_disable_its_pmu': (
        'old', f'{KVM},pmu=off', ['Linux 5.18']),
    'fewer_fixed_counters': (
        'pmu:2,4,3', f'{KVM},pmu=on,pmu-fixed-counters=2',
        ['pmu-fixed-counters=2', 'Allowed: 3']),
    'all_counters_for_the_host': (
        'pmu:2,4,3', f'{KVM},pmu=on,pmu-host-counters=4',
        ['leaves no counter', 'up to 3']),
    'counters_that_the_host_keeps': (
        'pmu:2,4,3', f'{KVM},pmu=on,pmu-host-counters=1,pmu-gp-counters=4',
        ['pmu-gp-counters=4', 'up to 3']),
    'newer_version_of_pmu': (
        'pmu:2,4,3', f'{KVM},pmu=on,pmu-version=4',
        ['pmu-version=4', 'up to 2']),
    'filter_that_makes_no_sense': (
        None, '-accel kvm -cpu host ' + filter_of(
            {**masked(1), 'match': 2}), ['gives 0x2', 'set in mask']),
    'state_that_cannot_be_read': (
        'mute', f'{KVM},pmu=on -S -monitor stdio', [UNREADABLE, 'EIP=']),
}
# What QEMU writes to other PMUs, and what it does not; by its version and how
# many counters it has.
WROTE = 'other host: wrote'
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
# The same where KVM has no PMU for guests.
MESSAGES_WITHOUT_PMU = {
    'counters_of_no_pmu': (
        None, f'{KVM},pmu-gp-counters=4', ['enable_pmu must be Y']),
}


def messages(table):
    for name, (host, options, _) in table.items():
        yield f'on {host} {name} {options}' if host else f'say {name} {options}'


def other_pmus():
    for name, (shape, options, *_) in PMUS.items():
        yield f'on pmu:{shape} {name} {options}'


def contention(name):
    """The first guest takes the counters away from a second."""
    yield f'perf stat -a -e {HOGS} -o /tmp/hogs sleep 1000 & hog=$!'
    yield f"until grep '{LOST}' /tmp/{name}.errors > /tmp/lost; do"
    yield f'    kill -0 ${name} || break'
    yield '    sleep 1'
    yield 'done'
    yield f'echo "@ l1 event {name} $(said {name} PMU_LOST)"'
    yield 'said programming PMU_LOST > /dev/null'
    for run in RUNS:
        yield f'tell {run} query-pmu'
        yield f'echo "@ l1 shows {run} $(said {run} engine)"'
    yield 'echo "@ l1 taken $(sed "s/.*(counters //; s/).*//" /tmp/lost)"'


def return_of_counters(name):
    """The first guest gives them back; the second has to want them again."""
    yield f'said {name} PMU_LOST > /dev/null; kill $hog'
    yield (f'said {name} \'PMU_LOST.*"lost": \\[\\]\\|'
           '"lost": \\[\\].*PMU_LOST\' > /dev/null')
    yield f'grep PMU_LOST /tmp/{name}.said | sed "s/^/@ l1 returned /"'


def script(_):
    yield FUNCTIONS
    for name, (rom, properties) in RUNS.items():
        yield f'watch {name} {rom} {properties}'
    # They are there until they are ended.
    for name in RUNS:
        yield f"watched {name} '{LINE}' {LOOKS}"
    for name in RUNS:
        yield f'echo "@ l1 began {name} $(cat /tmp/{name}.out)"'
        yield f'echo "@ l1 lost {name} $(grep -c "{LOST}" /tmp/{name}.errors)"'
        yield f'echo "@ l1 looks {name} $(lines {name} x86_vpmu_kvm_get)"'
        yield f'echo "@ l1 account {name}" $(grep "{LINE}" /tmp/{name}.trace |'
        yield 'sed "s/.*guest: //; s/ .*//" | sed -n "1p; \\$p")'
        yield f"sed 's/^/# {name}: /' /tmp/{name}.errors"
    yield from contention('running')
    yield from return_of_counters('programming')
    yield 'kill $(jobs -p); wait'
    yield from messages(MESSAGES)
    yield from other_pmus()
    yield 'reload_kvm enable_pmu=0'
    yield from messages(MESSAGES_WITHOUT_PMU)
    yield 'echo @ l1 end'


class Said:
    """What was printed, by question and name of a run; what was said, by name
    of a message; and the events of counters that came back."""

    def __init__(self, output):
        self.printed = {}
        self.said = {}
        self.returned = []
        now = []
        for level, what, values in output.lines:
            if level == 'l2':
                now.append(' '.join([what, *values]))
            elif what == 'said':
                now = self.said[values[0]] = []
            elif what == 'returned':
                self.returned.append(json.loads(' '.join(values))['data'])
            else:
                self.printed[(what, *values[:1])] = values[1:]


@pytest.fixture(scope='module')
def host(output):
    return Said(output)


def test_ends(output):
    output.require(('l1', 'end'))


def require_said(lines, status):
    """The text of it; QEMU ends as it has to."""
    assert lines[-1] == f'status {status}', lines
    return '\n'.join(lines)


ALL_MESSAGES = {**MESSAGES, **MESSAGES_WITHOUT_PMU}


@pytest.mark.parametrize('name', ALL_MESSAGES)
def test_says(host, name):
    text = require_said(host.said[name], ACCEPTED.get(name, REFUSED))
    for part in ALL_MESSAGES[name][2]:
        assert part in text


@pytest.mark.parametrize('name', PMUS)
def test_writes(host, name):
    """CPUID and the registers agree; QEMU says so where they do not."""
    _, _, written, others = PMUS[name]
    assert HIDES not in require_said(host.said[name], ENDED)
    writes = {line.split()[-1] for line in host.said[name]
              if line.startswith(WROTE)}
    assert set(written) <= writes
    assert not set(others) & writes


@pytest.mark.parametrize('run', RUNS)
def test_runs(host, run):
    assert host.printed['began', run] == ['!']


@pytest.mark.parametrize('run', RUNS)
def test_nothing_is_lost(host, run):
    assert host.printed['lost', run] == ['0']


def test_halted_guest_stays_halted(host):
    assert int(host.printed['account', 'halted'][-1]) < ROM_LENGTH


def test_halted_guest_is_not_looked_at(host):
    assert int(host.printed['looks', 'halted'][0]) < LOOKS / 2


def test_lost_counter_is_reported(host):
    """The other one that runs is inverted."""
    assert [what for what in host.printed if what[0] == 'taken'] \
        == [('taken', '0x1')]


def test_lost_counter_is_an_event(host):
    """The event has the counter's name."""
    assert json.loads(' '.join(host.printed['event', 'running']))['data'] \
        == {'cpu-index': 0, 'lost': ['PERF_CTR0'], 'losses': 1}


def test_counters_come_back(host):
    assert host.returned == [
        {'cpu-index': 0, 'lost': lost, 'losses': 1}
        for lost in (['PERF_CTR0'], [])]


@pytest.mark.parametrize('run', RUNS)
def test_monitor_shows(host, run):
    """query-pmu has both accounts, and what has been taken away."""
    (cpu,) = json.loads(' '.join(host.printed['shows', run]))['return']
    account = cpu['host']
    require_sensible(run, account['guest'], account['all'])
    if run == 'without_pmu':
        assert [cpu['engine'], 'pmu' in cpu] == ['none', False]
        return
    counter = cpu['pmu']['counters'][0]
    lost = [] if run == 'halted' else ['PERF_CTR0']
    event = 'cycles' if run == 'programming' else 'instructions'
    assert [cpu['engine'], counter['event'], counter['running'],
            counter['stopped-by'], account['lost'], 'last-loss' in account,
            'overflows' in counter] \
        == ['kvm', event, not lost, ['host'] if lost else [], lost,
            bool(lost), False]


def require_sensible(run, guest, both):
    """They hold what was executed, unless the host took their counters."""
    if run == 'halted':
        assert guest['instructions'] < ROM_LENGTH < both['instructions']
        return
    for account in guest, both:
        assert account['instructions'] > ROM_LENGTH
        assert account['running-ns'] <= account['enabled-ns']


def test_accounts_without_pmu(host):
    first, last = map(int, host.printed['account', 'without_pmu'])
    assert first < last
