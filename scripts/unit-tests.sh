#!/usr/bin/env bash
# Runs every test; says at the very end, where it is read first, what failed and why.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cargo=${CARGO:-cargo}

if "$cargo" nextest --version >/dev/null 2>&1; then
    "$cargo" nextest run --workspace --locked --no-fail-fast --failure-output immediate-final
    exec "$cargo" test --workspace --locked --doc
fi

output=$(mktemp)
trap 'rm -f "$output"' EXIT
if "$cargo" test --workspace --locked --no-fail-fast 2>&1 | tee "$output"; then
    exit 0
fi
# What each test program printed of its failed tests stands between "failures:" and the list of their names.
echo
echo 'The tests that failed:'
awk '/^failures:$/ { shows = !shows } shows && !/^failures:$/' "$output"
exit 1
