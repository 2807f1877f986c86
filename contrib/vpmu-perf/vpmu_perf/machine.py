# SPDX-License-Identifier: GPL-2.0-or-later
"""The machine that QEMU shows, and what it needs."""

import os
import shutil
import struct

from .errors import Failure, say
from .perf_command import takes_memory

# How many directories a guest may write, one of which is for perf's output.
EXPORTS = 4
PORTS = ('control', 'stdin', 'stdout', 'stderr')
# For each architecture: the machine, its CPU (without features that TCG
# lacks, and with as many counters as it may have), the addition to a CPU that
# the user names, the kernel's console, the machine's number in ELF headers, and
# the addition to a CPU with --seed: what hands out random numbers.
MACHINES = {
    'x86_64': ('q35', 'Skylake-Client-v1,-pcid,-tsc-deadline,-hle,-rtm,'
                      '-invpcid,-xsavec,pmu-gp-counters=8', ',pmu=on',
               'ttyS0', (3, 62), ',-rdrand,-rdseed'),
    'ppc64': ('pseries,x-vof=on,cap-cfpc=broken,cap-ibs=broken,'
              'cap-ccf-assist=off', 'POWER9', '', 'hvc0', (21,), ''),
}


def elf_machine(path):
    """The number of an ELF file's machine; None if it is no such file."""
    try:
        with open(path, 'rb') as f:
            head = f.read(20)
    except OSError:
        return None
    if len(head) < 20 or head[:4] != b'\x7fELF':
        return None
    return struct.unpack('<H' if head[5] == 1 else '>H', head[18:20])[0]


def hint_at_machine(program, arch):
    """Say so if a program is of another architecture than the guest's."""
    path = shutil.which(program)
    machine = elf_machine(path) if path else None
    if machine is None or machine in MACHINES[arch][4]:
        return
    for other, description in MACHINES.items():
        if machine in description[4]:
            say(f'{program} is a program for {other}: use --arch {other}')
            return
    say(f'{program} is built for an architecture that vpmu-perf does not '
        'support')


def ends_of(path):
    """How a file begins and ends: with the build id of a program, the checksum
    of a kernel or what is compressed.
    """
    with open(path, 'rb') as f:
        begin = f.read(4096)
        f.seek(-4096, os.SEEK_END)
        return begin + f.read()


class Installation:
    """Where QEMU, its firmware, and the guest are."""

    def __init__(self, script, arch):
        here = os.path.dirname(script)
        name = f'qemu-system-{arch}'
        if os.path.basename(here) == 'bin':
            prefix = os.path.dirname(here)
            share = os.path.join(prefix, 'share/vpmu-perf')
            self.qemu = os.path.join(prefix, 'bin', name)
            self.firmware = []
        else:
            root = os.path.dirname(os.path.dirname(here))
            build = os.environ.get('BUILD', os.path.join(root, 'build'))
            share = os.path.join(build, 'vpmu-perf')
            self.qemu = os.path.join(build, 'qemu', name)
            self.firmware = [os.path.join(build, 'firmware/usr/share', where)
                             for where in ('qemu', 'seabios')]
        self.kernel = os.path.join(share, arch, 'kernel')
        self.initrd = os.path.join(share, arch, 'initrd')
        self.sources = os.path.join(share, arch, 'sources')
        for path in (self.qemu, self.kernel, self.initrd):
            if not os.path.exists(path):
                raise Failure(f'{path} is missing; '
                              '"make vpmu-perf" or "make install" makes it')

    def identity(self):
        """What differs if anything is built anew."""
        words = []
        for path in (self.qemu, self.kernel, self.initrd, *self.firmware):
            about = os.stat(path)
            words += [path, about.st_size, about.st_mtime_ns]
            if not os.path.isdir(path):
                words.append(ends_of(path))
        return words


def cpu_of(args):
    """The CPU model, with its properties."""
    _, cpu, addition, *_ = MACHINES[args.arch]
    cpu = args.cpu or cpu
    if args.arch == 'x86_64' and not args.cpu and not args.run and \
            takes_memory(args.perf):
        cpu += ',pebs=on'
    if 'pmu=' not in cpu:
        cpu += addition
    return cpu + args.cpu_properties


def shared(place):
    """The memory of a guest that will be saved."""
    return f'mem-path={quote(os.path.join(place, "memory"))},share=on'


def private(place):
    """A view of saved memory, for a guest that goes on."""
    return f'mem-path={quote(os.path.join(place, "memory"))},share=off,' \
           'readonly=on,rom=off'


def machine_options(args, there, ram, is_new):
    """QEMU's options for the machine, when it is saved and when it goes on."""
    machine, _, _, console, _, seeded = MACHINES[args.arch]
    cpu = cpu_of(args) + ('' if args.seed is None else seeded)
    core = []
    if args.core:
        cpu += ',pmu-core=core0'
        core = ['-object', f'pmu-core,id=core0,preset={args.core}']
    words = [there.qemu]
    for where in there.firmware:
        words += ['-L', where]
    words += [
        '-nodefaults', '-no-user-config', '-display', 'none', '-no-reboot',
        *core, '-machine', machine + ',memory-backend=ram', '-cpu', cpu,
        '-smp', str(args.cpus), '-m', f'{args.memory >> 20}M',
        '-object', f'memory-backend-file,id=ram,size={args.memory},{ram}',
        # A program waits for its files: so the thread of its CPU fetches them.
        # A new guest keeps nothing that it has been told.
        '-device', 'virtio-files-pci,id=files,path=/,tag=vpmu-perf-root,'
        f'ioeventfd=off,cache={"off" if is_new else "on"}']
    # What programs do not ask for would only be translated.
    append = (f'console={console} quiet panic=-1 mitigations=off audit=0 '
              'nowatchdog noautogroup psi=0 init_on_alloc=0 lsm=landlock,yama '
              'cryptomgr.notests')
    if args.arch == 'x86_64':
        # On a busy host Linux may find that the timer does not work, and panic;
        # or that the TSC is not stable, and a program that asks for the time
        # would then need system calls, and other counts.
        # Linux would clear pages by "rep stosb", of which TCG stores each byte
        # alone.  Programs ask CPUID, which keeps these bits.
        append += ' no_timer_check tsc=reliable clearcpuid=erms,fsrm'
    if args.seed is not None:
        append += ' SEEDED=1'
    if is_new or args.arch == 'x86_64':
        # A pseries needs them no more.
        words += ['-kernel', there.kernel, '-initrd', there.initrd,
                  '-append', append]
    return words


def quote(text):
    """A value in one of QEMU's lists of options."""
    return text.replace(',', ',,')


def device_options(fds, paths):
    """The directories that may be written, and the ports; those without a file
    lead nowhere.
    """
    words = []
    for i in range(EXPORTS):
        path = paths[i] if i < len(paths) else None
        words += ['-fsdev', f'local,id=write{i},path={quote(path or "/")},'
                  'security_model=none,multidevs=remap,threads=off'
                  + ('' if path else ',readonly=on'),
                  '-device', f'virtio-9p-pci,fsdev=write{i},ioeventfd=off,'
                  f'mount_tag=vpmu-perf-write{i}']
    words += ['-device', 'virtio-serial-pci']
    for number, name in enumerate(PORTS):
        kind = f'socket,fd={fds[name]}' if name in fds else 'null'
        words += ['-chardev', f'{kind},id={name}', '-device',
                  f'virtserialport,chardev={name},nr={number + 1}']
    return words + ['-chardev', f'socket,id=monitor,fd={fds["monitor"]}',
                    '-mon', 'chardev=monitor,mode=control']
