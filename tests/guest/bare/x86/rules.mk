# SPDX-License-Identifier: GPL-2.0-or-later
#
# x86: a ROM that copies the kernel to where it is linked

assembly := boot.S entry.S
image    := rom.bin

# No SSE of the kernel's own accord, as what is counted uses it.
CFLAGS  += -m64 -mno-red-zone -mgeneral-regs-only -fcf-protection=none
ASFLAGS := -m64
LDFLAGS += -m64 -Wl,-z,max-page-size=4096

# Programs may use SSE; the kernel and its handlers may not.
$(PROGRAMS)/programs.o: CFLAGS := $(filter-out -mgeneral-regs-only,$(CFLAGS)) \
                            -fno-math-errno

$(PROGRAMS)/rom.bin: $(PROGRAMS)/rom.o
	$(CROSS)objcopy -O binary -j .text $< $@

# Linked to end at 4 GiB; relocatable input, so that one link does.
$(PROGRAMS)/rom.o: $(here)x86/rom.S $(PROGRAMS)/kernel.bin $(here)x86/layout.h
	$(CROSS)gcc $(filter-out -m64,$(LDFLAGS)) -m32 -Wa,-I$(PROGRAMS) \
	    -Wl,-Ttext=0xfffc0000,-e,0xfffffff0 -o $@ $<
