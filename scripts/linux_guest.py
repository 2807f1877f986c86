# SPDX-License-Identifier: GPL-2.0-or-later
"""The Linux guest that scripts/build-guest makes: how QEMU starts it.

The guest runs the job in its initramfs.  With JOBS among the kernel's
parameters it takes jobs from the console instead: it prints READY, and reads
a line with the job's length in bytes, and the job; an empty line ends it.
Either way it prints BEGIN before a job, and END with its status after it.
"""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get('BUILD', ROOT / 'build'))

JOBS = 'vpmu_jobs=1'
READY = '<<< ready >>>'
BEGIN = '<<< job >>>'
END = re.compile(r'<<< exit (\d+) >>>')

# The machine, its CPU and its console.  What TCG lacks of them is left out by
# name, which avoids warnings; x-vof saves the time that Open Firmware takes.
DEFAULTS = {
    'x86_64': ('q35', 'Skylake-Client-v1,pmu=on,-pcid,-tsc-deadline,-hle,-rtm,'
                      '-invpcid,-xsavec', 'ttyS0'),
    'ppc64': ('pseries,x-vof=on,cap-cfpc=broken,cap-ibs=broken,'
              'cap-ccf-assist=off', 'POWER9', 'hvc0'),
}


def qemu_of(arch):
    """The QEMU that `make build` makes."""
    return BUILD / 'qemu' / f'qemu-system-{arch}'


def write_initramfs(guest, initrd, adds, job=None):
    """The initramfs of a guest, with more files: pairs of source and path.

    The file is the same whenever the same is added: a replay has to find in
    memory what its recording did.
    """
    with tempfile.TemporaryDirectory() as tree:
        for source, path in adds:
            target = pathlib.Path(tree, str(path).lstrip('/'))
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
        if job is not None:
            pathlib.Path(tree, 'job').write_text(job)
        paths = [pathlib.Path(tree), *sorted(pathlib.Path(tree).rglob('*'))]
        for path in paths:
            os.utime(path, (0, 0))
        names = '\n'.join(str(path.relative_to(tree)) for path in paths)
        archive = subprocess.run(
            ['cpio', '--quiet', '--reproducible', '-o', '-H', 'newc',
             '-R', '0:0'], cwd=tree, input=names.encode(), check=True,
            capture_output=True).stdout
    with open(initrd, 'wb') as f:
        f.write((guest / 'initrd').read_bytes())
        f.write(b'\0' * (-f.tell() % 4))
        f.write(archive)


def command(arch, kernel, initrd, *, qemu=None, machine=None, cpu=None,
            accel='tcg', smp=1, memory='1G', append='', console='stdio'):
    """QEMU's words for a machine that boots the guest.

    Without @machine it is ours, with @cpu or our CPU; @console is a chardev,
    without its id.
    """
    ours, our_cpu, tty = DEFAULTS[arch]
    if not machine:
        machine, cpu = ours, cpu or our_cpu
    parameters = [f'console={tty}', 'quiet', 'panic=-1', append]
    if arch == 'x86_64':
        # Linux panics where it misses ticks, as those of a busy host may be.
        parameters.append('no_timer_check')
    words = [str(qemu or qemu_of(arch))]
    for where in ('qemu', 'seabios'):
        words += ['-L', str(BUILD / 'firmware/usr/share' / where)]
    if cpu:
        words += ['-cpu', cpu]
    if machine.startswith('powernv'):
        # An empty flash: QEMU warns of having none.
        words += ['-drive', 'if=mtd,driver=null-co,read-zeroes=on,size=64M']
    return words + [
        '-machine', machine, '-accel', accel, '-smp', str(smp), '-m', memory,
        '-display', 'none', '-vga', 'none', '-nic', 'none', '-no-reboot',
        '-monitor', 'none', '-chardev', f'{console},id=console',
        '-serial', 'chardev:console', '-kernel', str(kernel),
        '-initrd', str(initrd), '-append', ' '.join(filter(None, parameters))]
