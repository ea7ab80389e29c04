#!/bin/bash
# Makes packages of what was built: package.sh BINARY_DIR OUT_DIR [deb|rpm|tar|image ...]
# Without a list: all that this machine has the tools for; one that was named and cannot be made is an error.
set -euo pipefail
cd "$(dirname "$0")/.."
built=$(realpath "${1:?the directory of the binary}") out=${2:?where the packages go}
shift 2
declare -A needs=([deb]='dpkg-deb (apt-get install dpkg)' [rpm]='rpmbuild (apt-get install rpm)' [tar]='tar' [image]='python3')
for kind in "$@"; do
    [[ -v needs[$kind] ]] || { echo "package.sh: there is no package $kind: give deb, rpm, tar or image" >&2; exit 2; }
done
mkdir -p "$out"
out=$(realpath "$out")
version=$("$built/strata" version --json | sed -n 's/.*"strata_version": "\(.*\)".*/\1/p')
machine=$(uname -m)
summary='Measures every layer of a storage stack with one measuring loop'
homepage=$(sed -n 's/^repository = "\(.*\)"/\1/p' Cargo.toml)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The tree that all packages hold, without debug information: addr2line finds it in the file beside the packages.
tree=$work/tree
scripts/install.sh "$built" "$tree/usr"
install -D -m 644 README.md "$tree/usr/share/doc/strata/README.md"
install -m 644 CHANGELOG.md "$tree/usr/share/doc/strata/CHANGELOG.md"
cp -r docs "$tree/usr/share/doc/strata/docs"
find "$tree/usr/share/man" -name '*.1' -exec gzip -9n {} +
if command -v objcopy >/dev/null; then
    objcopy --only-keep-debug --compress-debug-sections "$tree/usr/bin/strata" "$out/strata-$version-$machine.debug"
    strip --strip-all "$tree/usr/bin/strata"
    (cd "$out" && objcopy --add-gnu-debuglink="strata-$version-$machine.debug" "$tree/usr/bin/strata")
    [[ ! -e $tree/usr/lib/libstrata_intercept.so ]] || strip --strip-unneeded "$tree/usr/lib/libstrata_intercept.so"
fi
# The oldest glibc that the binary runs on, from the versions of the symbols that it asks for.
glibc=$(objdump -T "$tree/usr/bin/strata" 2>/dev/null | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -1 | cut -d_ -f2 || true)

make_tar() {
    local name=strata-$version-$machine-linux-gnu
    cp -r "$tree/usr" "$work/$name"
    tar -C "$work" --owner=0 --group=0 -czf "$out/$name.tar.gz" "$name"
    echo "$out/$name.tar.gz: unpack it anywhere and run bin/strata; needs glibc ${glibc:-of this machine} or newer"
}

make_deb() {
    command -v dpkg-deb >/dev/null || return 3
    local architecture=$(dpkg --print-architecture) size
    local root=$work/deb
    cp -r "$tree" "$root"
    size=$(du -sk "$root" | cut -f1)
    mkdir "$root/DEBIAN"
    cat >"$root/DEBIAN/control" <<CONTROL
Package: strata
Version: $version
Section: utils
Priority: optional
Architecture: $architecture
Maintainer: strata developers <strata@localhost>
Installed-Size: $size
Depends: libc6 (>= ${glibc:-2.36})
Suggests: librados2, librbd1, libfabric1, libhdf5-103-1, fuse3
${homepage:+Homepage: $homepage
}Description: $summary
 It takes the command lines of fio, IOR, mdtest, IO500, elbencho and others, and says
 which layer holds the stack back.
CONTROL
    dpkg-deb --root-owner-group --build "$root" "$out/strata_${version}_$architecture.deb" >/dev/null
    echo "$out/strata_${version}_$architecture.deb"
}

make_rpm() {
    command -v rpmbuild >/dev/null || return 3
    cat >"$work/strata.spec" <<SPEC
Name: strata
Version: $version
Release: 1
Summary: $summary
License: MIT OR Apache-2.0
AutoReqProv: no
Requires: glibc >= ${glibc:-2.36}
%global __os_install_post %{nil}
%global debug_package %{nil}
%description
It takes the command lines of fio, IOR, mdtest, IO500, elbencho and others, and says which layer holds the stack back.
%install
cp -r $tree/* %{buildroot}/
%files
/usr
SPEC
    rpmbuild --quiet -bb --buildroot "$work/rpm-root" --define "_topdir $work/rpm" --define "_rpmdir $out" \
        --define '_build_name_fmt strata-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm' "$work/strata.spec" >"$work/rpm.log" 2>&1 ||
        { cat "$work/rpm.log" >&2; return 1; }
    echo "$out/strata-$version-1.$machine.rpm"
}

# An OCI image that holds the binary and the libraries it is linked to, and nothing else: podman load, docker load, skopeo.
make_image() {
    command -v python3 >/dev/null || return 3
    python3 scripts/image.py "$tree/usr/bin/strata" "$version" "$out/strata-$version-$machine.oci.tar"
    echo "$out/strata-$version-$machine.oci.tar: podman load -i FILE, then podman run --rm strata:$version stack"
}

named=$#
for kind in "${@:-tar deb rpm image}"; do
    for one in $kind; do
        code=0
        "make_$one" || code=$?
        if ((code == 3)); then
            echo "package.sh: $one is left out: it needs ${needs[$one]}" >&2
            ((named == 0)) || exit 1
        elif ((code)); then
            exit "$code"
        fi
    done
done
