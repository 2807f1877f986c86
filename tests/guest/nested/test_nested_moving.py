# SPDX-License-Identifier: GPL-2.0-or-later
"""What happens to a second guest in mid-count: its state is saved and loaded,
it is migrated to a file and goes on in another QEMU.

It counts one program, again and again.
"""

import pytest

from harness import ARCH, expectations
from nested_l1 import event_of, job, stat

# They can be counted at the same time, in what L1 leaves to L2.
EVENTS = {
    'x86_64': ['instructions', 'branches', 'conditional'],
    'ppc64': ['instructions', 'taken'],
}[ARCH]
OPTIONS = {'x86_64': '-cpu host,pmu=on',
           'ppc64': '-cpu host,pmu-host-perf=on'}[ARCH]
# Something that snapshots can be saved to.
DISK = '-drive if=none,driver=null-co,size=1G,snapshot=on'
# What the monitor shows on Power, after these words; and how QEMU says that
# KVM has no accounts of the guest, and that it always has a PMU.
SHOWN = {
    'counter': 'PMC2 \\(.*\\)',
    'modes': 'counts in:\\(.*\\)',
    'account': 'host \\( .*\\)',
}
NO_GUEST_ACCOUNT = 'cannot count a guest alone'
NO_PMU_OFF = 'pmu=off is not possible'
# Power's counters
OVERFLOWS_AT = 1 << 31
# What x86's kernel says of counters that were left running.
LEFT_RUNNING = 'corrupted hw-PMU'

FUNCTIONS = """
mkdir -p /var/tmp
export L2_CONSOLE=/tmp/console
# counting: whether "begun" is the last line of the second guest, and complete:
# the rest of another would be lost; $n is the number
counting() {
    last=$(tail -n 1 /tmp/console | tr -d '\\r'); n=${last##*begun}
    [ "$n" != "$last" ] && [ -z "$(tail -c 1 /tmp/console)" ]
}
# stop_in_count: stop the second guest between "begun" and "counted"
stop_in_count() {
    until
        sleep 1; tell_l2 stop; sleep 1
        counting || ! kill -0 $l2 2> /dev/null
    do
        tell_l2 cont
    done
}
"""


def job_of(l1):
    events = ','.join(event_of(l1, name) for name in EVENTS)
    yield f"echo @ l2 running $(dmesg | grep -c '{LEFT_RUNNING}')"
    yield 'i=0; while i=$((i + 1)); do'
    yield 'echo @ l2 begun$i'
    yield stat('l2', 'counted$i', 'long', events, 'tally')
    yield 'done'


def begin(l1, options, saved=''):
    """Start the second guest, which counts."""
    yield FUNCTIONS
    yield job(*job_of(l1))
    yield (f'l2 {saved} /tmp/job {OPTIONS} {options} $monitor '
           '>> /tmp/l2.out 9<> /tmp/monitor & l2=$!')
    yield "until_l2 '^@ l2 begun1'"


def script(l1):
    yield from begin(l1, DISK, '--saved')
    yield "ask_l2 'info pmu' 'counts in:'"
    yield 'tell_l2 "migrate_set_capability mapped-ram off"'
    yield 'stop_in_count; phase saved $n; tell_l2 "savevm it" cont'
    yield 'until_l2 "^@ l2 counted$n "'
    yield 'saved=$n; stop_in_count; n=$saved'
    yield 'phase loaded $n; tell_l2 "loadvm it" cont'
    yield 'until_l2 "^@ l2 counted$n "'
    yield 'stop_in_count; save_l2 /tmp/state; phase migrated $n'
    yield (f'l2 /tmp/job {OPTIONS} {DISK} $monitor -incoming file:/tmp/state '
           '>> /tmp/l2.out 9<> /tmp/monitor & l2=$!')
    yield 'arrive_l2; until_l2 "^@ l2 counted$n "'
    yield 'kill -0 $l2 && phase end $n'
    yield 'tell_l2 quit; wait; cat /tmp/l2.phases /tmp/l2.out'
    yield 'grep -h Error /tmp/monitor.log*'
    if ARCH == 'ppc64':
        yield from shown()


def shown():
    """What the monitor has said in the midst of a count."""
    # From the first counter on that counts, which is two lines above.
    yield ("sed 's/\\r//' /tmp/monitor.log.old | awk '"
           '/counts in:/ && !found { print before; print last; found = 1 }'
           " found { print } { before = last; last = $0 }' > /tmp/said")
    for what, pattern in SHOWN.items():
        yield (f"echo @ l2 shown/{what} "
               f"$(sed -n 's/^ *{pattern}/\\1/p' /tmp/said | head -n 1)")
    yield f'echo @ l2 warned $(grep -c "{NO_GUEST_ACCOUNT}" /tmp/console)'
    yield 'l2 /tmp/job -cpu host,pmu=off > /tmp/refused 2>&1'
    yield f'echo @ l2 refused $(grep -c "{NO_PMU_OFF}" /tmp/refused)'


def lines_of(output):
    """What was printed in each phase; a count may begin before that."""
    output.require(('l1', 'end'))
    return {phase: {words[0]: words[1:] for words in lines}
            for phase, lines in output.phases().items()}


def stated():
    return [str(expectations('long')[name]) for name in EVENTS]


@pytest.fixture(scope='module')
def phases(output):
    return lines_of(output)


@pytest.mark.parametrize('phase', [
    pytest.param('saved', id='over_savevm'),
    pytest.param('loaded', id='after_loadvm'),
    pytest.param('migrated', id='over_migration')])
def test_counts(output, phases, phase):
    """A count that began before the phase and ended in it."""
    (number,) = output.values()['l1', phase]
    assert f'begun{number}' not in phases[phase], 'it was not in mid-count'
    assert phases[phase][f'counted{number}'] == stated()


@pytest.mark.arch('ppc64')
def test_monitor_shows_registers(phases):
    """The counter of programs' taken branches, which has counted some."""
    last = phases['end']
    event, value, left, overflows = last['shown/counter']
    assert [event, overflows] == ['taken-branches', '-']
    assert int(value) + int(left) == OVERFLOWS_AT
    assert 'problem' in last['shown/modes']
    assert 'privileged' not in last['shown/modes']


@pytest.mark.arch('ppc64')
def test_monitor_shows_account(phases):
    """Of the host alone; and for how long the guest has run."""
    instructions, cycles, enabled, counted = map(
        int, phases['end']['shown/account'])
    assert instructions and cycles and enabled == counted


@pytest.mark.arch('ppc64')
def test_says_what_it_cannot_count(phases):
    assert phases['end']['warned'] == ['1']


@pytest.mark.arch('ppc64')
def test_pmu_off_is_refused(phases):
    assert phases['end']['refused'] == ['1']
