#!/usr/bin/env bash
# Makes the PTX text of the kernels of crates/gpu from their source (apt-get install clang). Run it after a change of the source; builds do not need it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../crates/gpu/kernels"

for source in *.cu; do
    text=${source%.cu}.ptx
    ${CLANG:-clang} -x cuda --cuda-device-only --cuda-gpu-arch=sm_70 -nocudainc -nocudalib -nobuiltininc -Wno-unknown-cuda-version \
        -O3 -S "$source" -o "$text"
    # The hash of the source tells whether the text is its own: a test compares them.
    { echo "// sha256 of $source: $(sha256sum "$source" | cut -d' ' -f1)"; grep -v '^// \(Generated\|sha256\)' "$text"; } > "$text.new"
    mv "$text.new" "$text"
done
