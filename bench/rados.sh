#!/usr/bin/env bash
# strata's rados driver beside `rados bench`, on a one-node Ceph that this starts: same sizes, depths and numbers of objects, taken in turns.
# bench/rados.sh [ROUNDS [SECONDS]]; STRATA names the built binary.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

ROUNDS=${1:-5}
SECONDS_EACH=${2:-4}
TARGET=${CARGO_TARGET_DIR:-target}
STRATA=${STRATA:-$TARGET/release/strata}
[ -x "$STRATA" ] || cargo build --release --locked
record=$(mktemp)

directory=$(mktemp -d)/node
trap 'rm -f "$record"; scripts/ceph-node.sh stop "$directory"' EXIT
conf=$(CEPH_NODE_MEMORY_BYTES=$((8 << 30)) scripts/ceph-node.sh start "$directory" $$)

# Operations a second of `rados bench`. Objects are written before they are read.
theirs() {
    local what=$1 bytes=$2 depth=$3 objects=$4
    local bench=(timeout 120 rados --conf "$conf" -p strata bench)
    if [ "$what" = get ]; then
        "${bench[@]}" "$SECONDS_EACH" write -b "$bytes" -t "$depth" --max-objects "$objects" --no-cleanup --run-name bench >/dev/null
        "${bench[@]}" "$SECONDS_EACH" rand -t "$depth" --run-name bench | awk '/^Average IOPS:/ { print $3 }'
    else
        "${bench[@]}" "$SECONDS_EACH" write -b "$bytes" -t "$depth" --max-objects "$objects" --no-cleanup --run-name bench |
            awk '/^Average IOPS:/ { print $3 }'
    fi
    timeout 120 rados --conf "$conf" -p strata cleanup --run-name bench >/dev/null
}

# The same of strata, each object once at most where they are put, as `rados bench` has it.
ours() {
    local what=$1 bytes=$2 depth=$3 objects=$4 count=()
    [ "$what" = get ] || count=(--count "$objects")
    timeout 120 "$STRATA" object rados://strata/own --rados-conf "$conf" --op "$what" --value-size "$bytes" --depth "$depth" \
        --dkeys "$objects" --refill stamp --time "${SECONDS_EACH}s" ${count[@]+"${count[@]}"} --warmup none --live none --json "$record" >/dev/null
    python3 -c 'import json, sys; print(round(json.load(open(sys.argv[1]))["phases"][-1]["summary"]["total"]["operations_per_second"]))' "$record"
}

median() { sort -n | awk '{ value[NR] = $1 } END { print value[int((NR + 1) / 2)] }'; }

printf '%-4s %9s %6s %14s %14s %7s\n' '' bytes depth 'strata op/s' 'rados bench' ratio
while read -r what bytes depth objects; do
    mine=() other=()
    for ((round = 0; round < ROUNDS; round++)); do
        found=$(ours "$what" "$bytes" "$depth" "$objects")
        mine+=("$found")
        found=$(theirs "$what" "$bytes" "$depth" "$objects")
        other+=("$found")
    done
    a=$(printf '%s\n' "${mine[@]}" | median)
    b=$(printf '%s\n' "${other[@]}" | median)
    printf '%-4s %9s %6s %14s %14s %7s\n' "$what" "$bytes" "$depth" "$a" "$b" "$(awk "BEGIN { printf \"%.2f\", $a / $b }")"
done <<'CASES'
put 4096 1 30000
put 4096 16 30000
get 4096 1 4096
get 4096 16 4096
put 4194304 8 600
get 4194304 8 300
CASES
