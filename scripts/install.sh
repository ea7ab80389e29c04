#!/bin/bash
# Puts what was built below a directory: install.sh BINARY_DIR PREFIX_DIR
# The binary, the interception library, a man page a command, and completions for three shells.
set -euo pipefail
built=${1:?the directory of the binary} prefix=${2:?where to install}
strata=$built/strata
share=$prefix/share

install -D -m 755 "$strata" "$prefix/bin/strata"
# Only glibc has it; a build without it goes without.
if [[ -e $built/libstrata_intercept.so ]]; then
    install -D -m 644 "$built/libstrata_intercept.so" "$prefix/lib/libstrata_intercept.so"
fi
install -d "$share/man/man1" "$share/bash-completion/completions" "$share/zsh/site-functions" "$share/fish/vendor_completions.d"
"$strata" man --dir "$share/man/man1"
"$strata" completions bash >"$share/bash-completion/completions/strata"
"$strata" completions zsh >"$share/zsh/site-functions/_strata"
"$strata" completions fish >"$share/fish/vendor_completions.d/strata.fish"
