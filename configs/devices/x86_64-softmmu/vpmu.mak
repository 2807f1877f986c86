# SPDX-License-Identifier: GPL-2.0-or-later
#
# What our tests need of x86's boards and devices, which is little: with
# --without-default-devices, nothing else is compiled.

CONFIG_I440FX=y
CONFIG_Q35=y
CONFIG_ISA_DEBUG=y

# Its registers change when they are read.
CONFIG_E1000_PCI=y

# Tables of ACPI call a function of CXL's, of which QEMU 10.2 has no stub; and CXL
# does not select what it needs.
CONFIG_PXB=y
CONFIG_PCIE_PORT=y
CONFIG_CXL=y
CONFIG_CXL_MEM_DEVICE=y
