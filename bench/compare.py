#!/usr/bin/env python3
"""Compares strata with fio: interleaved runs, medians, ratios, as Markdown on standard output. See README.md beside it."""

import argparse
import dataclasses
import math
import os
import platform
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

# The helpers beside this file leave no compiled copies in the source tree.
sys.dont_write_bytecode = True

from cases import DEVNULL, RATIOS, TARGET
from measure import Bench, Failure, fio, median, progress, run_child, spread, strata
from targets import MIB, Unavailable

RATES = (1_000, 100_000, 300_000, 1_000_000)
NOP_GOAL = 8e6
RATE_ERROR_GOAL = 0.005
RSS_GOAL_BYTES = 64 * MIB
START_GOAL_MS = 50


def verdict(met):
    return "met" if met else "**missed**"


def si(value):
    for unit, suffix in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= unit:
            return f"{value / unit:.3f}{suffix}"
    return f"{value:.1f}"


def table(heads, rows):
    print("| " + " | ".join(heads) + " |")
    print("|" + "---|" * len(heads))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def commands(lines):
    print("```sh\n" + "\n".join(lines) + "\n```\n", flush=True)


def on_target(contender, target):
    """The contender with the target's path filled in."""
    words = tuple(word.replace(TARGET, target) for word in contender.arguments)
    return dataclasses.replace(contender, arguments=words)


def ratio_case(case, bench, options):
    """One row a contender, then the ratio of strata to fio's best, round by round."""
    with case.target(options) as (target, before):
        contenders = [on_target(contender, target) for contender in case.contenders]
        outcomes = bench.interleaved(contenders, case.pinned, before)
    more_is_better = case.metric == "rate"

    def value(outcome):
        return getattr(outcome, case.metric)

    def best(tool):
        judged = [contender for contender in contenders if contender.tool == tool and contender.judged]
        pick = max if more_is_better else min
        return pick(judged, key=lambda contender: median(map(value, outcomes[contender])))

    ours, theirs = best("strata"), best("fio")
    ratios = [value(our) / value(their) for our, their in zip(outcomes[ours], outcomes[theirs])]
    rows = []
    for contender, runs in outcomes.items():
        mark = " *" if contender in (ours, theirs) else ""
        rows.append([
            contender.tool + mark,
            contender.label,
            spread((run.rate for run in runs), si),
            f"{median(run.user_ns for run in runs):.1f}",
            f"{median(run.system_ns for run in runs):.1f}",
            f"{median(run.cpu_ns for run in runs):.1f}",
        ])
    table(["tool", "options", "operations/s", "user ns/op", "system ns/op", "CPU ns/op"], rows)
    ratio = statistics.median(ratios)
    met = ratio >= case.goal if more_is_better else ratio <= case.goal
    bound = "at least" if more_is_better else "at most"
    shown = spread(ratios, lambda value: f"{value:.3f}")
    print(f"Ratio strata / fio (rows with *): {shown}; goal {bound} {case.goal:.3g}: {verdict(met)}\n")
    commands(bench.shown(contender, case.pinned) for contender in contenders)


def nop_case(bench, _options):
    arguments = ("--op", "nop", "-q", "32", "--engine", "io_uring")
    contenders = [strata("nop", DEVNULL, *arguments)]
    runs = bench.interleaved(contenders, pinned=True)[contenders[0]]
    rate = median(run.rate for run in runs)
    table(["operations/s", "CPU ns/op", "goal", ""], [[
        spread((run.rate for run in runs), si),
        f"{median(run.cpu_ns for run in runs):.1f}",
        f"at least {si(NOP_GOAL)}",
        verdict(rate >= NOP_GOAL),
    ]])
    commands([bench.shown(contenders[0], pinned=True)])


def arrivals_case(bench, _options):
    rows, lines = [], []
    for kind, process in (("constant", "linear"), ("poisson", "poisson")):
        for rate in RATES:
            ours = strata(f"{kind} {rate}", "null:", "--op", "read", "-b", "4k", "-s", "1t", "--engine", "null",
                          "--rate", str(rate), "--arrivals", kind)
            theirs = fio(f"{kind} {rate}", "--ioengine=null", "--rw=read", "--bs=4k", "--size=1t",
                         f"--rate_iops={rate}", f"--rate_process={process}")
            outcomes = bench.interleaved([ours, theirs], pinned=True)
            ends = [run.record["phases"][-1]["arrivals"] for run in outcomes[ours]]
            errors = [end["started_per_second"] / rate - 1 for end in ends]
            # A Poisson count has a standard error of its own, however well it is kept.
            chance = 3 / math.sqrt(rate * bench.seconds * bench.repeats) if kind == "poisson" else 0
            allowed = RATE_ERROR_GOAL + chance
            met = abs(statistics.mean(errors)) <= allowed
            unserved = max(end["unserved_operations"] for end in ends)
            others = [run.rate / rate - 1 for run in outcomes[theirs]]
            rows.append([kind, si(rate), percent(errors), str(unserved), percent(others),
                         f"{allowed * 100:.2f} %: {verdict(met)}"])
            lines += [bench.shown(ours, True), bench.shown(theirs, True)]
    table(["arrivals", "asked/s", "strata: error", "unserved at most", "fio: error", "mean error of strata within"], rows)
    commands(lines)


def percent(errors):
    return spread(errors, lambda value: f"{value * 100:+.3f} %")


def memory_case(bench, _options):
    rows, lines = [], []
    for engine in ("psync", "io_uring"):
        depth = "1" if engine == "psync" else "32"
        for count in (1_000_000, 20_000_000):
            contender = strata(engine, DEVNULL, "--op", "write", "-b", "4k", "-s", "100g", "-t", "4", "-q", depth,
                               "--engine", engine, "--count", str(count))
            progress(f"memory: {engine}, {count} operations")
            peaks = [bench.run(contender, limited=False).record["peak_rss_bytes"] for _ in range(bench.repeats)]
            rows.append([engine, depth, si(count), spread(peaks, lambda value: f"{value / MIB:.1f} MiB"),
                         verdict(max(peaks) < RSS_GOAL_BYTES)])
            lines.append(" ".join(["strata", *contender.arguments, "--live none --json RECORD"]))
    progress("")
    table(["driver", "depth", "operations", "peak resident memory", "under 64 MiB"], rows)
    commands(lines)


def start_case(bench, _options):
    if not shutil.which("strace"):
        raise Unavailable("strace is not installed")
    ours = strata("start", DEVNULL, "--op", "write", "-b", "4k", "--engine", "psync", "--count", "1")
    theirs = fio("start", "--ioengine=psync", "--rw=write", "--bs=4k", f"--filename={DEVNULL}", "--size=4k")
    rows = []
    for contender in (ours, theirs):
        words = bench.command(contender, limited=False)
        starts, walls = [], []
        for _ in range(bench.repeats):
            starts.append(first_operation_ms(bench, words))
            walls.append(run_child(words, 60)[2] * 1e3)
        goal = verdict(median(starts) < START_GOAL_MS) if contender is ours else ""
        rows.append([contender.tool, spread(starts, lambda value: f"{value:.1f} ms"),
                     spread(walls, lambda value: f"{value:.1f} ms"), goal])
    table(["tool", "start to first operation (traced)", "whole command, one operation", "under 50 ms"], rows)
    commands([" ".join(["strace -f --seccomp-bpf -ttt -y -e trace=execve,pwrite64,pwritev2,write strata",
                        *ours.arguments, "--live none --json RECORD"])])


def first_operation_ms(bench, words):
    """From the program's execve to the first 4 KiB written to /dev/null, by strace."""
    trace = os.path.join(bench.scratch.name, "trace")
    run_child(["strace", "-f", "--seccomp-bpf", "-ttt", "-y", "-e", "trace=execve,pwrite64,pwritev2,write", "-o", trace,
               *words], 60)
    start = None
    with open(trace, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            stamp = re.match(r"(?:\d+\s+)?(\d+\.\d+) (\w+)\(", line)
            if not stamp:
                continue
            if stamp[2] == "execve" and start is None:
                start = float(stamp[1])
            elif start is not None and "<" + DEVNULL in line and "4096" in line:
                return (float(stamp[1]) - start) * 1e3
    raise Failure(f"no write to {DEVNULL} was seen in the trace of {words[0]}")


SPECIAL = {
    "nop": ("No-op in the ring, depth 32, full statistics: rate on one core", nop_case),
    "arrivals": ("Open loop on null: achieved rate", arrivals_case),
    "memory": ("Memory with 4 workers", memory_case),
    "start": ("Start to first operation", start_case),
}


def all_cases():
    cases = {case.name: (case.title, lambda bench, options, case=case: ratio_case(case, bench, options)) for case in RATIOS}
    return cases | SPECIAL


def options_parser(cases, description=__doc__):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--case", action="append", choices=list(cases), metavar="NAME", help="only this one; may be repeated")
    parser.add_argument("--list", action="store_true", help="list the cases and end")
    parser.add_argument("--strata", default=default_strata(), help="the binary (%(default)s)")
    parser.add_argument("--repeats", type=int, default=int(os.environ.get("REPEATS", "5")), help="rounds; also REPEATS (%(default)s)")
    parser.add_argument("--time", type=int, default=3, help="seconds of one run (%(default)s)")
    parser.add_argument("--dir", default="/var/tmp", help="scratch directory on the drive to measure (%(default)s)")
    parser.add_argument("--disk-mib", type=int, default=4096, help="size of the file on the drive (%(default)s)")
    parser.add_argument("--memory-mib", type=int, default=1024, help="size of targets in memory (%(default)s)")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)), help="processor for runs on one core (%(default)s)")
    return parser


def default_strata():
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    return os.path.join(os.environ.get("CARGO_TARGET_DIR", os.path.join(root, "target")), "release", "strata")


def head(options):
    def first_line(*words):
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()[0]

    with open("/proc/cpuinfo", encoding="utf-8") as info:
        model = next((line.split(":")[1].strip() for line in info if line.startswith("model name")), platform.machine())
    print(f"{time.strftime('%Y-%m-%d')}: {model}, {os.cpu_count()} processors, Linux {platform.release()}, "
          f"{first_line(options.strata, '--version')}, {first_line('fio', '--version')}; "
          f"medians of {options.repeats} interleaved runs of {options.time} s (lowest to highest).\n")


def main():
    cases = all_cases()
    options = options_parser(cases).parse_args()
    if options.list:
        for name, (title, _) in cases.items():
            print(f"{name:15} {title}")
        return 0
    options.strata = os.path.abspath(options.strata)
    for tool, remedy in ((options.strata, "make build"), ("fio", "apt-get install fio"), ("taskset", "apt-get install util-linux")):
        if not shutil.which(tool):
            print(f"compare: {tool} is not there: {remedy}", file=sys.stderr)
            return 2
    # A terminated comparison cleans up as an interrupted one does.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    bench = Bench(options.strata, options.time, options.repeats, options.core)
    head(options)
    chosen = options.case or list(cases)
    return measure_all((name, cases[name][0], lambda run=cases[name][1]: run(bench, options)) for name in chosen)


def measure_all(cases):
    """Runs cases given as name, title and what measures and prints; the exit code."""
    failed = False
    for name, title, run in cases:
        print(f"## {name}: {title}\n", flush=True)
        try:
            run()
        except Unavailable as error:
            print(f"Not measured: {error}.\n", flush=True)
        except (Failure, subprocess.CalledProcessError) as error:
            failed = True
            print(f"Failed: `{error}`\n", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
