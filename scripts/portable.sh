#!/usr/bin/env bash
# Runs a build so that strata and its interception library run on glibc 2.27 and newer: portable.sh cargo build --release --locked
# Only the link of these two differs: zig links them with its stubs of that glibc's libraries, and cargo-zigbuild translates the options that zig does not
# know. Both come from PyPI once. Without them the build needs the glibc of this machine; a message says so.
set -euo pipefail
GLIBC=2.27
ZIG=0.17.1
ZIGBUILD=0.24.1

[ $# -gt 0 ] || { echo 'usage: portable.sh COMMAND..., such as: portable.sh cargo build --release --locked' >&2; exit 2; }
tools=${XDG_CACHE_HOME:-$HOME/.cache}/strata-build/zig-$ZIG
if [ ! -x "$tools/bin/cargo-zigbuild" ]; then
    echo "portable.sh: installing zig $ZIG and cargo-zigbuild $ZIGBUILD from PyPI into $tools" >&2
    { python3 -m venv --clear "$tools" &&
        "$tools/bin/python" -m pip install --quiet "ziglang==$ZIG" "cargo-zigbuild==$ZIGBUILD"; } >&2 || {
        rm -rf "$tools"
        echo 'portable.sh: they could not be installed: this build needs the glibc of this machine' >&2
        exec "$@"
    }
fi

# cargo links with the first `cc` of the path. Everything else that is compiled or linked keeps the compiler of this machine.
linker=$(mktemp -d)
trap 'rm -rf "$linker"' EXIT
cat >"$linker/cc" <<CC
#!/usr/bin/env bash
case "\$*" in
    *' -o '*/deps/strata-* | *' -o '*/deps/libstrata_intercept*)
        PATH=$tools/bin:\$PATH exec "$tools/bin/cargo-zigbuild" zig cc -- -target "$(uname -m)-linux-gnu.$GLIBC" "\$@" ;;
esac
exec "$(command -v cc)" "\$@"
CC
chmod +x "$linker/cc"
# The sources read STRATA_GLIBC, so that cargo links again what was linked for another glibc.
PATH=$linker:$PATH STRATA_GLIBC=$GLIBC "$@"
