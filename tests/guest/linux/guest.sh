# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=dash
#
# What the tests' scripts share in the guest

export PERF_PAGER=cat

# sampled_at RATE SHARE: at most so many samples a second, which take at most
# that share of the time, in percent; 0 is any.  In this order, as the rate is
# fixed while the limit of time is off.
sampled_at()
{
    echo 50 > /proc/sys/kernel/perf_cpu_time_max_percent
    echo "$1" > /proc/sys/kernel/perf_event_max_sample_rate
    echo "$2" > /proc/sys/kernel/perf_cpu_time_max_percent
}

# Once, before the first of them
guest_setup()
{
    # Sampling is not to be throttled, however short the period and however
    # slow the host.
    sampled_at 100000000 0
    # Linux patches its scheduler when the first task is counted, and again
    # after the last one.  With several CPUs, that takes longer than most of the
    # programs here: do not do it for each of them.
    if [ "$(nproc)" -gt 1 ]; then
        (perf stat -o /dev/null -e dummy sleep 1000000 &)
    fi
}

# Wait until the test outside says go().
wait_for_test()
{
    echo '@@@ ready'
    read -r _ <&3
}

# What the kernel has to complain of, which should be nothing.
complaints()
{
    dmesg | grep -E -e 'perfevents: |Broken (BIOS|PMU)|irq loop|PMU:? stuck' \
        -e 'unknown reason|unknown NMI|Dazed|hard LOCKUP|find PMC that' \
        -e 'unchecked MSR|general protection|\] (WARNING: CPU|BUG:|Oops:)' || :
}

# running PROGRAM TICKS: how many of it have run for so long, in 10 ms
running()
{
    local pid

    for pid in $(pidof "$1"); do
        awk -v ticks="$2" '$14 >= ticks' "/proc/$pid/stat"
    done 2> /dev/null | wc -l
}

# announce N PROGRAM [TICKS LINE]...: say a line as soon as so many of it are in
# their middle, and have run for so long; one line after the other.  Without
# any, "@@@ begin" when they have begun.
announce()
{
    local number=$1 program=$2

    shift 2
    [ $# -gt 0 ] || set -- 1 '@@@ begin'
    (
        while [ $# -gt 0 ]; do
            until [ "$(running "$program" "$1")" = "$number" ]; do
                sleep 0.1
            done
            echo "$2"
            shift 2
        done
    ) &
}

# count EVENTS PROGRAM...: count, and print perf's lines: number,,event,...
count()
{
    local events=$1

    shift
    ${COUNT:-perf stat} -x , -o /tmp/stat -e "$events" -- "$@" || return
    grep , /tmp/stat
}

# samples FIELDS [FILE]: what perf script prints of these fields, and of task
# switches, if perf record -T has written the file.  That may write a sample
# twice, with the same time: it reads twice where the ring ends, and what the
# kernel has added in between comes again.
samples()
{
    perf script -i "${2:-/tmp/data}" --show-switch-events --ns \
        -F "time,$1" | uniq | sed 's/[0-9]*\.[0-9]*: *//'
}

# perf_test NAME: run one of perf's own tests, and its parts.  By its number, as
# perf finds only parts by name.
perf_test()
{
    local number

    number=$(perf test list 2>&1 |
             awk -F ': +' -v name="$1" '$2 == name { print $1 + 0 }')
    [ -z "$number" ] || perf test -v "$number" 2>&1
}

# noise: keep the CPUs busy, until hush or the end of the script.
noise()
{
    local left

    left=$(nproc)
    while [ "$left" -gt 0 ]; do
        while :; do :; done &
        noises="$noises $!"
        left=$((left - 1))
    done
    trap hush EXIT
}

hush()
{
    # Several words.
    # shellcheck disable=SC2086
    kill $noises
    noises=
    trap - EXIT
}
