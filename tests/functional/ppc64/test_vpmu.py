#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs of strangers that count on Power's virtual PMU."""

from qemu_test import Asset, skipIfMissingCommands
from vpmu import DEBIAN, VirtualPMUTest


@skipIfMissingCommands('ar', 'cpio')
class PowerVirtualPMU(VirtualPMUTest):

    TRIPLET = 'powerpc64le-linux-gnu'
    LINKER = 'ld64.so.2'
    CONSOLE = 'hvc0'
    KERNEL = 'boot/vmlinux-6.1.0-50-powerpc64le'

    ASSET_KERNEL = Asset(
        DEBIAN + 'l/linux/'
        'linux-image-6.1.0-50-powerpc64le_6.1.176-1_ppc64el.deb',
        '0513cb05cef43064db6e62e5b71f6a316cf4854ea4fb873263e8e50a1254999e')
    ASSET_LIBC = Asset(
        DEBIAN + 'g/glibc/libc6_2.36-9+deb12u14_ppc64el.deb',
        'b3fbe86d5b7cf02d8653b34a0753c6b5bc89dd962ef843c355cdd154ea87baff')
    ASSET_BUSYBOX = Asset(
        DEBIAN + 'b/busybox/busybox-static_1.35.0-4+deb12u1+b1_ppc64el.deb',
        '932deb885b840a8cf529708c03a1e87833dc64e66a70585721f8a356d9fe995b')
    ASSET_PAPI_TOOLS = Asset(
        DEBIAN + 'p/papi/papi-tools_7.0.0-2_ppc64el.deb',
        'a153f17f628a2539f04020197a82211c6f94894ac9e4e3c1b1413058a5327cb0')
    ASSET_PAPI = Asset(
        DEBIAN + 'p/papi/libpapi7.0_7.0.0-2_ppc64el.deb',
        '48c62cf86cdff2b58f67b9a5aa8b9e2280779bcc9a63fce84766bb6cc6083797')
    ASSET_PFM = Asset(
        DEBIAN + 'libp/libpfm4/libpfm4_4.13.0-1_ppc64el.deb',
        '98d714f87bc3aa36c3303d9dfcdf4b4560a9a47691cefd4902d42930abc15420')

    def test_counts_of_power9(self):
        self.check_counts('POWER9', 'PAPI_TOT_INS PAPI_TOT_CYC')

    def test_counts_of_power8(self):
        self.check_counts('POWER8', 'PAPI_TOT_INS PAPI_TOT_CYC')


if __name__ == '__main__':
    VirtualPMUTest.main()
