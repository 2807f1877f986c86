# SPDX-License-Identifier: GPL-2.0-or-later
"""Linux guests that count, for tests of virtual PMUs.

They have Debian's kernel, busybox, and the tools of PAPI, a library that reads
counters through perf_event_open().
"""

import os
import shutil
import signal
import subprocess

from qemu_test import Asset, LinuxKernelTest

# A test takes a minute, on an idle machine.
SECONDS = 800

DEBIAN = 'http://deb.debian.org/debian/pool/main/'

# The guest's first process; where it ends, the kernel panics.
INIT = '''#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /tmp /sbin
/bin/busybox --install -s /sbin
export PATH=/sbin:/usr/bin:/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
ln -s lib/{triplet} /lib64
export LD_LIBRARY_PATH=/lib/{triplet}:/usr/lib/{triplet}
echo -1 > /proc/sys/kernel/perf_event_paranoid
# PAPI reads counters by itself where it may, again if it is interrupted, and
# counts that.
rdpmc=/sys/bus/event_source/devices/cpu/rdpmc
[ ! -e $rdpmc ] || echo 0 > $rdpmc
sh -e /job || exit 1
echo "The job passed"
poweroff -f
'''

# Two runs of the same program count the same, whatever else the guest does: it
# has as many programs that never sleep as it has CPUs.
COUNTS = '''
for cpu in $(seq $(nproc)); do
    while :; do :; done &
    busy="$busy $!"
done
count()
{{
    papi_command_line {events} | grep '^PAPI_.* :' | tee /dev/console
}}
count > /tmp/first
count > /tmp/second
kill $busy
[ $(grep -c ':.*[1-9]' /tmp/first) = $(echo {events} | wc -w) ]
cmp /tmp/first /tmp/second
'''

# Who asks for a PMU that is not there is told so, and gets no count.
NO_COUNTS = '''
papi_command_line PAPI_TOT_INS | tee /tmp/out
if grep '^PAPI_TOT_INS :' /tmp/out; then
    exit 1
fi
grep 'Failed adding' /tmp/out
'''


class VirtualPMUTest(LinuxKernelTest):
    """The classes of the architectures have the packages, as assets, and say
    which is the KERNEL in its package, what the dynamic LINKER and the CONSOLE
    are called, and where Debian has libraries: TRIPLET.
    """

    TRIPLET: str
    LINKER: str
    CONSOLE: str
    KERNEL: str
    ASSET_KERNEL: Asset

    # More words for the kernel
    APPEND = ''

    # What the guest gets of each package
    FILES = {
        'LIBC': ['lib/{triplet}/{linker}', 'lib/{triplet}/libc.so.6'],
        'BUSYBOX': ['bin/busybox'],
        'PAPI_TOOLS': ['usr/bin/papi_command_line'],
        'PAPI': ['usr/lib/{triplet}/libpapi.so.7.0',
                 'usr/lib/{triplet}/libpapi.so.7.0.0.0'],
        'PFM': ['usr/lib/{triplet}/libpfm.so.4',
                'usr/lib/{triplet}/libpfm.so.4.13.0'],
    }

    def setUp(self):
        super().setUp()
        # QEMU 10.0 reads the console of a guest that is gone without end.
        signal.signal(signal.SIGALRM, self._is_late)
        signal.alarm(SECONDS)

    def tearDown(self):
        signal.alarm(0)
        super().tearDown()

    def _is_late(self, *_):
        self.fail(f'the guest is gone, or takes longer than {SECONDS} s')

    def make_initrd(self, job):
        root = self.scratch_file('root')
        # A run that was interrupted leaves its own.
        shutil.rmtree(root, ignore_errors=True)
        os.mkdir(root)
        for name, members in self.FILES.items():
            for member in members:
                self.archive_extract(
                    getattr(self, f'ASSET_{name}'), sub_dir='root',
                    member=member.format(triplet=self.TRIPLET,
                                         linker=self.LINKER))
        for name, script in (('init', INIT.format(triplet=self.TRIPLET)),
                             ('job', job)):
            path = os.path.join(root, name)
            with open(path, 'w', encoding='ascii') as out:
                out.write(script)
            os.chmod(path, 0o755)
        initrd = self.scratch_file('initrd')
        with open(initrd, 'wb') as out:
            subprocess.run('find . | cpio -o -H newc', shell=True, check=True,
                           cwd=root, stdout=out, stderr=subprocess.DEVNULL)
        return initrd

    def run_job(self, cpu, job, *args):
        """Run a script in a guest; its commands must all end well."""
        self.vm.add_args('-accel', 'tcg,thread=multi', '-cpu', cpu, '-m', '1G',
                         '-no-reboot', '-append',
                         f'console={self.CONSOLE} quiet {self.APPEND}', *args)
        kernel = self.archive_extract(self.ASSET_KERNEL, member=self.KERNEL)
        self.launch_kernel(kernel, self.make_initrd(job))
        self.wait_for_console_pattern('The job passed')
        # It powers off; until then, tearDown() would say that QEMU has to quit.
        self.vm.wait(timeout=None)

    def check_counts(self, cpu, events):
        self.run_job(cpu, COUNTS.format(events=events), '-smp', '2')

    def check_no_counts(self, cpu):
        self.run_job(cpu, NO_COUNTS)
