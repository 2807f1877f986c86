# SPDX-License-Identifier: GPL-2.0-or-later
#
# What the scripts share: where things lie, how to talk, Debian's archive.
# Sourced by bash; $ROOT is the repository, everything made goes to $BUILD.

set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
BUILD=${BUILD:-$ROOT/build}
PYTHON=/usr/bin/python3
MIRROR=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

say() { printf '\033[1m==>\033[0m %s\n' "$*" >&2; }

# die MESSAGE [REMEDY]: end with what is wrong, and what helps.
die()
{
    printf 'error: %s\n' "$1" >&2
    [ $# -lt 2 ] || printf 'hint: %s\n' "$2" >&2
    exit 1
}

# logged FILE COMMAND...: run with the output in a file, shown if it fails.
logged()
{
    local log=$1

    shift
    mkdir -p "$(dirname "$log")"
    "$@" > "$log" 2>&1 || { tail -n 30 "$log" >&2; return 1; }
}

# up_to_date STAMP WORDS...: whether the stamp holds exactly these words.
up_to_date()
{
    local stamp=$1

    shift
    [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$*" ]
}

# Debian's archive, through a configuration of our own: nothing of the
# machine's is read but its keyring, and nothing of it is changed.
APT_DIR=$BUILD/apt

private_apt()
{
    APT_CONFIG=$APT_DIR/apt.conf "$@"
}

private_apt_setup()
{
    [ -f "$APT_DIR/updated" ] && return
    [ -f "$KEYRING" ] || die "$KEYRING is missing, so nothing can be verified" \
        "install the package debian-archive-keyring"
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
END
    cat > "$APT_DIR/etc/sources.list" <<END
deb [signed-by=$KEYRING] $MIRROR bookworm-backports main
deb-src [signed-by=$KEYRING] $MIRROR bookworm-backports main
deb-src [signed-by=$KEYRING] $MIRROR trixie main
END
    say "reading Debian's package lists"
    logged "$BUILD/logs/apt-update.log" private_apt apt-get -q update \
        -o APT::Update::Error-Mode=any ||
        die "Debian's package lists cannot be fetched from $MIRROR" \
            "check the network, or name another mirror in DEBIAN_MIRROR"
    touch "$APT_DIR/updated"
}

# fetch_deb PACKAGE DIR: unpack a package of Debian's backports into DIR.
fetch_deb()
{
    local package=$1 dir=$2 debs=$BUILD/download/$1

    [ -f "$dir/.$package" ] && return
    private_apt_setup
    mkdir -p "$debs" "$dir"
    say "fetching Debian's $package"
    (cd "$debs" && rm -f ./*.deb &&
     logged "$BUILD/logs/fetch-$package.log" \
         private_apt apt-get -q download "$package/bookworm-backports") ||
        die "the package $package cannot be fetched" "check the network"
    dpkg-deb -x "$debs"/*.deb "$dir"
    touch "$dir/.$package"
}
