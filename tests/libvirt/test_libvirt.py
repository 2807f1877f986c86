# SPDX-License-Identifier: GPL-2.0-or-later
"""Domains of libvirt whose <emulator> is the QEMU that is installed.

libvirt runs as an ordinary user's qemu:///session, with a home of its own and
without systemd, even if root runs pytest.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import xml.etree.ElementTree as ElementTree

import pytest

from harness import (ARCH, BUILD, GUEST, PROGRAMS, ROOT, build_programs,
                     expectations)

# Debian's nobody.
USER = 65534
# No step takes that long even where all is slow; a hang is to be noticed.
PATIENCE = 900
# How often a guest is looked at that is to be found counting.
LOOKS = 50
# The daemons of libvirt, the modular one first, and how clients find them.
DAEMONS = {'virtqemud': 'direct', 'libvirtd': 'legacy'}

# libvirt's name of the architecture, the machine, a CPU model of which TCG has
# everything, and the kernel's parameters.  On a busy host x86's timer ticks
# too late for the kernel's check.
ARCHITECTURE, MACHINE, CPU, APPEND = {
    'x86_64': ('x86_64', 'q35', 'Westmere', 'console=ttyS0 no_timer_check'),
    'ppc64': ('ppc64le', 'pseries', 'POWER9', 'console=hvc0'),
}[ARCH]

EVENTS = {
    'x86_64': {'instructions': 'instructions:u', 'branches': 'branches:u'},
    'ppc64': {'instructions': 'instructions:u'},
}[ARCH]

# Counts the same program again and again.
COUNTS = f'''
. /tests/guest.sh
guest_setup
while :; do
    announce 1 long
    count {','.join(EVENTS.values())} long
    echo '@@@ end'
done
'''

COUNTS_ONCE = '''
. /tests/guest.sh
count instructions:u true
echo '@@@ end'
sleep 1000000
'''

DOMAIN = '''
<domain type='qemu'>
  <name>{name}</name>
  <memory unit='MiB'>512</memory>
  <vcpu current='1'>{vcpus}</vcpu>
  <os>
    <type arch='{architecture}' machine='{machine}'>hvm</type>
    <kernel>{kernel}</kernel>
    <initrd>{initrd}</initrd>
    <cmdline>{cmdline}</cmdline>
  </os>
  <features>{features}</features>
  {cpu}
  <on_poweroff>destroy</on_poweroff>
  <on_reboot>destroy</on_reboot>
  <on_crash>destroy</on_crash>
  <devices>
    <emulator>{emulator}</emulator>
    <controller type='usb' model='none'/>
    <memballoon model='none'/>
    <serial type='file'>
      <source path='{console}' append='on'/>
      <target port='0'/>
    </serial>
  </devices>
</domain>
'''


class Session:
    """libvirt, in a directory of its own, and what is installed there."""

    def __init__(self, top):
        self.top = top
        self.emulator = top / 'prefix' / 'bin' / f'qemu-system-{ARCH}'
        self.home = top / 'home'
        for path in (self.home, top / 'run'):
            path.mkdir(mode=0o700)
            self.give(path)
        # An ordinary user's has no /usr/sbin.
        path = f'{os.environ["PATH"]}:/usr/sbin'
        daemon, mode = next(
            ((shutil.which(name, path=path), mode)
             for name, mode in DAEMONS.items()
             if shutil.which(name, path=path)), (None, None))
        assert daemon, 'there is no daemon of libvirt'
        self.environment = {
            'PATH': path, 'LANG': 'C.UTF-8',
            'HOME': str(self.home), 'XDG_RUNTIME_DIR': str(top / 'run'),
            'XDG_CACHE_HOME': str(self.home / 'cache'),
            'XDG_CONFIG_HOME': str(self.home / 'config'),
            'LIBVIRT_DEFAULT_URI': f'qemu:///session?mode={mode}',
            # virsh is to find this daemon, and to start no other.
            'LIBVIRT_AUTOSTART': '0',
        }
        with open(top / 'log', 'wb') as log:
            self.daemon = subprocess.Popen(
                [daemon, '--timeout', '0'], stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, start_new_session=True,
                **self.as_user())
        self.wait_for(self.answers, 'an answer of libvirt')

    def as_user(self):
        user = {'user': USER, 'group': USER, 'extra_groups': []} \
            if os.getuid() == 0 else {}
        return {'cwd': self.top, 'env': self.environment, **user}

    def give(self, path):
        if os.getuid() == 0:
            os.chown(path, USER, USER)

    def wait_for(self, condition, what):
        end = time.monotonic() + PATIENCE
        while not condition():
            assert self.daemon.poll() is None, 'libvirt has ended: ' \
                + (self.top / 'log').read_text(errors='replace')[-500:]
            assert time.monotonic() < end, f'{what} has not come'
            time.sleep(0.1)

    def virsh(self, *words):
        """A command of virsh; what it prints."""
        done = subprocess.run(
            ['virsh', '--quiet', *map(str, words)], text=True,
            stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE,
            check=False, **self.as_user())
        assert done.returncode == 0, \
            f'virsh {words[0]}: {done.stderr.strip()}'
        return done.stdout

    def answers(self):
        try:
            self.virsh('list')
        except AssertionError:
            return False
        return True


class Domain:
    """A domain that runs a job in the Linux guest."""

    def __init__(self, session, name, job, pmu="<pmu state='on'/>",
                 cpu=f'<model fallback="forbid">{CPU}</model>', vcpus=1):
        self.session = session
        self.name = name
        self.position = 0
        directory = session.top / name
        directory.mkdir()
        session.give(directory)
        self.console = directory / 'console'
        self.state = directory / 'state'
        if not cpu.startswith('<cpu'):
            cpu = f"<cpu mode='custom' match='exact'>{cpu}</cpu>"
        features = pmu
        if ARCH == 'x86_64':
            features += '<acpi/><apic/>'
        text = DOMAIN.format(
            name=name, vcpus=vcpus, architecture=ARCHITECTURE, machine=MACHINE,
            kernel=session.top / 'kernel', features=features, cpu=cpu,
            initrd=self.make_initrd(directory, job), console=self.console,
            cmdline=f'{APPEND} quiet panic=-1 {GUEST.append}',
            emulator=session.emulator)
        path = directory / 'domain.xml'
        path.write_text(text)
        session.virsh('create', path, '--validate')

    @staticmethod
    def make_initrd(directory, job):
        """The guest's initramfs and, after it, the job's files."""
        tree = directory / 'tree'
        binaries = tree / 'usr' / 'bin'
        binaries.mkdir(parents=True)
        (tree / 'tests').mkdir()
        shutil.copy(ROOT / 'tests/guest/linux/guest.sh', tree / 'tests')
        shutil.copy(PROGRAMS / 'long', binaries)
        (tree / 'job').write_text(job)
        names = '\n'.join(str(path.relative_to(tree))
                          for path in [tree, *sorted(tree.rglob('*'))])
        archive = subprocess.run(
            ['cpio', '--quiet', '-o', '-H', 'newc', '-R', '0:0'], cwd=tree,
            input=names.encode(), check=True, capture_output=True).stdout
        initrd = directory / 'initrd'
        with open(initrd, 'wb') as f:
            f.write((BUILD / f'guest-{ARCH}' / 'initrd').read_bytes())
            f.write(b'\0' * (-f.tell() % 4))
            f.write(archive)
        return initrd

    def virsh(self, command, *words):
        return self.session.virsh(command, self.name, *words)

    def monitor(self, command, **arguments):
        """A command of QEMU's monitor; its answer."""
        request = {'execute': command}
        if arguments:
            request['arguments'] = arguments
        answer = json.loads(self.virsh('qemu-monitor-command',
                                       json.dumps(request)))
        assert 'return' in answer
        return answer['return']

    def counters(self):
        """What all counters of the first CPU hold."""
        return self.monitor('query-pmu')[0]['pmu']['counters']

    def state_is(self):
        return self.virsh('domstate').strip()

    def log(self):
        return self.console.read_text(errors='replace').replace('\r', '') \
            if self.console.exists() else ''

    def lines_until(self, mark):
        """What the guest has printed since the last one, up to this mark."""
        self.session.wait_for(
            lambda: f'{mark}\n' in self.log()[self.position:], mark)
        begin = self.position
        self.position = self.log().index(f'{mark}\n', begin) + len(mark) + 1
        return self.log()[begin:self.position]


def counts_in(text):
    """perf's counts: a list for each event.

    The kernel may complain on the same console that the host was slow.
    """
    counts = {}
    for count, event in re.findall(r'^(\d+|<.*>),,([^,]*),', text, re.M):
        counts.setdefault(event, []).append(count)
    return counts


def check_counts(text):
    """The program has counted what it states."""
    want = expectations('long')
    assert counts_in(text) == {name: [str(want[event])]
                               for event, name in EVENTS.items()}


def prepare(top):
    """What libvirt's user is to find: the installed QEMU, and the kernel."""
    subprocess.run([ROOT / 'scripts' / 'install'], check=True, env={
        **os.environ, 'DESTDIR': '', 'PREFIX': str(top / 'prefix'),
        'ARCHES': ARCH})
    shutil.copyfile(BUILD / f'guest-{ARCH}' / 'kernel', top / 'kernel')


def processes_of(top):
    """Those in whose environment is a path in this directory."""
    found = []
    for path in pathlib.Path('/proc').glob('[0-9]*/environ'):
        # It may have ended, or be another user's.
        with contextlib.suppress(OSError):
            if b'=%s/' % os.fsencode(top) in path.read_bytes():
                found.append(int(path.parent.name))
    return found


def end_processes(top):
    """End libvirt, and its domains and other daemons, which it would leave.

    They get no chance to end by themselves: libvirt may be starting a domain,
    hang, or have ended.  A process that begins a program has no environment
    for a moment, so the loop ends when it finds none twice.
    """
    found = last = True
    while found or last:
        last, found = found, processes_of(top)
        for process in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.1)


@pytest.fixture(scope='module')
def session():
    build_programs()
    with tempfile.TemporaryDirectory(prefix='libvirt-') as directory:
        top = pathlib.Path(directory)
        top.chmod(0o755)
        try:
            prepare(top)
            yield Session(top)
        finally:
            # What has been started has to end, whatever comes meanwhile.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {
                signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
            end_processes(top)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@pytest.fixture(autouse=True)
def logs(session):
    """Shows the ends of QEMU's and the guests' logs if a test fails."""
    yield
    for path in sorted([*session.home.glob('cache/libvirt/qemu/log/*.log'),
                        *session.top.glob('*/console')]):
        print(path, *path.read_text(errors='replace').splitlines()[-5:],
              sep='\n')


#
# What libvirt finds out by itself
#

def capabilities(session):
    text = session.virsh('domcapabilities', '--virttype', 'qemu',
                         '--arch', ARCHITECTURE, '--machine', MACHINE,
                         '--emulatorbin', session.emulator)
    return ElementTree.fromstring(text)


def test_probing(session):
    """libvirt asks for what there is, and gets answers that it understands."""
    found = capabilities(session)
    assert found.findtext('path') == str(session.emulator)
    assert found.findtext('domain') == 'qemu'
    assert MACHINE in found.findtext('machine')
    models = {one.text: one.get('usable')
              for one in found.iterfind("cpu/mode[@name='custom']/model")}
    assert CPU in models
    if ARCH == 'x86_64':
        assert models[CPU] == 'yes'


#
# Domains
#

def test_pmu_on(session):
    """Counts are right over save and restore in the midst of counting."""
    domain = Domain(session, 'on', COUNTS)
    before = suspended_in_counting(domain)
    domain.virsh('save', domain.state)
    assert domain.name not in session.virsh('list', '--all', '--name').split()
    session.virsh('restore', domain.state)
    assert domain.state_is() == 'paused'
    assert held(domain.counters()) == held(before)
    domain.virsh('resume')
    check_counts(domain.lines_until('@@@ end'))
    # And when it begins after that.
    domain.lines_until('@@@ begin')
    check_counts(domain.lines_until('@@@ end'))
    domain.virsh('destroy')


def held(counters):
    """What a guest has of its counters: how often they have overflowed is
    QEMU's own account, which begins anew."""
    return [{key: value for key, value in one.items() if key != 'overflows'}
            for one in counters]


def suspended_in_counting(domain):
    """The counters of a domain that is suspended while one of them runs.

    A host may be so busy that the program has ended by then; it comes again.
    """
    for _ in range(LOOKS):
        domain.lines_until('@@@ begin')
        domain.virsh('suspend')
        counters = domain.counters()
        if '@@@ end' not in domain.log()[domain.position:] and any(
                one['running'] and one['value'] for one in counters):
            return counters
        domain.virsh('resume')
    pytest.fail('no counter was running, whenever the guest was looked at')


def test_pmu_of_the_monitor(session):
    """Both of QEMU's monitors say what PMU there is."""
    domain = Domain(session, 'monitor', COUNTS_ONCE)
    assert domain.counters()
    assert 'CPU' in domain.virsh('qemu-monitor-command', '--hmp', 'info pmu')
    domain.virsh('destroy')


@pytest.mark.arch('ppc64')
def test_pmu_off_is_refused(session):
    """By libvirt: Power's PMU is always enabled."""
    with pytest.raises(AssertionError, match='PMU is always enabled'):
        Domain(session, 'off', COUNTS_ONCE, pmu="<pmu state='off'/>")


@pytest.mark.arch('x86_64')
@pytest.mark.parametrize('name, pmu', [
    pytest.param('off', "<pmu state='off'/>", id='off'),
    pytest.param('unnamed', '', id='unnamed', marks=pytest.mark.more)])
def test_pmu_off(session, name, pmu):
    """Without a PMU, perf finds none."""
    domain = Domain(session, name, COUNTS_ONCE, pmu=pmu)
    assert counts_in(domain.lines_until('@@@ end')) == {
        'instructions:u': ['<not supported>']}
    assert 'pmu' not in domain.monitor('query-pmu')[0]
    domain.virsh('destroy')


MODELS = {
    'host-model': "<cpu mode='host-model'/>",
    'maximum': "<cpu mode='maximum'/>",
    'default': '<cpu/>',
    # QEMU warns of what TCG lacks.
    'lacking': "<cpu mode='custom' match='exact' check='none'>"
               '<model>Skylake-Client</model></cpu>',
}


@pytest.mark.arch('x86_64')
@pytest.mark.parametrize('name', MODELS)
def test_models(session, name):
    """Other models, and none, have the PMU of their vendor."""
    domain = Domain(session, name, COUNTS_ONCE, cpu=MODELS[name])
    assert domain.counters()
    domain.virsh('destroy')


@pytest.mark.arch('x86_64')
def test_vcpu_added(session):
    """A CPU that comes later has the PMU, too.

    Its guest does not use it: where Linux 6.12 knows no hypervisor, as with
    TCG, it takes no CPUs that come later.
    """
    domain = Domain(session, 'added', COUNTS_ONCE, vcpus=2)
    domain.virsh('setvcpus', '2', '--live')
    first, second = domain.monitor('query-pmu')
    assert held(second['pmu']['counters'])[0].keys() \
        == held(first['pmu']['counters'])[0].keys()
    domain.virsh('destroy')
