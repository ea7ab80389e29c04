#!/usr/bin/env bash
# Runs every fuzz target, each for SECONDS (60), and ends with what failed. Needs the nightly toolchain and cargo-fuzz.
# scripts/fuzz.sh [SECONDS [TARGET...]]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=${1:-60}
shift || true
cargo +nightly fuzz --version >/dev/null 2>&1 || {
    echo "fuzz: needs rustup toolchain install nightly, and cargo install cargo-fuzz --locked" >&2
    exit 2
}
# A target directory of its own: another toolchain and other flags than everything else.
export CARGO_TARGET_DIR=${FUZZ_TARGET_DIR:-fuzz/target}
mapfile -t targets < <(if [ $# -gt 0 ]; then printf '%s\n' "$@"; else cargo +nightly fuzz list; fi)

cargo +nightly fuzz build
failed=()
for target in "${targets[@]}"; do
    echo "== $target: $seconds s"
    mkdir -p "fuzz/corpus/$target"
    seeds=()
    [ -d "fuzz/seeds/$target" ] && seeds=("fuzz/seeds/$target")
    log=$(mktemp)
    if cargo +nightly fuzz run "$target" "fuzz/corpus/$target" "${seeds[@]}" -- -max_total_time="$seconds" -timeout=5 \
        -rss_limit_mb=2048 -print_final_stats=1 >"$log" 2>&1; then
        grep -E 'number_of_executed_units|peak_rss_mb' "$log" | tr '\n' ' ' && echo
    else
        tail -n 40 "$log"
        failed+=("$target")
    fi
    rm -f "$log"
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "fuzz: failed: ${failed[*]}; the inputs are in fuzz/artifacts" >&2
    exit 1
fi
echo "fuzz: ${#targets[@]} targets, $seconds s each, nothing found"
