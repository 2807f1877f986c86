# SPDX-License-Identifier: GPL-2.0-or-later
"""Small second guests, rom.S, on this host and on others, other-host.c: what
QEMU says when it starts, and what its monitor and its trace say afterwards.
"""

# The first guest's shell has these functions.
FUNCTIONS = """
# QEMU has all that one of these guests needs
small="qemu-system-x86_64 -L /usr/share/qemu -nodefaults -display none"
small="$small -machine pc -m 32 -global apic-common.vapic=off"
commands='info registers\\nquit\\n'
# feed: the commands, once the trace says what is waited for, if anything
feed() {
    [ -z "$wanted" ] || for try in $(seq 100); do
        ! grep -qs "$wanted" /tmp/trace || break
        sleep 0.2
    done
    printf "$commands"
}
# say NAME OPTION...: what QEMU says of these options, and how it ends; its
# monitor, if it has one here, is told the commands
say() {
    echo "@ l1 said $1"
    shift
    rm -f /tmp/trace
    { feed | env $other $small -bios /ending.bin \\
          -device isa-debug-exit,iobase=0xf4,iosize=0x4 "$@" 2>&1
      echo "status $?"
    } | sed 's/^/@ l2 /'
}
# host HOST COMMAND...: on another host, if that is not empty
host() {
    other=
    [ -z "$1" ] || other="LD_PRELOAD=/other-host.so OTHER_HOST=$1"
    shift
    "$@"
    other=
}
# watch NAME ROM PROPERTIES: a second guest with the host's accounts, and a
# monitor that says all in NAME.said
watch() {
    mkfifo /tmp/$1.qmp
    env $other $small -bios /$2.bin \\
        -chardev file,id=qmp,path=/tmp/$1.said,input-path=/tmp/$1.qmp \\
        -mon qmp,mode=control \\
        -accel kvm -cpu host,$3 -serial file:/tmp/$1.out -D /tmp/$1.trace \\
        -trace 'pmu_host_*' -trace 'x86_vpmu_kvm_*' \\
        < /dev/null 2> /tmp/$1.errors 9<> /tmp/$1.qmp &
    eval "$1=$!"
    touch /tmp/$1.out /tmp/$1.trace /tmp/$1.said
    said $1 QMP > /dev/null
    tell $1 qmp_capabilities
}
# tell NAME COMMAND [ARGUMENTS]: to its monitor
tell() {
    echo "{\\"execute\\": \\"$2\\", \\"arguments\\": ${3:-{\\}}}" \\
        1<> /tmp/$1.qmp
}
# has_ended PROCESS: it may be a zombie, as the shell does not look for its
# children while it waits for a command's output.
has_ended() { ! grep -qs '^State:.[^Z]' /proc/$1/status; }
# until_in FILE NAME PATTERN [COUNT]: so many lines are there, or the guest is
# no more, or two minutes have passed
until_in() {
    eval "process=\\$$2"
    for try in $(seq 120); do
        [ "$(grep -c "$3" $1)" -lt ${4:-1} ] || break
        ! has_ended $process || break
        sleep 1
    done
}
# said NAME PATTERN: what it has said of that, as soon as it has
said() {
    until_in /tmp/$1.said $1 "$2"
    grep -m 1 "$2" /tmp/$1.said
}
# lines NAME PATTERN: in its trace
lines() { grep -c "$2" /tmp/$1.trace; }
# watched NAME PATTERN COUNT: until its trace has so many
watched() { until_in /tmp/$1.trace "$1" "$2" $3; }
# ended NAME...: these guests
ended() {
    for name; do
        eval "process=\\$$name"
        kill $process
        wait $process
    done
}
"""


def on(host, command):
    """A command of the shell's, on another host if that has a name."""
    return f"host '{host or ''}' {command}"
