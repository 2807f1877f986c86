# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles that the guest itself reads, with its own perf."""

from harness import require, require_equal, scenario_of
from machines import GENOA, POWER8, POWER10, UP
from test_lifecycle import adds
from test_profile import values_of


def port(**properties):
    """A port of the guest's, with a profile behind it."""
    given = ''.join(f',{name}={value}' for name, value in properties.items())
    return ['-device', 'virtio-serial',
            '-object', f'pmu-profile,id=p0{given}',
            '-device', 'virtserialport,chardev=p0,name=org.qemu.pmu.0']


# Where there is no udev, ports have no names in /dev.
SETUP = '''
. /tests/guest.sh
guest_setup
port=/dev/$(basename "$(dirname \
    "$(grep -l org.qemu.pmu.0 /sys/class/virtio-ports/*/name)")")
'''


def run(start, machine, job, programs=(), **properties):
    """The lines of a job for a guest with a port."""
    guest = start(machine, SETUP + job, programs, adds(),
                  extra=port(**properties))
    return guest.rest()


@scenario_of(UP, GENOA, POWER8, POWER10)
def guest_reads_its_kernel(start, directory, machine):
    """perf finds the kernel's functions, with nothing but the port."""
    lines = run(start, machine, '''
dd if=/dev/urandom of=/dev/null bs=64k & busy=$!
head -c 200000 "$port" | perf report -i - --stdio -q --sort sym 2> /dev/null |
    sed 's/^/@@@ found /'
kill $busy
''', modes='k')
    found = [words.split() for words in values_of(lines, 'found') if words]
    _, kind, name = found[0]
    require_equal(kind, '[k]', 'whose the first function is')
    # Random numbers are made by this cipher.
    require('chacha' in name, f'the first function is {name}')


@scenario_of(UP, POWER10)
def guest_opens_its_port_again(start, directory, machine):
    """A stream begins whenever the port is opened; what nobody reads is lost,
    and waits for nobody."""
    guest = start(machine, SETUP + '''
magic()
{
    echo "@@@ magic $(head -c 8 "$port")"
}
magic
magic
exec 4< "$port"
wait_for_test
loop
wait_for_test
exec 4<&-
magic
wait_for_test
''', ['loop'], adds(), monitored=True,
                  extra=port(modes='u', period=3, enabled='off'))

    def take(value):
        guest.monitor.command('qom-set', path='/objects/p0',
                              property='enabled', value=value)

    guest.lines_until('@@@ ready')
    take(True)
    guest.go()
    guest.lines_until('@@@ ready')
    take(False)
    lost = guest.monitor.command('qom-get', path='/objects/p0',
                                 property='lost')
    require(lost > 0, 'nothing is lost')
    guest.go()
    guest.lines_until('@@@ ready')
    guest.monitor.command('set-action', reboot='reset')
    guest.monitor.command('system_reset')
    guest.lines_until('@@@ ready')
    require_equal(values_of(guest.log, 'magic'), ['PERFILE2'] * 5,
                  'how the streams begin')
    guest.go()
    guest.lines_until('@@@ ready')
    guest.go()
    guest.lines_until('@@@ ready')
    guest.go()
    guest.rest()
