# SPDX-License-Identifier: GPL-2.0-or-later
#
# What our tests need of Power's boards and devices, which is little: with
# --without-default-devices, nothing else is compiled.

CONFIG_PSERIES=y
CONFIG_POWERNV=y

# POWERNV's devices need these, but do not select them.
CONFIG_ACPI=y
CONFIG_I2C=y
