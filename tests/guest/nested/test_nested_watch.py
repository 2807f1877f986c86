# SPDX-License-Identifier: GPL-2.0-or-later
"""What QEMU says of the counters that a guest has lost to the host.

The second guests are of a few instructions each, rom.S.  What they have not
lost is not reported, however often QEMU looks, which its trace shows; and what
they have is, whoever goes first and whatever state that leaves QEMU's accounts
in.
"""

import json

import pytest

from nested_host import FUNCTIONS, on

# More instructions than any of them has before it halts or loops.
ROM_LENGTH = 50
PMU = 'pmu=on,pmu-host-perf=on'
HOST_FIRST = f'{PMU},pmu-priority=host'
# What is run: name, second guest, CPU properties.
RUNS = {
    'halted': ('halted', PMU),
    'running': ('running', PMU),
    # The accounts leave it two counters of six, and it uses two.
    'host_first': ('running', HOST_FIRST),
    'programming': ('programming', PMU),
    'without_pmu': ('endless', 'pmu=off,pmu-host-perf=on'),
}
# That use the first counter, which the host then takes away.
LOSERS = ['running', 'host_first', 'programming']
# So often QEMU looks, at each of them at the same time.
LOOKS = 6
LOST = 'has taken performance counters away'
LINE = 'pmu_host_account cpu 0, guest'
LOOK = 'x86_vpmu_kvm_get'

# Counters of six that the host takes away, what the first of a guest's two does
# then, and QEMU's accounts: some are in error, or have no turn, and all the
# same say whether the guest has executed anything.
CONTENTIONS = {
    'five_guest_first': (5, PMU, 'counts'),
    # Once pinned events have failed, perf gives nothing to those after them.
    'five_host_first': (5, HOST_FIRST, 'is lost'),
    'six_guest_first': (6, PMU, 'is lost'),
    'six_host_first': (6, HOST_FIRST, 'is lost'),
}
# At each of these, while that lasts.
CONTENTION_LOOKS = 4
# Whose counter the host's kernel stops, as it samples too often.
THROTTLED = {'throttled_guest_first': PMU, 'throttled_host_first': HOST_FIRST}
RATE = '/proc/sys/kernel/perf_event_max_sample_rate'
# Intel's first counter, of cycles, which holds the same for ever: in
# transactions alone (of which there may be none), without those that are
# aborted, and wherever.
STUCK = {
    'in_transactions': (0x10043003c, False),
    'without_aborted': (0x20043003c, False),
    'everywhere': (0x43003c, True),
}


def hog(counters):
    """Nobody goes before these, and they come all at once: a counter that is
    lost on the way there would stay so."""
    events = '{' + ','.join(['cycles'] * counters) + '}:D'
    yield 'rm -f /tmp/hogging'
    yield (f"perf stat -a -e '{events}' -o /tmp/hogs "
           'sh -c "touch /tmp/hogging; exec sleep 1000" & hog=$!')
    yield ('for try in $(seq 100); do [ -e /tmp/hogging ] && break; '
           'sleep 0.2; done')


def contention(name):
    """The first guest takes the counters away from the others."""
    yield from hog(6)
    yield f'until_in /tmp/{name}.errors {name} "{LOST}"'
    for run in LOSERS:
        yield f'echo "@ l1 event {run} $(said {run} PMU_LOST)"'
    for run in RUNS:
        yield f'tell {run} query-pmu'
        yield f'echo "@ l1 shows {run} $(said {run} engine)"'
    yield (f'echo "@ l1 taken $(sed -n \'/{LOST}/s/.*(counters //; s/).*//p\' '
           f'/tmp/{name}.errors)"')


def return_of_counters(name):
    """The first guest gives them back; the second has to want them again."""
    yield 'kill $hog'
    yield (f'said {name} \'PMU_LOST.*"lost": \\[\\]\\|'
           '"lost": \\[\\].*PMU_LOST\' > /dev/null')
    yield f'grep PMU_LOST /tmp/{name}.said | sed "s/^/@ l1 returned /"'


def begin():
    for name, (rom, properties) in RUNS.items():
        yield f'watch {name} {rom} {properties}'
    # They are there until they are ended.
    for name in RUNS:
        yield f"watched {name} '{LINE}' {LOOKS}"
    for name in RUNS:
        yield f'echo "@ l1 began {name} $(cat /tmp/{name}.out)"'
        yield f'echo "@ l1 lost {name} $(grep -c "{LOST}" /tmp/{name}.errors)"'
        yield f'echo "@ l1 looks {name} $(lines {name} {LOOK})"'
        yield f'echo "@ l1 account {name}" $(grep "{LINE}" /tmp/{name}.trace |'
        yield 'sed "s/.*guest: //; s/ .*//" | sed -n "1p; \\$p")'
        yield f"sed 's/^/# {name}: /' /tmp/{name}.errors"


def states():
    """All that there can be, one after the other."""
    for counters in sorted({counters for counters, *_ in CONTENTIONS.values()}):
        names = [name for name, (number, *_) in CONTENTIONS.items()
                 if number == counters]
        for name in names:
            yield f'watch {name} running {CONTENTIONS[name][1]}'
            yield f"watched {name} '{LINE}' 2"
        yield from hog(counters)
        for name in names:
            yield f'before_{name}=$(lines {name} {LOOK})'
        for name in names:
            looks = f'$((before_{name} + {CONTENTION_LOOKS}))'
            yield f"watched {name} '{LOOK}' {looks}"
            yield (f'echo "@ l1 looked {name} '
                   f'$(($(lines {name} {LOOK}) - before_{name}))"')
            yield (f'echo "@ l1 lost {name} '
                   f'$(grep -c "{LOST}" /tmp/{name}.errors)"')
        yield f'kill $hog; ended {" ".join(names)}'


def throttled():
    """The host's kernel stops the guest's counter, which is reloaded again and
    again, at each overflow until its clock's next tick.  Then it lets it be.
    """
    yield f'rate=$(cat {RATE}); echo 100 > {RATE}'
    for name, properties in THROTTLED.items():
        yield f'watch {name} sampling {properties}'
    yield from looked_at(THROTTLED, CONTENTION_LOOKS)
    yield f'echo $rate > {RATE}'
    yield from looked_at(THROTTLED, 2 * CONTENTION_LOOKS)
    for name in THROTTLED:
        yield f'tell {name} query-pmu'
        yield f'echo "@ l1 shows {name} $(said {name} engine)"'
    yield f'ended {" ".join(THROTTLED)}'


def looked_at(names, times):
    for name in names:
        yield f"watched {name} '{LOOK}' {times}"
        yield f'echo "@ l1 looked {name} $(lines {name} {LOOK})"'
        yield f'echo "@ l1 lost {name} $(grep -c "{LOST}" /tmp/{name}.errors)"'


def stuck():
    for name, (selector, _) in STUCK.items():
        yield on(f'pmu:2,4,3,holds=0x186:{selector:#x}',
                 f'watch {name} endless {PMU}')
    yield from looked_at(STUCK, CONTENTION_LOOKS)
    yield f'ended {" ".join(STUCK)}'


def script(_):
    yield FUNCTIONS
    # There are six counters, and nobody else has one.
    yield 'echo 0 > /proc/sys/kernel/nmi_watchdog'
    yield from begin()
    yield from contention('running')
    yield from return_of_counters('programming')
    yield f'ended {" ".join(RUNS)}'
    yield from states()
    yield from throttled()
    yield from stuck()
    yield 'echo @ l1 end'


class Watched:
    """What was printed, by question and name of a run; and the events of
    counters that came back."""

    def __init__(self, output):
        self.printed = {}
        self.returned = []
        for _, what, values in output.lines:
            if what == 'returned':
                self.returned.append(json.loads(' '.join(values))['data'])
            else:
                self.printed[(what, *values[:1])] = values[1:]

    def number(self, what, name):
        return int(self.printed[what, name][0])


@pytest.fixture(scope='module')
def host(output):
    return Watched(output)


def test_ends(output):
    output.require(('l1', 'end'))


@pytest.mark.parametrize('run', RUNS)
def test_runs(host, run):
    assert host.printed['began', run] == ['!']


@pytest.mark.parametrize('run', RUNS)
def test_nothing_is_lost(host, run):
    assert host.number('lost', run) == 0


def test_halted_guest_stays_halted(host):
    assert int(host.printed['account', 'halted'][-1]) < ROM_LENGTH


def test_halted_guest_is_not_looked_at(host):
    assert host.number('looks', 'halted') < LOOKS / 2


def test_lost_counter_is_reported(host):
    """The other one that runs is inverted."""
    assert [what for what in host.printed if what[0] == 'taken'] \
        == [('taken', '0x1')]


@pytest.mark.parametrize('run', LOSERS)
def test_lost_counter_is_an_event(host, run):
    """The event has the counter's name."""
    assert json.loads(' '.join(host.printed['event', run]))['data'] \
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
    lost = ['PERF_CTR0'] if run in LOSERS else []
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


@pytest.mark.parametrize('name', CONTENTIONS)
def test_contention(host, name):
    """QEMU looks, and what it finds is so."""
    *_, does = CONTENTIONS[name]
    assert host.number('looked', name) >= CONTENTION_LOOKS
    assert host.number('lost', name) == (does == 'is lost')


@pytest.mark.parametrize('name', THROTTLED)
def test_throttled(host, name):
    """A counter that was found standing still goes on by itself."""
    assert host.number('looked', name) >= 2 * CONTENTION_LOOKS
    (cpu,) = json.loads(' '.join(host.printed['shows', name]))['return']
    assert cpu['host']['lost'] == []


@pytest.mark.parametrize('name', STUCK)
def test_stuck(host, name):
    assert host.number('looked', name) >= CONTENTION_LOOKS
    assert host.number('lost', name) == STUCK[name][1]
