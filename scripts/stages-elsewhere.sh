# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Stages of scripts/check, which sources this, with QEMUs for other machines,
# and with QEMUs that are built in another way.

# The longest that a boot takes where QEMU is emulated itself, in seconds.
BOOT_SECONDS=1800

# both_suites DIR MODE...: the guests on the bare machine
both_suites()
{
    local status=0 arch modes=("${@:2}")

    for arch in x86_64 ppc64; do
        ARCH=$arch QEMU=$1/qemu-system-$arch "$ROOT/tests/guest/bare/run" \
            -t "$BOOT_SECONDS" "${modes[@]/#/-m}" || status=1
    done
    return $status
}

# prepare_host HOST TARGET...: QEMU, and this machine's programs to run it
prepare_host()
{
    local target

    describe_host "$1"
    ARCH=ppc64 "$ROOT/scripts/install-packages" "gcc-$TRIPLET" \
        qemu-user-static
    "$ROOT/scripts/build-qemu" --host "$@" || return
    for target in "${@:2}"; do
        make_runner "$BUILD/qemu-$1/$target" > /dev/null
    done
}

# units_of HOST: the model's tests there
units_of()
{
    describe_host "$1"
    fetch_libraries
    cross_file > "$BUILD/unit-$1.cross"
    unit_tests "$BUILD/unit-$1" --cross-file "$BUILD/unit-$1.cross"
}

# on_host HOST MODE...: all that needs no Linux, with a QEMU for that machine
on_host()
{
    local status=0 here=$BUILD/qemu-$1/here

    prepare_host "$1" qemu-system-x86_64 qemu-system-ppc64 || return
    # A program of this machine drives it.
    "$ROOT/scripts/build-qemu" tests/qtest/vpmu-test || return
    units_of "$1" || status=1
    registers "$here/qemu-system-x86_64" || status=1
    registers "$here/qemu-system-ppc64" || status=1
    both_suites "$here" "${@:2}" || status=1
    return $status
}

# on_small_host HOST: QEMU has guests of 32 bits there, which are x86's
on_small_host()
{
    local status=0

    prepare_host "$1" qemu-system-i386 || return
    units_of "$1" || status=1
    QEMU=$BUILD/qemu-$1/here/qemu-system-i386 \
        "$ROOT/tests/guest/bare/i386/run" || status=1
    return $status
}

stage_host-arm64() { on_host arm64 multi single icount; }
stage_host-ppc64el() { on_host ppc64el-tcg multi single icount; }
stage_host-s390x() { on_host s390x multi single icount; }
stage_host-armhf() { on_small_host armhf; }
stage_host-i386() { on_small_host i386; }

# built VARIANT TARGET...: a line for it
built()
{
    if "$ROOT/scripts/build-qemu" --variant "$@"; then
        echo "ok build/$1"
    else
        echo "not ok build/$1"
        return 1
    fi
}

# starts NAME QEMU OPTION...: whether there is a machine then, and an end when
# QEMU is told
starts()
{
    local said status=0

    said=$(echo quit | "${@:2}" -S -nodefaults -display none -monitor stdio \
           2>&1 > /dev/null) || status=$?
    said=$(grep -iv 'warning:' <<< "$said") || true
    if [ $status -eq 0 ] && [ -z "$said" ]; then
        echo "ok start/$1"
    else
        echo "not ok start/$1 # status $status: ${said##*$'\n'}"
    fi
}

# x86_starts, power_starts VARIANT ACCEL: a vCPU has its PMU without a board,
# too, where QEMU has no APIC to give to it.
x86_starts()
{
    starts "$1/x86" "$BUILD/qemu-$1/qemu-system-x86_64" -M none \
        -cpu Skylake-Client-v1,pmu=on,-apic,apic-id=0 -accel "$2"
}

power_starts()
{
    starts "$1/Power" "$BUILD/qemu-$1/qemu-system-ppc64" -M none \
        -cpu power9 -accel "$2"
}

# user_programs QEMU COMPILER DIR NAME...: programs of the Linux guests, which
# end with 0
user_programs()
{
    local name program

    mkdir -p "$BUILD/tests/user"
    for name in "${@:4}"; do
        program=$BUILD/tests/user/$name
        if "$2" -static -nostdlib -Wl,--no-warn-rwx-segments -o "$program" \
               "$ROOT/tests/guest/linux/$3/$name.S" &&
           "$1" "$program" > /dev/null; then
            echo "ok user/${1##*/}/$name"
        else
            echo "not ok user/${1##*/}/$name"
        fi
    done
}

# Warnings about our pages; what QEMU's own have to say is no matter of ours.
documents()
{
    local log=$BUILD/logs/documents.log findings

    # Sphinx says nothing of pages that it has read before.
    rm -rf "$BUILD"/qemu-least/docs/{docs.stamp,manual.p}
    "$ROOT/scripts/build-qemu" --variant least docs/docs.stamp \
        > "$log" 2>&1 || { tail -n 20 "$log"; return 1; }
    findings=$(grep_any -E '(WARNING|ERROR|warning|error):' "$log" |
               grep_any -E 'vpmu|hw/pmu|qapi/pmu') || true
    if [ -z "$findings" ]; then
        echo "ok documents"
    else
        echo "not ok documents"
        echo "$findings"
    fi
}

stage_build-no-tcg()
{
    built no-tcg qemu-system-x86_64 || return
    x86_starts no-tcg qtest
}

stage_build-least()
{
    local dir=$BUILD/qemu-least

    "$ROOT/scripts/install-packages" python3-sphinx python3-sphinx-rtd-theme \
        gcc-powerpc64le-linux-gnu
    built least qemu-system-x86_64 qemu-system-ppc64 qemu-system-ppc \
        qemu-system-m68k qemu-x86_64 qemu-ppc64le || return
    x86_starts least tcg
    power_starts least tcg
    starts least/ppc "$dir/qemu-system-ppc" -M none -cpu g4 -accel tcg
    starts least/m68k "$dir/qemu-system-m68k" -M none -cpu m68040 -accel tcg
    user_programs "$dir/qemu-x86_64" gcc programs \
        mixed faults fork signals smc syscalls threads
    user_programs "$dir/qemu-ppc64le" powerpc64le-linux-gnu-gcc \
        programs-ppc64 mixed faults memory syscalls traps
    documents
}

stage_build-interpreter()
{
    local dir=$BUILD/qemu-interpreter status=0

    ARCH=ppc64 "$ROOT/scripts/install-packages"
    built interpreter qemu-system-x86_64 qemu-system-ppc64 \
        qemu-system-i386 || return
    both_suites "$dir" multi || status=1
    QEMU=$dir/qemu-system-i386 "$ROOT/tests/guest/bare/i386/run" || status=1
    return $status
}

# Its tests are those of "make check-sanitized"; here it is the one by Clang.
stage_build-sanitized()
{
    built sanitized qemu-system-x86_64 qemu-system-ppc64 || return
    x86_starts sanitized tcg
    power_starts sanitized tcg
}
