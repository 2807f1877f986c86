# SPDX-License-Identifier: GPL-2.0-or-later
"""What happens to a second guest in mid-count: its state is saved and loaded,
it is migrated to a file and goes on in another QEMU, it is reset.
"""

import harness
from l1 import boot, differs, programs, stat
from test_counting import perf_event

# They can be counted at the same time, in what L1 leaves to L2.
EVENTS = {
    'x86_64': ['instructions', 'branches', 'conditional'],
    'ppc64': ['instructions', 'taken'],
}[harness.ARCH]
# Something that snapshots can be saved to.
DISK = '-drive if=none,driver=null-co,size=1G,snapshot=on'
# What the monitor shows on Power, behind these words; and how QEMU says that
# KVM has no accounts of the guest, and that it always has a PMU.
SHOWN = {
    'counter': 'PMC2 \\(.*\\)',
    'modes': 'counts in:\\(.*\\)',
    'account': 'host \\( .*\\)',
}
NO_GUEST_ACCOUNT = 'cannot count what a guest executes'
NO_PMU_OFF = 'pmu=off is not possible'
# Power's counters
OVERFLOWS_AT = 1 << 31
# What x86's kernel says of counters that somebody has left running.
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


class Moving:
    """Counts of one program, again and again, and what interferes with them."""

    def __init__(self, machine, options, l2_options):
        self.machine = machine
        self.options = options
        self.l2 = f'l2 /tmp/job {l2_options} {DISK} $monitor'
        stated = harness.expectations('long')
        self.stated = [str(stated[name]) for name in EVENTS]

    def job(self):
        events = ','.join(perf_event(self.machine, name) for name in EVENTS)
        yield f"echo @ l2 running $(dmesg | grep -c '{LEFT_RUNNING}')"
        yield 'i=0; while i=$((i + 1)); do'
        yield 'echo @ l2 begun$i'
        yield stat('l2', 'counted$i', 'long', events)
        yield 'done'

    def script(self):
        yield FUNCTIONS
        yield "cat > /tmp/job << 'END'"
        yield from self.job()
        yield 'END'
        yield f'{self.l2} >> /tmp/l2.out 9<> /tmp/monitor & l2=$!'
        yield "until_l2 '^@ l2 begun1'; ask_l2 'info pmu' 'counts in:'"
        yield 'stop_in_count; phase saved $n; tell_l2 "savevm it" cont'
        yield 'until_l2 "^@ l2 counted$n "'
        yield 'saved=$n; stop_in_count; n=$saved'
        yield 'phase loaded $n; tell_l2 "loadvm it" cont'
        yield 'until_l2 "^@ l2 counted$n "'
        yield 'stop_in_count; save_l2 /tmp/state; phase migrated $n'
        yield (f'{self.l2} -incoming file:/tmp/state -action reboot=reset '
               '>> /tmp/l2.out 9<> /tmp/monitor & l2=$!')
        yield 'arrive_l2; until_l2 "^@ l2 counted$n "'
        yield 'stop_in_count; phase reset $n; tell_l2 system_reset cont'
        yield "until_l2 '^@ l2 counted1 '; kill -0 $l2 && phase end $n"
        yield 'tell_l2 quit; wait; cat /tmp/l2.phases /tmp/l2.out'
        yield 'grep -h Error /tmp/monitor.log*'
        if harness.ARCH == 'ppc64':
            yield from self.shown()

    def shown(self):
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

    def results(self):
        """Names of tests, and what is wrong or None."""
        lines, output = boot(self.options, self.script(), programs('long'))
        # What the second guest printed in each phase, and the number of the
        # count in which the phase began.
        phases = {'booted': {}}
        number = {}
        now = phases['booted']
        for level, what, values in lines:
            if level == 'l1':
                now = phases[what] = {}
                number[what] = ''.join(values)
            else:
                now[what] = values
        if 'end' not in phases:
            yield 'l2/moves', 'it did not: ' + repr(output[-700:])
            return

        def wrong(phase):
            """A count that began before the phase and ended in it."""
            if f'begun{number[phase]}' in phases[phase]:
                return 'it was not in mid-count'
            return differs(phases[phase].get(f'counted{number[phase]}'),
                           self.stated)

        yield 'l2/counts_over_savevm', wrong('saved')
        yield 'l2/counts_after_loadvm', wrong('loaded')
        yield 'l2/counts_over_migration', wrong('migrated')
        yield 'l2/counts_after_reset', differs(
            phases['reset'].get('counted1'), self.stated)
        if harness.ARCH == 'x86_64':
            yield 'l2/reset_stops_counters', differs(
                phases['reset'].get('running'), ['0'])
        else:
            yield from self.results_of_power(phases['end'])

    def results_of_power(self, last):
        """The processor counts, and the kernel knows little of it."""
        yield 'l1/monitor_shows_registers', self.wrong_counter(last)
        yield 'l1/monitor_shows_account', self.wrong_account(last)
        yield 'l1/says_what_it_cannot_count', differs(last['warned'], ['1'])
        yield 'l1/pmu_off_is_refused', differs(last['refused'], ['1'])

    def wrong_counter(self, last):
        """That of programs' taken branches, which has counted some."""
        event, value, left, overflows = last['shown/counter']
        return differs([event, overflows], ['taken-branches', '-']) \
            or differs(int(value) + int(left), OVERFLOWS_AT) \
            or differs('problem' in last['shown/modes'], True) \
            or differs('privileged' in last['shown/modes'], False)

    def wrong_account(self, last):
        """Of the host alone; and for how long the guest has run."""
        instructions, cycles, enabled, counted = map(int,
                                                     last['shown/account'])
        return None if instructions and cycles and enabled == counted \
            else f'it shows {last}'
