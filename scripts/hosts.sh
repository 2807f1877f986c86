# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Machines of other architectures, on which QEMU is to run: how to compile for
# them, and how to run that here, by Debian's QEMU in user mode.  Sourced by
# bash, after lib.sh.

# describe_host HOST: set what an architecture is called by Debian, by the
# compiler, by meson, and by QEMU; and where its libraries are.  HOST is Debian's
# name, with -tcg behind it where the host has a QEMU without TCG, too.
describe_host()
{
    HOST=${1%-tcg}
    ENDIAN=little
    case $1 in
    arm64) TRIPLET=aarch64-linux-gnu FAMILY=aarch64 EMULATOR=aarch64 ;;
    armhf) TRIPLET=arm-linux-gnueabihf FAMILY=arm EMULATOR=arm ;;
    i386) TRIPLET=i686-linux-gnu FAMILY=x86 EMULATOR=i386 ;;
    ppc64el | ppc64el-tcg)
        TRIPLET=powerpc64le-linux-gnu FAMILY=ppc64 EMULATOR=ppc64le ;;
    s390x)
        TRIPLET=s390x-linux-gnu FAMILY=s390x EMULATOR=s390x
        ENDIAN=big ;;
    *) die "there is no host $1" "see describe_host in scripts/hosts.sh" ;;
    esac
    LIBRARIES=$BUILD/download/libraries-$HOST
}

# Links that begin at the root are to begin at the tree's.
make_links_relative()
{
    local tree=$1 dirs=() dir link

    # Only some architectures have the second.
    for dir in lib lib64 usr/lib; do
        [ ! -d "$tree/$dir" ] || dirs+=("$tree/$dir")
    done
    find "${dirs[@]}" -type l -lname '/*' | while read -r link; do
        ln -sfnr "$tree$(readlink "$link")" "$link"
    done
}

# fetch_libraries: of the architecture that has been described, of which dpkg is
# not told: they are only unpacked.  Several builds share them, of two series of
# QEMU, too.
fetch_libraries()
{
    locked "$LIBRARIES.lock" unpack_libraries
    use_libraries
}

unpack_libraries()
{
    local packages=libc6-dev,libglib2.0-dev,libfdt-dev,zlib1g-dev

    if ! up_to_date "$LIBRARIES/packages" "$packages"; then
        say "fetching Debian's libraries for $HOST (30 MB)"
        logged "$BUILD/logs/libraries.log" extract_debs "$LIBRARIES" "$HOST" \
            "$packages" ||
            die "the libraries for $HOST cannot be fetched from $MIRROR" \
                "check the network, or name another mirror in DEBIAN_MIRROR"
        echo "$packages" > "$LIBRARIES/packages"
    fi
    make_links_relative "$LIBRARIES"
}

# use_libraries: set options for the compiler and the linker.  Debian's look in
# the cross compiler's own directories first, in spite of --sysroot; these may
# have a newer C library than the host that is made of those here.
use_libraries()
{
    local include=$LIBRARIES/usr/include objects multiarch

    objects=$(echo "$LIBRARIES"/usr/lib/*-linux-gnu*)
    multiarch=$include/${objects##*/}
    HOST_CFLAGS=("--sysroot=$LIBRARIES" -isystem "$multiarch"
                 -isystem "$include")
    HOST_LDFLAGS=("--sysroot=$LIBRARIES" "-B$objects/" "-L$objects")
}

# in_meson WORD...: as a list of meson's
in_meson()
{
    local words

    printf -v words "'%s', " "$@"
    echo "[${words%, }]"
}

# Where pkg-config finds them.
library_files()
{
    echo "$LIBRARIES"/usr/lib/*-linux-gnu*/pkgconfig
}

# What meson has to know to compile for the host.
cross_file()
{
    cat <<END
[binaries]
c = '$TRIPLET-gcc'
ar = '$TRIPLET-ar'
strip = '$TRIPLET-strip'
pkgconfig = 'pkg-config'
[properties]
needs_exe_wrapper = true
sys_root = '$LIBRARIES'
pkg_config_libdir = '$(library_files)'
[built-in options]
c_args = $(in_meson "${HOST_CFLAGS[@]}")
c_link_args = $(in_meson "${HOST_LDFLAGS[@]}")
[host_machine]
system = 'linux'
cpu_family = '$FAMILY'
cpu = '$EMULATOR'
endian = '$ENDIAN'
END
}

# make_runner PROGRAM: a program of this machine that runs one of the host's,
# beside it, in a directory "here".  The latter finds the former as its own
# name: tests of GLib's start themselves anew to see that something aborts.
make_runner()
{
    local path=${1%/*}/here/${1##*/}

    mkdir -p "${path%/*}"
    cat > "$path" <<END
#!/bin/sh
exec qemu-$EMULATOR-static -0 "\$0" -L $LIBRARIES $1 "\$@"
END
    chmod +x "$path"
    echo "$path"
}
