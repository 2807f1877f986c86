# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles of KVM's guests, taken by QEMU from outside: where their samples
are, when there are any, and what cannot be had.
"""

import collections
import json
import re

import pytest

from nested_files import symbols_of_rom

PERIOD = 20011
# So many are waited for, of each profile.
SAMPLES = 400
# Of all samples, those of one instruction of twelve and the one after it,
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
    'data': ({'data-address': True}, "a guest's accesses"),
    'nested': ({'modes': 'G'}, 'from its guests'),
    'event': ({'event': 'far-branches'}, 'no name for it'),
    'events_of_vcpu': ({'accounting': 'vcpu', 'event': 'instructions'},
                       'does not count work done'),
    'nested_of_vcpu': ({'accounting': 'vcpu', 'modes': 'G'}, 'from its guests'),
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


def script(_):
    return [FUNCTIONS, *endless(), *pinned(), *unprivileged(), *accountings(),
            'echo @ l1 end']


@pytest.fixture(scope='module')
def said(output):
    """By name, all that was printed of it: lists of words."""
    lines = collections.defaultdict(list)
    for _, what, values in output.lines:
        lines[what].append(values)
    return lines


def test_ends(output):
    output.require(('l1', 'end'))


@pytest.mark.parametrize('name', [*REFUSED, 'nobody'])
def test_refuses(said, name):
    if name == 'nobody':
        (words,), message = said['nobody'], 'takes no samples'
    else:
        (words,), message = said[f'refused/{name}'], REFUSED[name][1]
    assert message in ' '.join(words)


@pytest.mark.parametrize('name', BESIDE)
def test_counts(said, name):
    """It is all in the kernel; a few come when KVM has left the guest."""
    ((samples, lost),) = [map(int, words[1:]) for words in said['counts']
                          if words[0] == name]
    if name == 'user':
        assert (samples, lost) == (0, 0)
    else:
        assert samples > SAMPLES and lost <= LOST_SHARE * samples


def places_of(said, name):
    """By address, how many samples."""
    return {int(ip, 16): int(n) for n, ip in said[f'places/{name}']}


@pytest.mark.parametrize('name', ['kernel', 'coded', 'adapted'])
def test_places(said, name):
    """It does nothing else, but on its way there from a reset."""
    places = places_of(said, name)
    loop = symbols_of_rom('endless')['loop']
    assert sum(places.values()) - places.get(loop, 0) <= 1 \
        < sum(places.values())


def observers_of(said, when):
    """As query-pmu shows them, by their owners."""
    (words,) = said[f'observers/{when}']
    return {observer['owner']: observer for observer
            in json.loads(' '.join(words))['return'][0]['observers']}


OBSERVERS = {'few': [*BESIDE], 'crowd': [*BESIDE, *CROWD], 'less': [*BESIDE]}


@pytest.mark.parametrize('when', OBSERVERS)
def test_observers(said, when):
    """All are shown, and none has counted for longer than it could."""
    shown = observers_of(said, when)
    assert set(shown) == set(OBSERVERS[when])
    for each in shown.values():
        assert 0 < each['running-ns'] <= each['enabled-ns']
        assert (each['count'] == 0) == (each['owner'] == 'user')
    assert BESIDE['coded'].items() <= shown['coded'].items()
    assert 'period' not in shown['adapted']
    if when == 'crowd':
        # There are not counters enough for all.
        assert any(shown[name]['running-ns'] < shown[name]['enabled-ns']
                   for name in CROWD)


def test_info(said):
    (words,) = said['info']
    assert len(re.findall(r'counted for \d+ of \d+ ms', ' '.join(words))) \
        == len(BESIDE)


def test_throttled(said):
    """perf finds all in the stream, each with its end.

    The first beginning and the last end may be outside the stream.
    """
    ((number, first, *rest),) = said['throttled']
    found = dict(zip(rest[::2], map(int, rest[1::2])))
    begun, ended = found['THROTTLE'], found['UNTHROTTLE']
    ended -= first == 'RECORD_UNTHROTTLE'
    assert 2 <= int(number) <= begun
    assert begun - ended in (0, 1)


def test_host_error(said):
    """Pinned events that had no counter do not come back by themselves."""
    event = json.loads(' '.join(said['stopped'][0]))['data']
    assert event['reason'] == 'host-error'
    assert 'no counter left' in event['message']
    assert len(said['stopped/readable']) == 1
    assert 'The profile has ended' in ' '.join(said['restarted'][0])


def share_of_access(said, accounting):
    """Of the loop that accesses a device, which is less than 64 KB."""
    rom = symbols_of_rom('ports')
    places = collections.Counter()
    for ip, n in places_of(said, accounting).items():
        if rom['loop'] <= ip & 0xffff < rom['loop_end']:
            places[ip & 0xffff] += n
    return (places[rom['access']] + places[rom['behind']]) / places.total()


def test_accounting_of_guest(said):
    assert share_of_access(said, 'guest') < FEW


def test_accounting_of_vcpu(said):
    assert share_of_access(said, 'vcpu') > MOST


def test_accounting_of_vcpu_user(said):
    assert said['vcpu_user'] == [['0']]


@pytest.mark.parametrize('what', ['vcpu_disabled', 'disabled'])
def test_no_samples_of(said, what):
    ((before, after),) = said[what]
    assert before == after


def test_times(said):
    """None is earlier than those before."""
    ((number, back),) = said['times']
    assert int(number) > SAMPLES and back == '0'
