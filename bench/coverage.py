#!/usr/bin/env python3
"""How often the 95 % intervals in the record hold the truth: many runs on a FUSE file whose service times are drawn by a program of its own.

    cargo build --release && cargo build --release -p testkit --features fuse --example slow_file
    bench/coverage.py [--runs 40] [--time 3] [--strata FILE] [--server FILE] [--parallel 2] [--kind KIND]...

Each run has a file of its own with a seed of its own. The truth of a kind is what all its files together logged, whatever strata says: the
rate is what they served over the time in which they did, percentiles are those of the latencies that they logged, plus what the way through the
kernel adds there (the median over the runs of the difference of that percentile on both sides). Where it may, it runs both sides with real-time priority, so that
other programs on the machine are not part of what is measured.
"""

import argparse
import collections
import concurrent.futures
import datetime
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

# The helpers beside this file leave no compiled copies in the source tree.
sys.dont_write_bytecode = True

from measure import priority

KINDS = ["constant", "exponential", "lognormal", "bimodal", "regimes"]
FIGURES = ["rate", "bandwidth", "p50", "p99"]
BLOCK_BYTES = 4096
THREADS = 16
ROOT = pathlib.Path(__file__).resolve().parent.parent


def run(options, kind, seed):
    """One run: its record, and what its file logged: (seconds from the first arrival to the last, latencies in ns)."""
    with tempfile.TemporaryDirectory(prefix="coverage-") as scratch:
        mount, record = os.path.join(scratch, "mount"), os.path.join(scratch, "record.json")
        os.mkdir(mount)
        server = subprocess.Popen(
            [*options.priority, options.server, mount, kind, str(seed)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        try:
            path = server.stdout.readline().strip()
            if not path:
                raise SystemExit(f"{options.server}: no file was mounted")
            words = f"media {path} --op randread -b {BLOCK_BYTES} -e psync -t {THREADS} --time {options.time}s --live none --json {record}"
            subprocess.run(
                [*options.priority, options.strata, *words.split()],
                check=True, stdout=subprocess.DEVNULL, timeout=60 + 5 * options.time,
            )
            log, _ = server.communicate()
        finally:
            if server.poll() is None:
                server.stdin.close()
                server.wait()
        served = [tuple(map(int, line.split())) for line in log.splitlines()]
        with open(record, encoding="utf-8") as file:
            total = json.load(file)["phases"][0]["summary"]
        arrivals = [at for at, _ in served]
        return total, ((max(arrivals) - min(arrivals)) / 1e9, [latency for _, latency in served])


def percentile(ordered, percent):
    return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]


def truth_of(runs):
    """Rate, bandwidth, p50 and p99 in the long run, and what of p50 is the way through the kernel."""
    seconds = sum(log[0] for _, log in runs)
    latencies = sorted(latency for _, log in runs for latency in log[1])
    # The last operations of each worker began when the others' had: of a closed loop as many are on their way all the time.
    rate = (len(latencies) - THREADS * len(runs)) / seconds
    figures = {"rate": rate, "bandwidth": rate * BLOCK_BYTES}
    ways = {}
    for percent in (50, 99):
        told = [(summary["total"]["latency"][f"p{percent}_ns"], log[1]) for summary, log in runs]
        added = [found - percentile(sorted(log), percent) for found, log in told if found is not None]
        ways[percent] = statistics.median(added) if added else 0
        figures[f"p{percent}"] = percentile(latencies, percent) + ways[percent]
    return figures, ways[50]


def interval_of(total, figure):
    """The interval of a figure; none where the record has none."""
    if figure in ("rate", "bandwidth"):
        found = total[figure]
        return found and (found["low"], found["high"])
    return total["latency"][f"{figure}_interval_ns"]


def measure(options, kind):
    """A row: how often each interval held, of how many that were given."""
    seeds = [1000 * (KINDS.index(kind) + 1) + number for number in range(options.runs)]
    with concurrent.futures.ThreadPoolExecutor(options.parallel) as pool:
        runs = list(pool.map(lambda seed: run(options, kind, seed), seeds))
    truth, way = truth_of(runs)
    held, given = collections.Counter(), collections.Counter()
    for summary, _ in runs:
        for figure in FIGURES:
            found = interval_of(summary["total"], figure)
            if found is not None:
                given[figure] += 1
                held[figure] += found[0] <= truth[figure] <= found[1]
    cells = [f"{held[figure]} of {given[figure]}" for figure in FIGURES]
    long_run = f"{truth['rate']:.0f}/s, {truth['p50'] / 1e6:.2f} ms, {truth['p99'] / 1e6:.2f} ms"
    print(f"| {kind} | {' | '.join(cells)} | {long_run} | {way / 1e3:.0f} us |", flush=True)
    return held, given


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=40, help="runs of a kind")
    parser.add_argument("--time", type=float, default=3.0, help="seconds of a run")
    parser.add_argument("--strata", default=ROOT / "target/release/strata")
    parser.add_argument("--server", default=ROOT / "target/release/examples/slow_file")
    parser.add_argument("--parallel", type=int, default=1, help="runs at the same time")
    parser.add_argument("--kind", action="append", choices=KINDS)
    options = parser.parse_args()
    options.strata, options.server = str(options.strata), str(options.server)
    options.priority = priority()
    print(f"{datetime.date.today()}: {options.runs} runs of {options.time:g} s a kind, {THREADS} threads\n")
    print("| service times | rate | bandwidth | p50 | p99 | rate, p50, p99 in the long run | way through the kernel |\n|---|---|---|---|---|---|---|")
    held, given = collections.Counter(), collections.Counter()
    for kind in options.kind or KINDS:
        for sum_of, part in zip((held, given), measure(options, kind)):
            sum_of.update(part)
    print(f"| together | {' | '.join(f'{held[figure]} of {given[figure]}' for figure in FIGURES)} | | |")


if __name__ == "__main__":
    main()
