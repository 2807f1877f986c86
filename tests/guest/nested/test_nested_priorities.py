# SPDX-License-Identifier: GPL-2.0-or-later
"""Who gets the counters: a second guest that uses all of its own, QEMU's
accounts of it, and perf in the first guest, at the same time.

The watchdog of the first guest is off, and Linux has none in guests of KVM.
"""

import pytest

from harness import expectations
from machines import IN_TURNS
from nested_l1 import event_of, job, stat_in_turns

pytestmark = pytest.mark.more

# Six counters, of which QEMU's accounts take four: properties, how many the
# guest has, and whether it and the accounts count all the time.
PRIORITIES = {
    'guest_first': ('', 6, True, False),
    'host_first': (',pmu-priority=host', 6, False, True),
    # Linux has booted with six.
    'enough_for_both': (',pmu-priority=host,pmu-host-counters=4', 2,
                        True, True),
}
# As info pmu names them
ACCOUNTS = {'guest': 'guest', 'all': 'guest and host'}
# So many events more than the guest can have counters.
MORE = 2

# perf of the first guest, during the first run.  Modules are at places of
# their own.
PERF = ('perf kvm --host --guest --guestkallsyms=/tmp/guest.kallsyms '
        '--guestmodules=/tmp/guest.modules')
RECORD = f'{PERF} record -a -e cycles -c 1000003 -o /tmp/kvm.data'
REPORT = f"{PERF} -i /tmp/kvm.data report --stdio --sort dso,sym -t ';'"
# By whose they are, how perf marks symbols; one that is there, as the second
# guest reads a file that nobody reads in the first, which enters it; and one
# of the other.
SYMBOLS = {
    'guest': (r'\[guest.kernel.kallsyms\];\[g\]', 'stable_page_flags',
              'svm_vcpu_run'),
    'host': (r'\[kernel.kallsyms\];\[k\]', 'svm_vcpu_run',
             'stable_page_flags'),
}


def script(l1):
    yield 'echo 0 > /proc/sys/kernel/nmi_watchdog'
    yield "grep -v '\\[' /proc/kallsyms > /tmp/guest.kallsyms"
    yield ': > /tmp/guest.modules'
    yield f'{RECORD} sleep 100000 > /tmp/record 2>&1 & record=$!'
    for name, (properties, counters, *_) in PRIORITIES.items():
        yield from run(l1, name, properties, counters)
        # It records until it is interrupted, and ignores the shell's $!.
        yield ('[ -z "$record" ] || { kill -INT $(pidof perf); '
               'wait $record; record=; }')
    yield f"{REPORT} > /tmp/report 2>&1; sed -i 's/  *;/;/g' /tmp/report"
    for whose, (mark, *_) in SYMBOLS.items():
        yield (f"echo @ l1 symbols/{whose} $(sed -n 's/.*;{mark} //p' "
               '/tmp/report | head -n 200)')
    yield 'echo @ l1 end'


def run(l1, name, properties, counters):
    """The second guest stays until its QEMU has been asked."""
    yield job('cat /proc/kpageflags > /dev/null',
              stat_in_turns(name, 'loop', event_of(l1, IN_TURNS), 6 + MORE),
              'echo @ l2 counted; sleep 100000')
    yield ': > /tmp/l2.out'
    saved = '--saved' if counters == 6 else ''
    yield (f'l2 {saved} /tmp/job -cpu host,pmu=on,pmu-host-perf=on{properties}'
           ' $monitor > /tmp/l2.out 9<> /tmp/monitor & l2=$!')
    yield 'until_l2 "@ l2 counted"; ask_l2 "info pmu" "goes first"'
    yield 'tell_l2 quit; wait $l2; cat /tmp/l2.out'
    yield "sed 's/\\r//' /tmp/monitor.log > /tmp/said; rm /tmp/monitor.log"
    for account, line in ACCOUNTS.items():
        yield (f"echo @ l1 {name}/{account} $(grep '^ {line}  ' /tmp/said |"
               " tail -n 1 | awk '{ print $(NF-1), $NF }')")
    yield (f'echo @ l1 {name}/first '
           "$(sed -n 's/ the \\(.*\\) goes first/\\1/p' /tmp/said)")


@pytest.fixture(scope='module')
def printed(output):
    return output.values()


def test_ends(output):
    output.require(('l1', 'end'))


@pytest.mark.parametrize('name', PRIORITIES)
def test_counts(printed, name):
    """All its counters count all the time, whichever event has them."""
    _, counters, exact, _ = PRIORITIES[name]
    want = counters * expectations('loop')[IN_TURNS]
    counts = printed['l2', name]
    total = sum(map(int, counts))
    assert len(counts) == 6 + MORE
    assert total == want if exact else total < want


@pytest.mark.parametrize('name', PRIORITIES)
def test_accounts(printed, name):
    """What they lack is shown, and who goes first."""
    properties, _, _, always = PRIORITIES[name]
    for account in ACCOUNTS:
        enabled, counted = map(int, printed['l1', f'{name}/{account}'])
        assert (enabled == counted) == always and counted <= enabled
    assert set(printed['l1', f'{name}/first']) \
        == {'host' if properties else 'guest'}


@pytest.mark.parametrize('whose', SYMBOLS)
def test_perf_kvm_shows(printed, whose):
    """perf kvm keeps the two kernels apart, and names what they do."""
    _, own, other = SYMBOLS[whose]
    symbols = printed['l1', f'symbols/{whose}']
    assert own in symbols and other not in symbols
