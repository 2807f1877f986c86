# SPDX-License-Identifier: GPL-2.0-or-later
#
# Power: an image in the place of skiboot

CROSS    ?= powerpc64le-linux-gnu-
assembly := entry.S domain.S
image    := kernel.bin

# Big-endian, as the machine starts; general registers only, as facilities are
# unavailable where no test makes them available.
ASFLAGS := -m64 -mbig-endian -mabi=elfv2 -mcpu=power8 -Wa,-mregnames \
           -Wa,-mpower10
CFLAGS  += $(ASFLAGS) -msoft-float -mno-altivec -mno-vsx -mcmodel=medium
LDFLAGS += -m64 -mbig-endian -Wl,-z,max-page-size=65536
