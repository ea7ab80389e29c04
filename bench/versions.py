#!/usr/bin/env python3
"""Compares two builds of strata in turns, so that a change of the measured loop shows: rate, and CPU time of the process an operation. Markdown.

    bench/versions.py --before PATH --after PATH [--repeats 9] [--seconds 1] [--case NAME]

Both builds run the same words, pinned to one processor, with `--warmup none` and real-time priority where that is allowed, each round beginning with the other one. The ratio is taken
round by round and its median is shown; above 1 the build after is faster. Objects: a store on /dev/shm, made anew for every run."""

import argparse
import json
import os
import shutil
import sys
import tempfile

# The helpers beside this file leave no compiled copies in the source tree.
sys.dont_write_bytecode = True

from measure import Failure, median, priority, progress, run_child

KEYS = 200_000
# name, words, whether it ends by itself, number of the phase that counts
CASES = [
    ("null, depth 1", "media null: --op nop -q 1", False, 0),
    ("null, depth 32", "media null: --op nop -q 32", False, 0),
    ("null, depth 32, a batch of 8", "media null: --op nop -q 32 --batch 8", False, 0),
    ("null, open loop, 100k/s", "media null: --op nop -q 32 --rate 100k", False, 0),
    ("psync, /dev/null", "media /dev/null -e psync --op write -b 4k -s 1g --refill once", False, 0),
    ("io_uring, /dev/null, depth 32", "media /dev/null -e io_uring --op write -b 4k -s 1g -q 32 --refill once", False, 0),
    ("vos update, 64 B, depth 16", f"object vos:STORE --op update --value-size 64 --dkeys {KEYS} -q 16", True, 0),
    ("vos fetch, 64 B, depth 16", f"object vos:STORE --op update,fetch --value-size 64 --dkeys {KEYS} -q 16", True, 1),
]


def measured(binary, words, ends, phase, seconds):
    """Operations a second and CPU nanoseconds an operation of one run."""
    scratch = tempfile.mkdtemp(prefix="strata-bench-", dir="/dev/shm")
    record = os.path.join(scratch, "record.json")
    line = [word.replace("STORE", os.path.join(scratch, "pool")) for word in words.split()]
    line += ["--warmup", "none", "--live", "none", "--json", record]
    line += [] if ends else ["--time", f"{seconds}s"]
    try:
        run_child([*priority(), "taskset", "-c", "1", binary, *line], seconds + 120)
        with open(record, encoding="utf-8") as file:
            found = json.load(file)
    finally:
        shutil.rmtree(scratch)
    if found["status"] != "complete" or found["debug_build"]:
        raise Failure(f"{' '.join(line)}: {found['status']}, debug build: {found['debug_build']}")
    summary = found["phases"][phase]["summary"]
    return summary["total"]["operations_per_second"], summary["cpu_ns_per_operation"]


def compare(case, arguments):
    _, words, ends, phase = case
    rates, costs = {"before": [], "after": []}, {"before": [], "after": []}
    sides = [("before", arguments.before), ("after", arguments.after)]
    for turn in range(arguments.repeats):
        for side, binary in sides if turn % 2 == 0 else sides[::-1]:
            progress(f"{case[0]}, round {turn + 1}, {side}")
            rate, cost = measured(binary, words, ends, phase, arguments.seconds)
            rates[side].append(rate)
            costs[side].append(cost)
    progress("")
    ratios = [after / before for before, after in zip(rates["before"], rates["after"])]
    return rates, costs, ratios


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", required=True, help="binary of the build before")
    parser.add_argument("--after", required=True, help="binary of the build after")
    parser.add_argument("--repeats", type=int, default=9, help="rounds (9)")
    parser.add_argument("--seconds", type=int, default=1, help="length of a timed run (1)")
    parser.add_argument("--case", action="append", help="part of a case's name; may be given again")
    arguments = parser.parse_args()
    print("| case | before | after | ratio: median (lowest to highest) | CPU an operation before | after |")
    print("|---|---|---|---|---|---|")
    for case in CASES:
        if arguments.case and not any(part in case[0] for part in arguments.case):
            continue
        rates, costs, ratios = compare(case, arguments)
        rate = {side: f"{median(values) / 1e6:.3f} M/s" for side, values in rates.items()}
        cost = {side: f"{median(values):.1f} ns" for side, values in costs.items()}
        spread = f"{median(ratios):.3f} ({min(ratios):.2f} to {max(ratios):.2f})"
        print(f"| {case[0]} | {rate['before']} | {rate['after']} | {spread} | {cost['before']} | {cost['after']} |", flush=True)


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(f"versions.py: {failure}")
