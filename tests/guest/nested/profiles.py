# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles of KVM's guests, taken by QEMU from outside: where their samples
are, when there are any, and what cannot be had.
"""

import collections
import json
import re
import subprocess

from harness import BUILD
from l1 import HERE, boot, differs

PROGRAMS = BUILD / 'tests' / 'guest' / 'nested'
PERIOD = 20011
# So many are waited for, of each profile.
SAMPLES = 400
# By name, second guests: how they are made of rom.S.  The port is that of a
# device of QEMU's, not of KVM's.
ROMS = {'endless': '-DLOOP', 'ports': '-DPORT=0x71'}
# Of all samples, those of one instruction of twelve and the one behind it,
# where KVM has completed it: less if it is by the number of instructions, and
# more if it takes most of the time.
FEW, MOST = 0.4, 0.7
# A user who may not look at what the kernel does.
NOBODY = '65534:65534'
# Of the samples, at most, those that come when KVM has left the guest.
LOST_SHARE = 0.1

FUNCTIONS = r"""
# start NAME OPTION...: a second guest that runs for ever, and its monitor
start() {
    name=$1
    shift
    mkfifo /tmp/$name.qmp
    ended=/tmp/$name.ended
    {
        qemu-system-x86_64 -L /usr/share/qemu -nodefaults -display none \
            -machine pc -m 32 -bios /endless.bin \
            -global apic-common.vapic=off -accel kvm $(qmp_options $name) \
            "$@" < /dev/null 2>&1 9<> /tmp/$name.qmp
        : > $ended
    } | sed "s/^/# $name: /" &
    greet $name
}
# pause: before one looks again.  If the second guest is no more, the first has
# nothing to wait for.  Its process says nothing: it stays until the shell looks
# for its children, which it does not while it waits for a command's output.
pause() {
    [ ! -e $ended ] || exit
    sleep 0.2
}
# qmp_options NAME: of QEMU, for its monitor.  That has no end as long as QEMU
# itself has it open to write.
qmp_options() {
    echo -chardev file,id=qmp,path=/tmp/$1.said,input-path=/tmp/$1.qmp \
         -mon qmp,mode=control
}
greet() {
    until grep -qs QMP /tmp/$1.said; do pause; done
    ask $1 qmp_capabilities > /dev/null
}
# ask NAME COMMAND [ARGUMENTS]: what its monitor answers
echo 0 > /tmp/asked
ask() {
    asked=$(($(cat /tmp/asked) + 1))
    echo $asked > /tmp/asked
    echo "{\"execute\": \"$2\", \"arguments\": ${3:-{\}}, \"id\": $asked}" \
        1<> /tmp/$1.qmp
    over=
    # It may have answered right before its end.
    until grep "\"id\": $asked[,}]" /tmp/$1.said; do
        [ -z "$over" ] || exit
        [ ! -e $ended ] || over=yes
        sleep 0.2
    done
}
# profile NAME ID [PROPERTIES]: a profile, as members of its JSON object
profile() {
    ask $1 object-add "{\"qom-type\": \"pmu-profile\", \"id\": \"$2\",
        \"file\": \"/tmp/$2.data\"$3}"
}
# number NAME ID PROPERTY: of a profile's
number() {
    ask $1 qom-get "{\"path\": \"/objects/$2\", \"property\": \"$3\"}" |
        sed 's/.*"return": \([0-9]*\).*/\1/'
}
# enable NAME ID true|false: and what is answered
enable() {
    ask $1 qom-set "{\"path\": \"/objects/$2\", \"property\": \"enabled\",
        \"value\": $3}"
}
# await NAME ID COUNT: until a profile has so many samples
await() {
    until [ "$(number $1 $2 samples)" -ge $3 ]; do pause; done
}
# places WHAT FILE: where its samples are, and how many there
places() {
    perf script -i $2 -F ip | sort | uniq -c | sed "s|^|@ l1 $1 |"
}
"""

# By name: properties of a profile, and what the answer says.
REFUSED = {
    'callchain': ({'callchain': 3}, 'cannot follow the calls'),
    'nested': ({'modes': 'G'}, 'guests of it'),
    'event': ({'event': 'far-branches'}, 'no name for it'),
    'events_of_vcpu': ({'accounting': 'vcpu', 'event': 'instructions'},
                       'does not count what is done'),
    'nested_of_vcpu': ({'accounting': 'vcpu', 'modes': 'G'}, 'guests of it'),
    'frequency': ({'frequency': 10000000}, 'takes no samples of vCPU 0'),
}
# At the same time, and of the same vCPU.
BESIDE = {
    'kernel': {'modes': 'k', 'period': PERIOD},
    'user': {'modes': 'u', 'period': PERIOD},
    'adapted': {'frequency': 200, 'event': 'cycles'},
    'coded': {'event': 'rc2', 'period': PERIOD},
}
# More than the first guest has counters, of its six.
CROWD = [f'crowd{i}' for i in range(8)]


def members(properties):
    """For profile(): behind those that all have."""
    return ''.join(f', {json.dumps(name)}: {json.dumps(value)}'
                   for name, value in properties.items())


def endless():
    """A guest that has no PMU, and never leaves its loop in the kernel."""
    yield 'start endless -cpu host,pmu=off'
    for name, (properties, _) in REFUSED.items():
        yield (f"echo @ l1 refused/{name} "
               f"$(profile endless {name} '{members(properties)}')")
    for name, properties in BESIDE.items():
        yield f"profile endless {name} '{members(properties)}'"
    for name in 'kernel', 'adapted', 'coded':
        yield f'await endless {name} {SAMPLES}'
    yield 'echo @ l1 observers/few $(ask endless query-pmu)'
    yield ('echo @ l1 info $(ask endless human-monitor-command '
           '\'{"command-line": "info pmu"}\')')
    yield from crowd()
    yield from throttled()
    yield 'enable endless kernel false > /dev/null'
    yield 'before=$(number endless kernel samples)'
    yield 'await endless coded $(($(number endless coded samples) + 50))'
    yield ('echo @ l1 disabled $before $(number endless kernel samples)')
    yield 'enable endless kernel true > /dev/null'
    yield 'await endless kernel $((before + 50))'
    # It is the machine that stops; what was sampled is in the file.
    yield 'ask endless stop; before=$(number endless kernel samples)'
    yield 'ask endless system_reset; ask endless cont'
    yield 'await endless kernel $((before + 50))'
    for name in 'kernel', 'adapted', 'coded', 'user':
        yield (f'echo @ l1 counts {name} $(number endless {name} samples) '
               f'$(number endless {name} lost)')
        yield (f"ask endless object-del '{json.dumps({'id': name})}'")
        yield f'places places/{name} /tmp/{name}.data'
    yield ('perf script -i /tmp/kernel.data -F time | '
           "awk '$1 + 0 < last { back++ } { last = $1 + 0 } "
           """END { print "@ l1 times", NR, back + 0 }'""")
    yield 'ask endless quit; wait'


def crowd():
    """So many that they have counters by turns alone."""
    for name in CROWD:
        yield f"profile endless {name} '{members({'period': PERIOD})}'"
    for name in CROWD:
        yield f'await endless {name} 1'
    yield 'echo @ l1 observers/crowd $(ask endless query-pmu)'
    for name in CROWD:
        yield f"ask endless object-del '{json.dumps({'id': name})}'"
    yield 'echo @ l1 observers/less $(ask endless query-pmu)'


def throttled():
    """The host takes a sample in a tick of its clock, and then no more."""
    rate = '/proc/sys/kernel/perf_event_max_sample_rate'
    yield f'rate=$(cat {rate}); echo 100 > {rate}'
    yield f"profile endless throttled '{members({'period': PERIOD})}'"
    yield ('until [ "$(number endless throttled throttled)" -ge 2 ]; do '
           'pause; done')
    yield f'echo $rate > {rate}'
    yield 'number=$(number endless throttled throttled)'
    yield f"ask endless object-del '{json.dumps({'id': 'throttled'})}'"
    yield ('echo @ l1 throttled $number '
           '$(perf report -i /tmp/throttled.data -D 2> /dev/null | '
           r"grep -o 'RECORD_\(UN\)\?THROTTLE' | head -n 1) "
           '$(perf report -i /tmp/throttled.data --stats | '
           r"sed -n 's/^ *\(.*THROTTLE\) events: *\([0-9]*\).*/\1 \2/p')")


def pinned():
    """QEMU goes first; but the host has fewer counters than it wants."""
    yield 'start pinned -cpu host,pmu=off,pmu-priority=host'
    for name in CROWD:
        yield (f"profile pinned {name}p '{members({'period': PERIOD})}'"
               ' > /dev/null')
    yield ('until grep PMU_PROFILE_STOPPED /tmp/pinned.said > /tmp/stopped; do '
           'pause; done')
    yield 'echo @ l1 stopped $(head -n 1 /tmp/stopped)'
    # Its file has its end, and it cannot go on.
    yield r"""id=$(sed 's/.*"id": "\([^"]*\)".*/\1/; q' /tmp/stopped)"""
    yield ('perf script -i /tmp/$id.data > /dev/null && '
           'echo @ l1 stopped/readable')
    yield 'echo @ l1 restarted $(enable pinned $id true)'
    yield f'await pinned {CROWD[0]}p {SAMPLES}'
    yield 'ask pinned quit; wait'


def unprivileged():
    """QEMU of a user who may not look at what the kernel does."""
    yield 'echo 2 > /proc/sys/kernel/perf_event_paranoid'
    yield f'start nobody -cpu host -run-with user={NOBODY}'
    yield 'echo @ l1 nobody $(profile nobody p)'
    yield 'ask nobody quit; wait'
    yield 'echo -1 > /proc/sys/kernel/perf_event_paranoid'


# Both at the same time; and of programs, of which there are none.  It executes
# little, as it accesses its device again and again.
ACCOUNTINGS = {
    'guest': {'period': 211},
    'vcpu': {'accounting': 'vcpu', 'period': 200000},
    'vcpu_user': {'accounting': 'vcpu', 'modes': 'u', 'frequency': 1000},
}


def accountings():
    """A guest without a PMU that accesses a device again and again."""
    yield 'start ports -cpu host,pmu=off -bios /ports.bin'
    for name, properties in ACCOUNTINGS.items():
        yield f"profile ports {name} '{members(properties)}' > /dev/null"
    for name in 'guest', 'vcpu':
        yield f'await ports {name} {SAMPLES}'
    # It runs on, and its profile can stand still for a while.
    yield 'enable ports vcpu false > /dev/null'
    yield 'before=$(number ports vcpu samples)'
    yield 'await ports guest $(($(number ports guest samples) + 50))'
    yield 'echo @ l1 vcpu_disabled $before $(number ports vcpu samples)'
    yield 'enable ports vcpu true > /dev/null'
    yield 'await ports vcpu $((before + 50))'
    yield 'echo @ l1 vcpu_user $(number ports vcpu_user samples)'
    for name in 'guest', 'vcpu':
        yield f"ask ports object-del '{json.dumps({'id': name})}' > /dev/null"
        yield f'places places/{name} /tmp/{name}.data'
    yield 'ask ports quit; wait'


class Profiles:
    def __init__(self, options):
        self.options = options

    def results(self):
        """Names of tests, and what is wrong or None."""
        self.build()
        lines, output = boot(
            self.options,
            [FUNCTIONS, *endless(), *pinned(), *unprivileged(),
             *accountings(), 'echo @ l1 end'],
            [(PROGRAMS / f'{name}.bin', f'/{name}.bin') for name in ROMS])
        self.said = collections.defaultdict(list)
        for _, what, values in lines:
            self.said[what].append(values)
        ended = 'end' in self.said
        yield 'profiles/ends', None if ended \
            else 'they did not: ' + repr(output[-700:])
        if ended:
            yield from self.results_of_endless()

    def build(self):
        PROGRAMS.mkdir(parents=True, exist_ok=True)
        self.symbols = {name: self.build_rom(name, option)
                        for name, option in ROMS.items()}
        self.loop = self.symbols['endless']['loop']

    def build_rom(self, name, option):
        """Its symbols, by their names."""
        part = PROGRAMS / f'{name}.o'
        subprocess.run(['cc', '-c', '-m32', option, '-o', part,
                        HERE / 'rom.S'], check=True)
        subprocess.run(['ld', '-m', 'elf_i386', '-e', '0', '-Ttext=0',
                        '--oformat', 'binary', '-o', PROGRAMS / f'{name}.bin',
                        part], check=True)
        named = subprocess.run(['nm', part], check=True, text=True,
                               capture_output=True).stdout
        return {symbol: int(address, 16) for address, symbol
                in re.findall(r'^(\w+) \w (\w+)$', named, re.M)}

    def places(self, what):
        """By address, how many samples."""
        return {int(ip, 16): int(n) for n, ip in self.said[what]}

    def share_of_access(self, accounting):
        """Of the loop that accesses a device, which is less than 64 KB."""
        rom = self.symbols['ports']
        places = collections.Counter()
        for ip, n in self.places(f'places/{accounting}').items():
            if rom['loop'] <= ip & 0xffff < rom['loop_end']:
                places[ip & 0xffff] += n
        return (places[rom['access']] + places[rom['behind']]) / places.total()

    def results_of_endless(self):
        for name, (_, message) in REFUSED.items():
            text = ' '.join(self.said[f'refused/{name}'][0])
            yield f'profiles/refuses/{name}', None if message in text \
                else f'it said: {text}'
        text = ' '.join(self.said['nobody'][0])
        yield 'profiles/refuses/nobody', None \
            if 'takes no samples' in text else f'it said: {text}'
        for name, samples, lost in self.said['counts']:
            yield f'profiles/counts/{name}', self.wrong_numbers(
                name, int(samples), int(lost))
        for name in 'kernel', 'coded', 'adapted':
            yield f'profiles/places/{name}', self.wrong_places(name)
        yield 'profiles/observers/few', self.wrong_observers('few', BESIDE)
        yield 'profiles/info', differs(
            len(re.findall(r'counted for \d+ of \d+ ms',
                           ' '.join(self.said['info'][0]))), len(BESIDE))
        yield 'profiles/observers/crowd', self.wrong_observers(
            'crowd', [*BESIDE, *CROWD]) or self.wrong_turns()
        yield 'profiles/observers/less', self.wrong_observers('less', BESIDE)
        yield 'profiles/throttled', self.wrong_throttles(
            *self.said['throttled'])
        yield 'profiles/host_error', self.wrong_stop()
        few, most = map(self.share_of_access, ('guest', 'vcpu'))
        yield 'profiles/accounting/guest', None if few < FEW \
            else f'{few:.1%} of the samples'
        yield 'profiles/accounting/vcpu', None if most > MOST \
            else f'{most:.1%} of the samples, not most'
        yield 'profiles/accounting/vcpu_user', differs(self.said['vcpu_user'],
                                                       [['0']])
        (before, behind), = self.said['vcpu_disabled']
        yield 'profiles/accounting/vcpu_disabled', differs(before, behind)
        (before, behind), = self.said['disabled']
        yield 'profiles/disabled', differs(before, behind)
        (number, back), = self.said['times']
        yield 'profiles/times', None if int(number) > SAMPLES and back == '0' \
            else f'{back} of {number} are earlier than those before'

    def observers(self, when):
        """As query-pmu shows them, by their owners."""
        answer = json.loads(' '.join(self.said[f'observers/{when}'][0]))
        return {observer['owner']: observer
                for observer in answer['return'][0]['observers']}

    def wrong_observers(self, when, names):
        """All are shown, and none has counted for longer than it could."""
        shown = self.observers(when)
        wrong = [o for o in shown.values()
                 if not 0 < o['running-ns'] <= o['enabled-ns']
                 or (o['count'] == 0) != (o['owner'] == 'user')]
        return differs(set(shown), set(names)) or differs(wrong, []) \
            or differs(shown['coded'].items() & BESIDE['coded'].items(),
                       BESIDE['coded'].items()) \
            or differs('period' in shown['adapted'], False)

    def wrong_turns(self):
        """There are not counters enough for all."""
        shown = self.observers('crowd')
        return None if any(shown[name]['running-ns'] < shown[name]['enabled-ns']
                           for name in CROWD) \
            else f'all have counted all the time: {shown}'

    def wrong_throttles(self, said):
        """perf finds all in the stream, each with its end.

        The first beginning and the last end may be outside the stream.
        """
        number, first = int(said[0]), said[1]
        found = dict(zip(said[2::2], map(int, said[3::2])))
        begun, ended = found['THROTTLE'], found['UNTHROTTLE']
        ended -= first == 'RECORD_UNTHROTTLE'
        return None if 2 <= number <= begun and begun - ended in (0, 1) \
            else f'{number} were told, and behind {first} there are {found}'

    def wrong_stop(self):
        """Pinned events that had no counter do not come back by themselves."""
        event = json.loads(' '.join(self.said['stopped'][0]))['data']
        restarted = ' '.join(self.said['restarted'][0])
        return differs(event['reason'], 'host-error') \
            or differs('no counter left' in event['message'], True) \
            or differs(len(self.said['stopped/readable']), 1) \
            or differs('The profile has ended' in restarted, True)

    def wrong_numbers(self, name, samples, lost):
        """It is all in the kernel; a few come when KVM has left the guest."""
        if name == 'user':
            return differs((samples, lost), (0, 0))
        return None if samples > SAMPLES and lost <= LOST_SHARE * samples \
            else f'{samples} samples, {lost} lost'

    def wrong_places(self, name):
        """It does nothing else, but on its way there from a reset."""
        places = self.places(f'places/{name}')
        elsewhere = sum(places.values()) - places.get(self.loop, 0)
        return None if elsewhere <= 1 < sum(places.values()) \
            else f'{places}, and the loop is at {self.loop:#x}'
