#!/usr/bin/env python3
"""Gives the same words to fio and to `strata as fio`, in turns, and compares what both report. Markdown on standard output."""

import math
import signal
import statistics
import sys

# The helpers beside this file leave no compiled copies in the source tree.
sys.dont_write_bytecode = True

import targets
from cases import TARGET
from compare import head, measure_all, options_parser, si, table
from measure import Bench, dialect, fio, spread

COMMON = (f"--filename={TARGET}",)
DIRECT = ("--direct=1", *COMMON)
# name, title, target, words
CASES = (
    ("null", "null engine, sequential 4 KiB reads", lambda options: targets.path_of("/dev/null"),
     ("--ioengine=null", "--rw=read", "--bs=4k", "--size=1t")),
    ("psync", "file on the drive, direct, psync, 4 KiB random reads", targets.disk_file,
     ("--ioengine=psync", "--rw=randread", "--bs=4k", *DIRECT)),
    ("libaio", "file on the drive, direct, libaio, depth 16, 4 KiB random reads", targets.disk_file,
     ("--ioengine=libaio", "--iodepth=16", "--rw=randread", "--bs=4k", *DIRECT)),
    ("io_uring", "file on the drive, direct, io_uring, depth 16, 4 KiB random reads", targets.disk_file,
     ("--ioengine=io_uring", "--iodepth=16", "--rw=randread", "--bs=4k", *DIRECT)),
    ("sequential", "file on the drive, direct, libaio, depth 4, 1 MiB sequential reads", targets.disk_file,
     ("--ioengine=libaio", "--iodepth=4", "--rw=read", "--bs=1m", *DIRECT)),
    ("mixed", "loop device over shared memory, direct, libaio, depth 8, 70 % reads", targets.shm_loop,
     ("--ioengine=libaio", "--iodepth=8", "--rw=randrw", "--rwmixread=70", "--bs=4k", "--norandommap", *DIRECT)),
    ("jobs", "file on the drive, direct, 2 jobs of libaio at depth 8, one group", targets.disk_file,
     ("--ioengine=libaio", "--iodepth=8", "--rw=randread", "--bs=4k", "--numjobs=2", "--group_reporting", *DIRECT)),
    ("cached", "file in the page cache of ext4, psync, 4 KiB random reads", targets.cached_file,
     ("--ioengine=psync", "--rw=randread", "--bs=4k", "--invalidate=0", *COMMON)),
    ("rate", "null engine, 20,000 operations a second asked for", lambda options: targets.path_of("/dev/null"),
     ("--ioengine=null", "--rw=read", "--bs=4k", "--size=1t", "--rate_iops=20000")),
)
PERCENTILES = ("50.000000", "90.000000", "99.000000", "99.900000")


def directions(outcome):
    """Figures of one run by direction and name."""
    found = {}
    for job in outcome.record["jobs"]:
        for direction in ("read", "write"):
            part = job[direction]
            if part["total_ios"] == 0:
                continue
            latency = part["clat_ns"]
            figures = {"IOPS": part["iops"], "clat mean": latency["mean"], "lat mean": part["lat_ns"]["mean"],
                       "slat mean": part["slat_ns"]["mean"]}
            for percent in PERCENTILES:
                figures[f"clat p{float(percent):g}"] = latency.get("percentile", {}).get(percent, 0)
            found.update({(direction, name): value for name, value in figures.items()})
    return found


def agreement(ours, theirs):
    """Median ratio, round by round, and whether it lies within what fio differs from itself."""
    ratios = [our / their for our, their in zip(ours, theirs) if their > 0]
    if not ratios:
        return None
    middle = statistics.median(theirs)
    noise = max(abs(math.log(value / middle)) for value in theirs if value > 0)
    within = abs(math.log(max(statistics.median(ratios), 1e-9))) <= noise or min(ratios) <= 1 <= max(ratios)
    return ratios, noise, within


def run_case(bench, options, target, words):
    with target(options) as (path, before):
        words = tuple(word.replace(TARGET, path) for word in words)
        contenders = [fio("fio", *words), dialect("strata as fio", *words)]
        outcomes = bench.interleaved(contenders, before=before)
    theirs, ours = ([directions(run) for run in outcomes[contender]] for contender in contenders)
    rows = []
    for key in theirs[0]:
        pair = [[run.get(key, 0) for run in runs] for runs in (ours, theirs)]
        found = agreement(*pair)
        if found is None or statistics.median(pair[1]) == 0:
            continue
        ratios, noise, within = found
        form = si if key[1] == "IOPS" else microseconds
        rows.append([f"{key[0]} {key[1]}", form(statistics.median(pair[1])), form(statistics.median(pair[0])),
                     spread(ratios, lambda value: f"{value:.3f}"), f"{(math.exp(noise) - 1) * 100:.1f} %",
                     "yes" if within else "**no**"])
    table(["figure", "fio", "strata as fio", "ratio", "fio against itself, up to", "within noise"], rows)
    print("```sh\n" + bench.shown(contenders[0]) + "\n" + bench.shown(contenders[1]) + "\n```\n", flush=True)


def microseconds(value_ns):
    return f"{value_ns / 1000:.2f} us"


def main():
    names = [name for name, *_ in CASES]
    options = options_parser(names, __doc__).parse_args()
    if options.list:
        for name, title, *_ in CASES:
            print(f"{name:15} {title}")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    bench = Bench(options.strata, options.time, options.repeats, options.core)
    head(options)
    chosen = [case for case in CASES if not options.case or case[0] in options.case]
    return measure_all((name, title, lambda target=target, words=words: run_case(bench, options, target, words))
                       for name, title, target, words in chosen)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
