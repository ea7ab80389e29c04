#!/usr/bin/env python3
"""Measures the object layer: the embedded store beside memory copies and an embedded engine, engines beside bare RPCs, S3, RADOS. Markdown.
See README.md beside it."""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

# The helpers beside this file leave no compiled copies in the source tree.
sys.dont_write_bytecode = True

from measure import Failure, median, progress

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
CORE = 1
# What is stored and read, with how many keys, and the goals of updates and fetches a second.
SMALL = [("64 B", "64", 1_000_000, 500e3, 2.5e6), ("4 KiB", "4k", 100_000, 300e3, 1.5e6)]
LARGE_KEYS = 512


def output(words, timeout_s=600, **more):
    done = subprocess.run(words, capture_output=True, text=True, timeout=timeout_s, **more)
    if done.returncode != 0:
        raise Failure(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


class Bench:
    def __init__(self, arguments):
        self.arguments = arguments
        self.scratch = tempfile.TemporaryDirectory(prefix="strata-bench-")
        self.examples = os.path.join(os.path.dirname(arguments.strata), "examples")

    def example(self, name):
        path = os.path.join(self.examples, name)
        if not os.path.exists(path):
            raise Failure(f"{path} is missing: cargo build --release --examples -p vos -p object@0.1.0")
        return path

    def strata(self, directory, *words, core=CORE):
        """One run of strata object on a store that it makes and removes; rates by operation."""
        store = tempfile.mkdtemp(dir=directory, prefix="strata-bench-")
        record = os.path.join(self.scratch.name, "record.json")
        line = ["taskset", "-c", str(core)] if core is not None else []
        line += [self.arguments.strata, "object", f"vos:{store}/pool", *words, "--warmup", "none", "--live", "none"]
        try:
            output([*line, "--json", record])
        finally:
            shutil.rmtree(store)
        with open(record, encoding="utf-8") as file:
            found = json.load(file)
        if found["status"] != "complete" or found["debug_build"]:
            raise Failure(f"{' '.join(line)}: {found['status']}, debug build: {found['debug_build']}")
        return {phase["plan"]["name"]: phase["summary"]["total"] for phase in found["phases"]}

    def rounds(self, contenders):
        """Results of each contender, all of them in turns, each round beginning with another one."""
        names = list(contenders)
        results = {name: [] for name in names}
        for turn in range(self.arguments.repeats):
            for name in names[turn % len(names) :] + names[: turn % len(names)]:
                progress(f"{name}, round {turn + 1}")
                results[name].append(contenders[name]())
        return results


def rate(results, phase):
    return median([one[phase]["operations_per_second"] for one in results])


def bandwidth(results, phase):
    return median([one[phase]["bytes_per_second"] for one in results])


def thousand(value):
    return f"{value / 1e3:.1f} k/s"


def verdict(is_met):
    return "met" if is_met else "**missed**"


def small(bench):
    print("| value | update | goal | | fetch | goal | |\n|---|---|---|---|---|---|---|")
    words = ("--op", "update,fetch", "--time", f"{bench.arguments.seconds}s")
    contenders = {
        name: lambda size=size, keys=keys: bench.strata(
            "/dev/shm", "--op", "update", "--value-size", size, "--dkeys", str(keys)
        ) | bench.strata("/dev/shm", *words, "--value-size", size, "--dkeys", str(keys), "--scm", "9g")
        for name, size, keys, _, _ in SMALL
    }
    results = bench.rounds(contenders)
    for name, _, _, update_goal, fetch_goal in SMALL:
        update, fetch = rate(results[name], "update"), rate(results[name], "fetch")
        print(
            f"| {name} | {thousand(update)} | {thousand(update_goal)} | {verdict(update >= update_goal)} "
            f"| {thousand(fetch)} | {thousand(fetch_goal)} | {verdict(fetch >= fetch_goal)} |"
        )


def large(bench):
    example = bench.example("store_speed")
    # The first update takes the pages of the pool from the system; what is measured is the second.
    words = ("--op", "update,update,fetch", "--value-size", "1m", "--dkeys", str(LARGE_KEYS), "--scm", "2g")
    words += ("--time", f"{bench.arguments.seconds}s", "--refill", "once")

    def copies():
        text = output(["taskset", "-c", str(CORE), example, "/dev/shm", "--only", "memory"])
        return {what: float(rate) for what, rate in re.findall(r"copy (into|out of) memory +1048576 B.* ([\d.]+) MB/s", text)}

    results = bench.rounds({"strata": lambda: bench.strata("/dev/shm", *words), "copies": copies})
    print("\n| 1 MiB | strata object | memory copy | ratio | |\n|---|---|---|---|---|")
    for phase, what in (("update", "into"), ("fetch", "out of")):
        own = bandwidth(results["strata"], phase) / 1e9
        plain = median([one[what] for one in results["copies"]]) / 1e3
        print(f"| {phase} | {own:.2f} GB/s | {plain:.2f} GB/s | {own / plain:.2f} | {verdict(own / plain >= 0.8)} |")


def disk(bench):
    embedded = bench.arguments.embedded
    seconds = bench.arguments.seconds

    def peer(threads):
        directory = tempfile.mkdtemp(dir=bench.arguments.dir, prefix="strata-bench-")
        try:
            text = output([embedded, f"{directory}/db", "4096", str(threads), str(seconds)])
        finally:
            shutil.rmtree(directory)
        return float(re.search(r"puts (\d+)/s", text).group(1))

    def own(threads):
        words = ("--op", "put", "--value-size", "4k", "--dkeys", "400000", "--pattern", "sequential", "--scm", "4g")
        return bench.strata(bench.arguments.dir, *words, "-t", str(threads), "--time", f"{seconds}s", core=None)

    print("\n| 4 KiB, each durable by fdatasync | strata | fjall | ratio | |\n|---|---|---|---|---|")
    for threads in (1, 4):
        results = bench.rounds({"strata": lambda: own(threads), "fjall": lambda: peer(threads)})
        ours, theirs = rate(results["strata"], "put"), median(results["fjall"])
        print(f"| {threads} threads | {ours:.0f}/s | {theirs:.0f}/s | {ours / theirs:.2f} | {verdict(ours >= theirs)} |")


def opening(bench):
    text = output(["taskset", "-c", str(CORE), bench.example("store_speed"), "/dev/shm", "--only", "open", "--keys", "10000000"])
    print("\nTen million keys:\n")
    for line in text.splitlines():
        print(f"    {line}")


def engine(bench):
    print("\nBehind an engine, 16 in flight, a core each:\n")
    words = [bench.example("engine_speed"), str(bench.arguments.repeats * 2), "500"]
    for line in output(words).splitlines():
        print(f"    {line}")


def s3(bench):
    words = ["taskset", "-c", "0", bench.example("s3_speed"), str(bench.arguments.seconds)]
    rows = {}
    for turn in range(bench.arguments.repeats):
        progress(f"s3, round {turn + 1}")
        for line in output(words).splitlines()[1:]:
            depth, signing, *figures = line.split()
            rows.setdefault((depth, signing), []).append([float(figure) for figure in figures])
    print("\n| depth | signed | 4 KiB GETs | CPU of the client a GET | at most 12 us | memory |\n|---|---|---|---|---|---|")
    for (depth, signing), figures in rows.items():
        gets, cpu, memory = (median(column) for column in zip(*figures))
        print(f"| {depth} | {signing} | {thousand(gets)} | {cpu:.1f} us | {verdict(cpu <= 12)} | {memory:.1f} MiB |")


def rados(bench):
    print("\nRADOS:\n")
    environment = {**os.environ, "STRATA": bench.arguments.strata}
    words = [os.path.join(HERE, "rados.sh"), str(bench.arguments.repeats), str(bench.arguments.seconds)]
    for line in output(words, 3000, env=environment).splitlines():
        print(f"    {line}")


CASES = {case.__name__: case for case in (small, large, disk, opening, engine, s3, rados)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--strata", default=os.path.join(ROOT, "target/release/strata"))
    parser.add_argument("--embedded", default=os.path.join(HERE, "embedded/target/release/embedded"))
    parser.add_argument("--dir", default=ROOT, help="a directory on a drive")
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--case", action="append", choices=sorted(CASES))
    arguments = parser.parse_args()
    arguments.strata = os.path.abspath(arguments.strata)
    bench = Bench(arguments)
    for name in arguments.case or CASES:
        CASES[name](bench)
        sys.stdout.flush()


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(f"object.py: {failure}")
