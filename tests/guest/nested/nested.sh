# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=dash
#
# What the scripts for the first guest (L1) share.  The second guest (L2)
# appends to /tmp/l2.out, and $l2 is its process; its QEMU takes commands if it
# is given the options in $monitor, and has /tmp/monitor open for itself: a FIFO
# has an end as soon as nobody is left who may write.  What it says goes to a
# file, as nobody reads it who would empty a pipe.

PATH=$PATH:/l2/files/usr/bin
monitor='-mon monitor -chardev file,id=monitor,path=/tmp/monitor.log'
monitor=$monitor,input-path=/tmp/monitor

# nested_setup: once, before the first script
nested_setup()
{
    sh /modules/load
    # With those of the modules, see guest-init
    umount /proc/kallsyms
    cat /proc/kallsyms > /symbols
    mount --bind /symbols /proc/kallsyms
    touch /tmp/l2.out /tmp/l2.phases
    mkfifo /tmp/monitor
}

# phase NAME [VALUE]: what the second guest prints from now on belongs to that;
# it may have stopped in the middle of a line
phase()
{
    { cat /tmp/l2.out; printf '\n@ l1 %s\n' "$*"; } >> /tmp/l2.phases
    : > /tmp/l2.out
}

# until_l2 WHAT: until it has printed that in this phase, or is no more
until_l2()
{
    until grep -q "$1" /tmp/l2.out || ! kill -0 "$l2" 2> /dev/null; do
        sleep 1
    done
}

# tell_l2 COMMAND...: to its QEMU, which may be no more
tell_l2()
{
    for command; do echo "$command"; done 1<> /tmp/monitor
}

# ask_l2 COMMAND ANSWER: until its QEMU has said that
ask_l2()
{
    until grep -qs "$2" /tmp/monitor.log || ! kill -0 "$l2" 2> /dev/null; do
        tell_l2 "$1"
        sleep 1
    done
}

# save_l2 FILE [on]: migrate it to a file, and end its QEMU; with "on", as file
# that is loaded faster
save_l2()
{
    tell_l2 "migrate_set_capability mapped-ram ${2:-off}" "migrate -d file:$1"
    ask_l2 'info migrate' 'tatus:[[:space:]]*completed'
    tell_l2 quit
    wait "$l2"
    mv /tmp/monitor.log /tmp/monitor.log.old
}

# arrive_l2: wait until it has been loaded as it was saved, stopped; let it run
arrive_l2()
{
    ask_l2 'info status' 'status: paused[^ ]*$'
    tell_l2 cont
}

# save_booted_l2: so that others go on from there, see l2
save_booted_l2()
{
    # Several words.
    # shellcheck disable=SC2086
    L2_CONSOLE=/tmp/console l2 --save -cpu host,pmu=on $monitor \
        > /tmp/l2.log 2>&1 9<> /tmp/monitor & l2=$!
    until grep -qs '<<< ready >>>' /tmp/console ||
            ! kill -0 $l2 2> /dev/null; do
        sleep 1
    done
    save_l2 /tmp/l2.saved on
    rm /tmp/console /tmp/monitor.log.old
    [ -s /tmp/l2.saved ] || { cat /tmp/l2.log; return 1; }
}

# reload_kvm PARAMETER: with it
reload_kvm()
{
    rmmod kvm-amd kvm
    sed "s/kvm.ko/& $1/" /modules/load > /tmp/load
    sh /tmp/load
}
