# SPDX-License-Identifier: GPL-2.0-or-later
#
# What our tests need of x86's boards and devices, which is little: with
# --without-default-devices, nothing else is compiled.

CONFIG_I440FX=y
CONFIG_Q35=y
CONFIG_ISA_DEBUG=y
