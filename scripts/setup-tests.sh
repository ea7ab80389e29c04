#!/usr/bin/env bash
# Installs the Debian packages and Rust components that tests and benchmarks use, and only those that are missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# command:package
NEEDED=(
    cc:gcc
    git:git
    fio:fio
    losetup:mount
    mkfs.ext4:e2fsprogs
    mkfs.btrfs:btrfs-progs
    sfdisk:fdisk
    blkid:util-linux
    script:bsdutils
    tmux:tmux
    strace:strace
    python3:python3
    column:bsdextrautils
    fi_info:libfabric-bin
    h5dump:hdf5-tools
    ip:iproute2
    ceph-mon:ceph-mon
    ceph-osd:ceph-osd
    rados:ceph-common
    radosgw:radosgw
    mpirun.openmpi:openmpi-bin
    mpiexec.hydra:mpich
    srun:slurm-client
    slurmctld:slurmctld
    slurmd:slurmd
    munged:munge
)

# file:package, for what is no command
NEEDED_FILES=(
    # Its directory depends on the architecture; the document is in all of them.
    /usr/share/doc/libhdf5-103-1:libhdf5-103-1
    /usr/share/doc/libhdf5-openmpi-103-1:libhdf5-openmpi-103-1
    /usr/lib/python3/dist-packages/h5py:python3-h5py
    /usr/share/doc/fio/examples/null.fio:fio-examples
    # srun --mpi=pmix loads libpmix.so, which no package that brings the plugin depends on.
    /usr/lib/x86_64-linux-gnu/libpmix.so:libpmix-dev
)

# Tools of the administrator are not in everybody's path.
PATH=$PATH:/usr/sbin:/sbin

missing=()
for entry in "${NEEDED[@]}"; do
    command -v "${entry%%:*}" >/dev/null || missing+=("${entry##*:}")
done

for entry in "${NEEDED_FILES[@]}"; do
    # Slim images leave documents out although the package is installed.
    [ -e "${entry%%:*}" ] || dpkg -s "${entry##*:}" >/dev/null 2>&1 || missing+=("${entry##*:}")
done

for component in rustfmt clippy; do
    tool=cargo-${component/rustfmt/fmt}
    if ! command -v "$tool" >/dev/null; then
        echo "setup-tests: adding the Rust component $component"
        rustup component add "$component" ||
            { echo "setup-tests: $tool is missing and rustup could not add it" >&2; exit 1; }
    fi
done

# S3 servers of others, each made once. One that cannot be had is told, and its tests say so by name.
SERVERS=${XDG_CACHE_HOME:-$HOME/.cache}/strata-tests
MOTO=5.2.5
VERSITYGW=v1.0.14

mkdir -p "$SERVERS"
if [ ! -x "$SERVERS/moto-$MOTO/bin/moto_server" ]; then
    echo "setup-tests: installing moto $MOTO from PyPI into $SERVERS"
    { python3 -m venv --clear "$SERVERS/moto-$MOTO" &&
        "$SERVERS/moto-$MOTO/bin/python" -m pip install --quiet "moto[server]==$MOTO"; } ||
        echo "setup-tests: moto could not be installed; tests that need it say so by name" >&2
fi
if [ ! -x "$SERVERS/versitygw-$VERSITYGW/versitygw" ]; then
    if command -v go >/dev/null; then
        echo "setup-tests: building versitygw $VERSITYGW from the Go proxy into $SERVERS"
        GOBIN="$SERVERS/versitygw-$VERSITYGW" go install "github.com/versity/versitygw/cmd/versitygw@$VERSITYGW" ||
            echo "setup-tests: versitygw could not be built; tests that need it say so by name" >&2
    else
        echo "setup-tests: there is no go, so no versitygw; tests that need it say so by name" >&2
    fi
fi

# The C library of Ubuntu 18.04, on which packages have to run, and what links them for it.
GLIBC=libc6_2.27-3ubuntu1_amd64.deb
GLIBC_SHA256=1e1eb86fd646aa68f7144ec692b837b6b352d215880c6a2d0c92c19d36938427
if [ "$(uname -m)" = x86_64 ] && [ ! -e "$SERVERS/glibc-2.27/lib" ]; then
    echo "setup-tests: unpacking $GLIBC of archive.ubuntu.com into $SERVERS"
    { python3 -c 'import sys, urllib.request; urllib.request.urlretrieve(*sys.argv[1:])' \
        "http://archive.ubuntu.com/ubuntu/pool/main/g/glibc/$GLIBC" "$SERVERS/$GLIBC" &&
        echo "$GLIBC_SHA256  $SERVERS/$GLIBC" | sha256sum --check --quiet &&
        dpkg-deb -x "$SERVERS/$GLIBC" "$SERVERS/glibc-2.27"; } ||
        echo "setup-tests: glibc 2.27 could not be unpacked; the test that needs it says so by name" >&2
    rm -f "$SERVERS/$GLIBC"
fi
scripts/portable.sh true

[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if sudo -n true 2>/dev/null; then
        as_root=(sudo -n)
    else
        echo "setup-tests: not installed: ${missing[*]}. This needs root: apt-get install ${missing[*]}" >&2
        echo "setup-tests: going on; tests that need them say so by name" >&2
        exit 0
    fi
fi
if ! command -v apt-get >/dev/null; then
    echo "setup-tests: not installed: ${missing[*]} (Debian's names). There is no apt-get here: install them yourself" >&2
    echo "setup-tests: going on; tests that need them say so by name" >&2
    exit 0
fi

echo "setup-tests: installing ${missing[*]}"
install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends)
"${install[@]}" "${missing[@]}" >/dev/null ||
    { "${as_root[@]}" apt-get update >/dev/null && "${install[@]}" "${missing[@]}" >/dev/null; } ||
    # One that cannot be had keeps the others from nobody.
    for package in "${missing[@]}"; do
        "${install[@]}" "$package" >/dev/null ||
            echo "setup-tests: apt-get could not install $package; tests that need it say so by name" >&2
    done
