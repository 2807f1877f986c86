# SPDX-License-Identifier: GPL-2.0-or-later
#
# What the tests' scripts share in the guest

export PERF_PAGER=cat

# Once, before the first of them: sampling is not to be throttled, however
# short the period and however slow the host.  In this order, as the rate is
# fixed once the limit of time is off.
guest_setup()
{
    echo 100000000 > /proc/sys/kernel/perf_event_max_sample_rate
    echo 0 > /proc/sys/kernel/perf_cpu_time_max_percent
}

# count EVENTS PROGRAM...: count, and print perf's lines: number,,event,...
count()
{
    local events=$1

    shift
    ${COUNT:-perf stat} -x , -o /tmp/stat -e "$events" -- "$@" || return
    grep , /tmp/stat
}

# noise: keep the CPUs busy, until hush or the end of the script.
noise()
{
    local cpu

    for cpu in $(grep ^processor /proc/cpuinfo); do
        while :; do :; done &
        noises="$noises $!"
    done
    trap hush EXIT
}

hush()
{
    kill $noises
    noises=
    trap - EXIT
}
