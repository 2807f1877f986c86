# SPDX-License-Identifier: GPL-2.0-or-later

include ../x86_64-softmmu/vpmu.mak
