# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# What QEMU is tested with when it is built for sanitizers.  Sourced by check.

# The variant of QEMU (see build-qemu) that a stage needs, if any.
variant_of()
{
    case $1 in
    sanitized-*) echo sanitized ;;
    threads-*) echo threads ;;
    esac
}

# sanitizer_options REPORTS: reports go to files there.  That some memory is left
# when a program ends is no fault.  TSan hangs where it looks for deadlocks and a
# thread has 65 locks, as QEMU's has when it writes so many pages of code.
sanitizer_options()
{
    local lists=$ROOT/tests/sanitizers

    export ASAN_OPTIONS=detect_leaks=0:log_path=$1/report
    export UBSAN_OPTIONS=print_stacktrace=1:log_path=$1/report
    export TSAN_OPTIONS=exitcode=0:detect_deadlocks=0:log_path=$1/report
    UBSAN_OPTIONS+=:suppressions=$lists/undefined.supp
    TSAN_OPTIONS+=:suppressions=$lists/threads.supp
}

# name_reports REPORTS: each place of which there is a report is a failed test.
name_reports()
{
    local times what

    if ! grep_any -qs '^SUMMARY: ' "$1"/*; then
        echo "ok no report"
        return
    fi
    grep_any -hs '^SUMMARY: ' "$1"/* | sort | uniq -c |
    while read -r times what; do
        echo "not ok ${what#SUMMARY: } # $times times, in $1"
    done
}

# sanitized VARIANT ARCH COMMAND...: run tests with QEMU of this variant, which
# takes longer; they fail for what sanitizers report, too.
sanitized()
{
    local variant=$1 arch=$2 tests=${3%/run} reports status=0

    shift 2
    reports=$BUILD/logs/reports-$variant-${tests##*/}-$arch
    rm -rf "$reports"
    mkdir -p "$reports"
    (
        sanitizer_options "$reports"
        export ARCH=$arch QEMU=$BUILD/qemu-$variant/qemu-system-$arch
        export SLOWNESS=10
        "$@"
    ) || status=$?
    name_reports "$reports"
    return $status
}
