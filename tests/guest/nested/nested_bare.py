# SPDX-License-Identifier: GPL-2.0-or-later
"""A second guest of x86 without Linux: suite "state" or "nopmu" of
tests/guest/bare on the bare machine, which reads the PMU as a guest does, and
counts.  To compare, it is run with Debian's QEMU, too.
"""

OURS = 'qemu-system-x86_64'
STOCK = '/stock/qemu'
KVM = '-accel kvm -cpu host'
TCG = '-accel tcg -cpu EPYC-Genoa,pmu=on'

FUNCTIONS = """
# lines: add what is read, to the second guest's
lines() {
    while IFS= read -r line; do echo "@ l2 $line"; done >> /tmp/l2.out
}
# Of a type that ours and stock both have
machine=pc-i440fx-10.0
# bare QEMU OPTION...: run the program
bare() {
    timeout 600 "$@" -L /usr/share/qemu -nodefaults -display none \
        -machine $machine -m 32 -bios /rom.bin \
        -global apic-common.vapic=off -serial stdio \
        -device isa-debug-exit,iobase=0xf4,iosize=0x4 < /dev/null 2>&1 | lines
}
# leave FILE QEMU OPTION...: until it is to be migrated; migrate it there
leave() {
    file=$1
    shift
    bare "$@" $monitor 9<> /tmp/monitor & l2=$!
    until_l2 'ready to leave'
    save_l2 $file
}
"""


def fw_cfg(**options):
    return ' '.join(f'-fw_cfg name=opt/vpmu/{name},string={value}'
                    for name, value in options.items())


# What the program of suite "state" does when it is to be migrated, and has
# been.
USED, UNUSED, ARRIVED = 1, 2, 3


def program(task):
    """The case of that suite that is about that, and not the first."""
    return fw_cfg(suite='state', skip=1, migration=task)


def arrival(state):
    return f'{program(ARRIVED)} -incoming file:/tmp/{state}'


# The registers that it fills: PerfMonV2's, the six counters and their
# selectors, and the first four by their old names.
REGISTERS = {f'{number:x}' for number in (
    0xc0000300, 0xc0000301, *range(0xc0010200, 0xc001020c),
    *range(0xc0010000, 0xc0010008))}


def values(lines, event):
    """Per register, its value before and after the event."""
    return {words[2]: words[3:] for words in lines if words[:2] == ['~', event]}


def require_passed(lines, case):
    """A case of the program."""
    assert ['ok', case] in lines, lines[-3:]
