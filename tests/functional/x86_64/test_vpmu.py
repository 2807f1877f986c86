#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs of strangers that count on x86's virtual PMU."""

from qemu_test import Asset, skipIfMissingCommands
from vpmu import DEBIAN, VirtualPMUTest

# rr runs a program again from its counts of conditional branches: a single one
# too few or too many, and it stops.
RECORD_AND_REPLAY = '''
rr record -o /tmp/trace awk 'BEGIN { while (i < 10000) s += i++; print s }'
rr replay -a /tmp/trace
'''


@skipIfMissingCommands('ar', 'cpio')
class X86VirtualPMU(VirtualPMUTest):

    TRIPLET = 'x86_64-linux-gnu'
    LINKER = 'ld-linux-x86-64.so.2'
    CONSOLE = 'ttyS0'
    # Linux panics where it misses ticks, as those of a busy host may be.
    APPEND = 'no_timer_check'
    KERNEL = 'boot/vmlinuz-6.1.0-50-cloud-amd64'
    FILES = {
        **VirtualPMUTest.FILES,
        'LIBC': [*VirtualPMUTest.FILES['LIBC'], 'lib/{triplet}/libm.so.6'],
        'RR': ['usr/bin/rr', 'usr/lib/rr/librrpage.so',
               'usr/lib/rr/librrpreload.so', 'usr/lib/rr/rr_exec_stub'],
        'CAPNP': ['usr/lib/{triplet}/libcapnp-0.9.2.so',
                  'usr/lib/{triplet}/libkj-0.9.2.so'],
        'GCC': ['lib/{triplet}/libgcc_s.so.1'],
        'CPP': ['usr/lib/{triplet}/libstdc++.so.6',
                'usr/lib/{triplet}/libstdc++.so.6.0.30'],
        'ZLIB': ['lib/{triplet}/libz.so.1', 'lib/{triplet}/libz.so.1.2.13'],
    }

    ASSET_KERNEL = Asset(
        DEBIAN + 'l/linux-signed-amd64/'
        'linux-image-6.1.0-50-cloud-amd64_6.1.176-1_amd64.deb',
        'efe19f605b6f54a8352e68d85a629abb2d30b72a085faef603a9152590baa791')
    ASSET_LIBC = Asset(
        DEBIAN + 'g/glibc/libc6_2.36-9+deb12u14_amd64.deb',
        'ba4f88f73dbc3ae9055f3c20f4523bfdbaf1ad13ff95e258924f77d20b4fbedf')
    ASSET_BUSYBOX = Asset(
        DEBIAN + 'b/busybox/busybox-static_1.35.0-4+deb12u1+b1_amd64.deb',
        '3d3fdbe91d4660c873e14b092c213fe81c1da6362daa236eb25d0171eb108744')
    ASSET_PAPI_TOOLS = Asset(
        DEBIAN + 'p/papi/papi-tools_7.0.0-2_amd64.deb',
        '704abecab42efc4d2b75ff720575a7e4d3d2f4a3af596c7b1dd5bfc35c92919c')
    ASSET_PAPI = Asset(
        DEBIAN + 'p/papi/libpapi7.0_7.0.0-2_amd64.deb',
        '48259ecde9a4817e2db2cc5d11aed01bf249999077a76341924784f530e18e32')
    ASSET_PFM = Asset(
        DEBIAN + 'libp/libpfm4/libpfm4_4.13.0-1_amd64.deb',
        '739c1255e9f39f6b094780ed02665eeb58abe5cfa7a156d83dfac45c34e8fe87')
    ASSET_RR = Asset(
        DEBIAN + 'r/rr/rr_5.6.0-3+b1_amd64.deb',
        '574cd19c8569f0ad175073d26aa3ffb90793ccd818ea01a1c2ccf79c50beddae')
    ASSET_CAPNP = Asset(
        DEBIAN + 'c/capnproto/libcapnp-0.9.2_0.9.2-2_amd64.deb',
        '45ce95f7c99ab1e90aefb79a71d75809ce8f758f64e4eba5e3e2ce84e743efff')
    ASSET_GCC = Asset(
        DEBIAN + 'g/gcc-12/libgcc-s1_12.2.0-14+deb12u1_amd64.deb',
        '3016e62cb4b7cd8038822870601f5ed131befe942774d0f745622cc77d8a88f7')
    ASSET_CPP = Asset(
        DEBIAN + 'g/gcc-12/libstdc++6_12.2.0-14+deb12u1_amd64.deb',
        '5cd3171216d4ab0fc911cfe9c35509bf2dd8f47761c43b7f6a4296701551a24d')
    ASSET_ZLIB = Asset(
        DEBIAN + 'z/zlib/zlib1g_1.2.13.dfsg-1_amd64.deb',
        'd7dd1d1411fedf27f5e27650a6eff20ef294077b568f4c8c5e51466dc7c08ce4')

    def test_counts_of_intel(self):
        self.check_counts('Skylake-Client,pmu=on',
                          'PAPI_TOT_INS PAPI_BR_INS PAPI_BR_CN')

    def test_counts_of_amd(self):
        self.check_counts('EPYC-Milan,pmu=on',
                          'PAPI_TOT_INS PAPI_TOT_CYC PAPI_BR_INS')

    def test_no_pmu(self):
        self.check_no_counts('Skylake-Client,pmu=off')

    def test_rr(self):
        self.run_job('Skylake-Client,pmu=on', RECORD_AND_REPLAY, '-smp', '2')


if __name__ == '__main__':
    VirtualPMUTest.main()
