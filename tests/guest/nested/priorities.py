# SPDX-License-Identifier: GPL-2.0-or-later
"""Who gets the counters: a second guest that uses all of its own, QEMU's
accounts of it, and perf in the first guest, at the same time.
"""

import machines
from harness import expectations
from l1 import boot, differs, programs, stat_in_turns
from test_counting import perf_event

# Six counters, of which QEMU's accounts take four: properties, how many the
# guest has, and whether it and the accounts count all the time.
PRIORITIES = {
    'guest_first': ('', 6, True, False),
    'host_first': (',pmu-priority=host', 6, False, True),
    'enough_for_both': (',pmu-priority=host,pmu-host-counters=4', 2,
                        True, True),
}
# As info pmu names them
ACCOUNTS = {'guest': 'guest', 'all': 'guest and host'}
# So many events more than the guest can have counters.
MORE = 2

# perf of the first guest, during the first run.  Both guests have the same
# kernel, which is told not to move; modules are at places of their own.
PERF = ('perf kvm --host --guest --guestkallsyms=/tmp/guest.kallsyms '
        '--guestmodules=/tmp/guest.modules')
RECORD = f'{PERF} record -a -e cycles -c 1000003 -o /tmp/kvm.data'
REPORT = f"{PERF} -i /tmp/kvm.data report --stdio --sort dso,sym -t ';'"
# By whose they are, how perf marks symbols; one that is there, as the second
# guest unpacks its files and the first enters it; and one of the other.
SYMBOLS = {
    'guest': (r'\[guest.kernel.kallsyms\];\[g\]', 'inflate_fast',
              'svm_vcpu_run'),
    'host': (r'\[kernel.kallsyms\];\[k\]', 'svm_vcpu_run', 'inflate_fast'),
}


class Priorities:
    """The watchdog of the first guest is off, and Linux has none in guests."""

    def __init__(self, machine, options):
        self.options = [*options, '--append', 'nokaslr']
        self.event = perf_event(machine, machines.IN_TURNS)

    # In the first guest.

    def script(self):
        yield 'echo 0 > /proc/sys/kernel/nmi_watchdog'
        yield "grep -v '\\[' /proc/kallsyms > /tmp/guest.kallsyms"
        yield ': > /tmp/guest.modules'
        yield f'{RECORD} sleep 100000 > /tmp/record 2>&1 & record=$!'
        for name, (properties, *_) in PRIORITIES.items():
            yield from self.run(name, properties)
            # It records until it is interrupted, and ignores the shell's $!.
            yield ('[ -z "$record" ] || { kill -INT $(pidof perf); '
                   'wait $record; record=; }')
        yield f"{REPORT} > /tmp/report 2>&1; sed -i 's/  *;/;/g' /tmp/report"
        for whose, (mark, *_) in SYMBOLS.items():
            yield (f"echo @ l1 symbols/{whose} $(sed -n 's/.*;{mark} //p' "
                   '/tmp/report | head -n 200)')
        yield 'echo @ l1 end'

    def run(self, name, properties):
        """The second guest stays until its QEMU has been asked."""
        yield "cat > /tmp/job << 'END'"
        yield stat_in_turns(name, 'loop', self.event, 6 + MORE)
        yield 'echo @ l2 counted; sleep 100000'
        yield 'END'
        yield ': > /tmp/l2.out'
        yield (f'l2 /tmp/job -cpu host,pmu=on,pmu-host-perf=on{properties} '
               "-append 'console=ttyS0 quiet panic=-1 nokaslr' "
               '$monitor > /tmp/l2.out 9<> /tmp/monitor & l2=$!')
        yield 'until_l2 "@ l2 counted"; ask_l2 "info pmu" "goes first"'
        yield 'tell_l2 quit; wait $l2; cat /tmp/l2.out'
        yield "sed 's/\\r//' /tmp/monitor.log > /tmp/said; rm /tmp/monitor.log"
        for account, line in ACCOUNTS.items():
            yield (f"echo @ l1 {name}/{account} $(grep '^ {line}  ' /tmp/said |"
                   " tail -n 1 | awk '{ print $(NF-1), $NF }')")
        yield (f'echo @ l1 {name}/first '
               "$(sed -n 's/ the \\(.*\\) goes first/\\1/p' /tmp/said)")

    # What they printed.

    def results(self):
        """Names of tests, and what is wrong or None."""
        lines, output = boot(self.options, self.script(), programs('loop'))
        printed = {(level, what): values for level, what, values in lines}
        if ('l1', 'end') not in printed:
            yield 'l1/priorities', 'no end: ' + repr(output[-700:])
            return
        for name in PRIORITIES:
            yield f'l2/counts/{name}', self.wrong_counts(
                name, printed['l2', name])
            yield f'l1/accounts/{name}', self.wrong_accounts(name, printed)
        for whose in SYMBOLS:
            yield f'l1/perf_kvm_shows/{whose}', self.wrong_symbols(
                whose, printed['l1', f'symbols/{whose}'])

    def wrong_counts(self, name, counts):
        """All its counters count all the time, whichever event has them."""
        _, counters, exact, _ = PRIORITIES[name]
        want = counters * expectations('loop')[machines.IN_TURNS]
        total = sum(map(int, counts))
        return None if len(counts) == 6 + MORE and (
            total == want if exact else total < want) \
            else f'{counts} are {total} of {want}'

    def wrong_accounts(self, name, printed):
        """What they lack is shown, and who goes first."""
        properties, _, _, always = PRIORITIES[name]
        for account in ACCOUNTS:
            enabled, counted = map(int, printed['l1', f'{name}/{account}'])
            if (enabled == counted) != always or counted > enabled:
                return f'{account}: counted {counted} of {enabled} ms'
        return differs(set(printed['l1', f'{name}/first']),
                       {'host' if properties else 'guest'})

    def wrong_symbols(self, whose, symbols):
        """perf kvm tells the two kernels apart, and names what they do."""
        _, own, other = SYMBOLS[whose]
        return None if own in symbols and other not in symbols \
            else f'it shows {symbols}'
