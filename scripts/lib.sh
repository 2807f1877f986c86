# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# What the scripts share: where things lie, how to talk, Debian's archive.
# Sourced by bash; $ROOT is the repository, everything made goes to $BUILD.

set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# As make's abspath has it.
BUILD=$(realpath -ms -- "${BUILD:-$ROOT/build}")
# shellcheck disable=SC2034     # for scripts
PYTHON=/usr/bin/python3
MIRROR=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

say()
{
    if [ -t 2 ]; then
        printf '\033[1m==>\033[0m %s\n' "$*" >&2
    else
        printf '==> %s\n' "$*" >&2
    fi
}

# How many MB are left for $BUILD.
free_space()
{
    local dir=$BUILD

    until [ -d "$dir" ]; do
        dir=$(dirname "$dir")
    done
    df -Pm "$dir" | awk 'END { print $4 }'
}

# die MESSAGE [REMEDY]: end with what is wrong, and what helps.  Where a disk is
# full, that is what is wrong, whatever it led to.
die()
{
    printf 'error: %s\n' "$1" >&2
    if [ "$(free_space)" -lt 50 ]; then
        printf 'hint: the disk of %s is full: make room, or %s\n' "$BUILD" \
            "name a directory on another in BUILD" >&2
    elif [ $# -ge 2 ]; then
        printf 'hint: %s\n' "$2" >&2
    fi
    exit 1
}

# need_space MB WHAT: end, unless that much can be in $BUILD; what is there
# already counts.
need_space()
{
    local free present

    free=$(free_space)
    [ "$free" -lt "$1" ] || return 0
    # It may be a link.
    present=$(du -smD "$BUILD" 2> /dev/null | cut -f 1) || true
    [ $((free + ${present:-0})) -lt "$1" ] || return 0
    die "$2 needs $1 MB in $BUILD, and $((free + ${present:-0})) can be had" \
        "make room, or name a directory on another disk in BUILD"
}

# What is not to stay if the script ends before its time.
unfinished=
trap '[ -z "$unfinished" ] || rm -rf "$unfinished"' EXIT

# Ctrl-C also ends what a script runs, which may take it for a failure: the
# script ends by it, too, and says nothing.
end_if_interrupted()
{
    trap 'trap - INT; kill -INT $BASHPID' INT
}
end_if_interrupted

# Neither make nor QEMU's configure can handle these.
case $ROOT$BUILD in
*[[:space:]:]*)
    die "the path ${ROOT@Q} or ${BUILD@Q} has a space or a colon in it" \
        "move the repository, and BUILD if you set it, to a path without" ;;
esac

# The QEMU that is built: that of a directory of BUILD that is named so, or of the
# tree QEMU_SRC, or 10.0.  Any but 10.0 has a directory of its own in BUILD for what
# depends on it, with links to what all of them share.
version_of()
{
    # A number from 50 on is on the way to the next release.
    sed -E 's/^([0-9]+\.[0-9]+)\.[0-4]?[0-9]$/\1/' "$1/VERSION" 2> /dev/null
}
name_of_build() { grep -Eo '/[0-9]+(\.[0-9]+)+$' <<< "$BUILD" | tr -d /; }
QEMU_SERIES=${QEMU_SERIES:-$(name_of_build || version_of "${QEMU_SRC:-}" ||
                             echo 10.0)}
export QEMU_SERIES
COMMON=${BUILD%"/$QEMU_SERIES"}
share_build()
{
    local name

    export BUILD=$COMMON/$QEMU_SERIES
    for name in download firmware tools guest-x86_64 guest-ppc64; do
        mkdir -p "$COMMON/$name" "$BUILD"
        [ -L "$BUILD/$name" ] || ln -sT "../$name" "$BUILD/$name"
    done
}
case $QEMU_SERIES:$(name_of_build || true) in
10.0:) ;;
10.0:*) die "$BUILD is the directory of QEMU ${BUILD##*/}" ;;
*) share_build ;;
esac
# The directory of a QEMU of a later series without anything of ours, for tests
# that migrate guests to and from it; meson starts them in another directory.
[ -z "${PEER:-}" ] || PEER=$(realpath -ms -- "$PEER")
export PEER=${PEER:-}

# The architecture of the guest, and what it is called elsewhere.
export ARCH=${ARCH:-x86_64}
# shellcheck disable=SC2034     # for scripts
case $ARCH in
x86_64) DEBIAN_ARCH=amd64 DEBIAN_KERNEL=linux-image-amd64 ;;
ppc64) DEBIAN_ARCH=ppc64el DEBIAN_KERNEL=linux-image-powerpc64le ;;
*) die "there is no guest for ARCH=$ARCH" "it may be x86_64 or ppc64" ;;
esac

# Show a log's last line and the time, again and again, as long as the script
# lives: it may be interrupted.
follow_log()
{
    local start=$SECONDS

    while kill -0 $$ 2> /dev/null; do
        printf '\r\033[K%4d s  %.65s' $((SECONDS - start)) \
            "$(tail -n 1 "$1" 2> /dev/null | tr -d '\r')" >&2
        sleep 1
    done
}

# logged FILE COMMAND...: run with the output in a file, shown if it fails; a
# terminal shows its last line meanwhile.
logged()
{
    local log=$1 status=0 follower

    # A subshell has forgotten it.
    end_if_interrupted
    shift
    mkdir -p "$(dirname "$log")"
    : > "$log"
    if [ -t 2 ]; then
        # Its sleep outlives it, and a lock would last as long.
        follow_log "$log" 9>&- &
        follower=$!
    fi
    "$@" > "$log" 2>&1 || status=$?
    if [ -n "${follower:-}" ]; then
        kill $follower
        wait $follower 2> /dev/null || true
        printf '\r\033[K' >&2
    fi
    [ $status -eq 0 ] || tail -n 30 "$log" >&2
    return $status
}

# wait_for_lock FILE: which is open as 9.
wait_for_lock()
{
    flock -n 9 && return
    say "waiting for another call, which has locked $1"
    flock 9
}

# lock FILE: until this script ends, another that locks the same waits.
lock()
{
    mkdir -p "$(dirname "$1")"
    exec 9> "$1"
    wait_for_lock "$1"
}

# locked FILE COMMAND...: run it when no other script does that locks the same.
# What this one has locked before stays so: bash keeps that open elsewhere,
# where no program inherits it.
locked()
{
    mkdir -p "$(dirname "$1")"
    # It is not read.
    # shellcheck disable=SC2094
    { wait_for_lock "$1"; "${@:2}"; } 9> "$1"
}

# up_to_date STAMP WORDS...: whether the stamp holds exactly these words.
up_to_date()
{
    local stamp=$1

    shift
    [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$*" ]
}

# Debian's archive, through a configuration of our own: nothing of the
# machine's is read but its keyring and its proxies, and nothing is changed.
APT_DIR=$BUILD/apt

# A file with the machine's proxies, and less patience than apt has: a mirror
# that does not answer is given up after some minutes.
apt_options()
{
    # Another stage may be reading what is there.
    local part=$APT_DIR/options.$BASHPID

    mkdir -p "$APT_DIR"
    { echo 'Acquire::Retries "1";'
      echo 'Acquire::http::Timeout "20";'
      apt-config dump | grep -E '^Acquire::https?::Proxy' || true
    } > "$part"
    mv "$part" "$APT_DIR/options.conf"
    echo "$APT_DIR/options.conf"
}

private_apt()
{
    APT_CONFIG=$APT_DIR/apt.conf "$@"
}

# alone COMMAND...: run what asks Debian's archive when no other script does.
alone() { locked "$BUILD/download/lock" "$@"; }

# Debian deletes old versions: lists of yesterday name what may be gone.
lists_are_fresh()
{
    up_to_date "$APT_DIR/updated" "$MIRROR" &&
        [ -n "$(find "$APT_DIR/updated" -mmin -1440)" ]
}

# What they name could not be had: the next call reads them again.
forget_lists() { rm -f "$APT_DIR/updated"; }

private_apt_setup()
{
    local time=now

    ! lists_are_fresh || return 0
    [ -f "$KEYRING" ] || die "$KEYRING is missing, so nothing can be verified" \
        "install the package debian-archive-keyring"
    up_to_date "$APT_DIR/updated" "$MIRROR" || rm -rf "$APT_DIR"
    mkdir -p "$APT_DIR"/{etc/apt.conf.d,etc/preferences.d} \
             "$APT_DIR"/{state/lists/partial,cache/archives/partial}
    cat > "$APT_DIR/apt.conf" <<END
Dir::Etc "$APT_DIR/etc";
Dir::Etc::sourcelist "$APT_DIR/etc/sources.list";
Dir::Etc::sourceparts "-";
Dir::State "$APT_DIR/state";
Dir::State::status "/var/lib/dpkg/status";
Dir::Cache "$APT_DIR/cache";
APT::Sandbox::User "root";
Acquire::Languages "none";
#include "$(apt_options)";
END
    cat > "$APT_DIR/etc/sources.list" <<END
deb [signed-by=$KEYRING] $MIRROR bookworm main
deb [signed-by=$KEYRING] $MIRROR bookworm-backports main
deb-src [signed-by=$KEYRING] $MIRROR bookworm-backports main
deb-src [signed-by=$KEYRING] $MIRROR trixie main
END
    # Where the keys of its developers are, see scripts/fetch-qemu.
    [ "$QEMU_SERIES" = 10.0 ] || echo "deb [signed-by=$KEYRING] $MIRROR trixie main" \
        >> "$APT_DIR/etc/sources.list"
    say "reading Debian's package lists"
    # Not all of them are needed: QEMU's source is in two.  But then they are to
    # be read again the next time; apt would leave with 0 for most errors.
    logged "$BUILD/logs/apt-update.log" \
        private_apt apt-get -q update --error-on=any || {
        say "not all package lists could be read; going on with what is there"
        time=@0
    }
    compgen -G "$APT_DIR/state/lists/*_bookworm-backports_*_Packages" \
        > /dev/null ||
        die "Debian's package lists cannot be fetched from $MIRROR" \
            "check the network, or name another mirror in DEBIAN_MIRROR"
    echo "$MIRROR" > "$APT_DIR/updated"
    touch -d "$time" "$APT_DIR/updated"
}

# fetch_deb PACKAGE DIR [SUITE]: unpack a package of Debian into DIR, of its
# backports if no suite is named.
fetch_deb()
{
    [ -f "$2/.$1" ] || alone unpack_deb "$@"
}

unpack_deb()
{
    local package=$1 dir=$2 suite=${3:-bookworm-backports}
    local debs=$BUILD/download/$1

    # Whoever was first may have done it.
    [ -f "$dir/.$package" ] && return
    private_apt_setup
    mkdir -p "$debs" "$dir"
    say "fetching Debian's $package"
    (cd "$debs" && rm -f ./*.deb &&
     logged "$BUILD/logs/fetch-$package.log" \
         private_apt apt-get -q download "$package/$suite") || {
        forget_lists
        die "the package $package cannot be fetched from $MIRROR" \
            "check the network, or name another mirror in DEBIAN_MIRROR"
    }
    # Whoever calls this may have switched off "set -e".
    dpkg-deb -x "$debs"/*.deb "$dir" ||
        die "the package $package cannot be unpacked" "is the disk full?"
    touch "$dir/.$package"
}

# extract_debs DIR ARCHITECTURE PACKAGES [OPTION...]: unpack packages of
# Debian 12 and its backports, with what they depend on, into a new directory.
extract_debs()
{
    local dir=$1 architecture=$2 packages=$3 mode=chrootless

    shift 3
    rm -rf "$dir" "$dir.part"
    unfinished=$dir.part
    mkdir -p "$dir.part"
    # Nothing of the packages is run, so a user needs no help for this; but
    # this mode is not for the superuser.
    [ "$(id -u)" -ne 0 ] || mode=root
    # Not a tar archive: where writing one fails, mmdebstrap sends a hangup to
    # its whole process group, which is ours.
    mmdebstrap --verbose --mode=$mode --variant=extract --format=directory \
        --architectures="$architecture" --aptopt="$(apt_options)" \
        --skip=output/dev --include="$packages" "$@" bookworm "$dir.part" \
        "deb [signed-by=$KEYRING] $MIRROR bookworm main" \
        "deb [signed-by=$KEYRING] $MIRROR bookworm-backports main" &&
        mv "$dir.part" "$dir" || return
    unfinished=
}
