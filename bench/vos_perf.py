#!/usr/bin/env python3
"""The guide's line of vos_perf with DAOS's own tool and with `strata as vos_perf`, in turns, on tmpfs. Markdown on standard output."""

import argparse
import contextlib
import os
import re
import statistics
import subprocess
import sys
import tempfile

# Size of a value, dkeys, size of the pool: the guide's line, cut to a store of a few GiB.
CELLS = (("64", 1_000_000, "2G"), ("4K", 400_000, "4G"), ("1M", 3000, "4G"))
TESTS = ("UPDATE", "FETCH")


def options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", required=True, help="vos_perf of DAOS")
    parser.add_argument("--library-path", default=os.environ.get("LD_LIBRARY_PATH", ""), help="of the peer's libraries")
    parser.add_argument("--strata", default="target/release/strata")
    parser.add_argument("--dir", default="/dev/shm", help="a directory on tmpfs")
    parser.add_argument("--cpu", default="1", help="processor that both are pinned to")
    parser.add_argument("--real-time", action="store_true", help="both run with chrt --rr 10, on a machine that is not idle")
    parser.add_argument("--rounds", type=int, default=int(os.environ.get("REPEATS", "5")))
    parser.add_argument("--cell", action="append", choices=[cell[0] for cell in CELLS])
    parser.add_argument("--also", action="append", default=[], metavar="WORDS",
                        help="another run of strata with these words added, such as '--checksum crc32'")
    return parser.parse_args()


def rates(text):
    """Operations a second of each test."""
    found = {}
    for test in TESTS:
        block = text.split(f"{test} successfully completed:")
        if len(block) < 2:
            raise SystemExit(f"no result of {test}:\n{text}")
        found[test] = float(re.search(r"rate\s*: ([0-9.]+)", block[1]).group(1))
    return found


@contextlib.contextmanager
def unthrottled(is_wanted):
    """Real-time processes keep their processor: else the kernel takes it from them for 50 ms of each second, which is a third of a phase."""
    limit = "/proc/sys/kernel/sched_rt_runtime_us"
    if not is_wanted:
        yield
        return
    with open(limit, encoding="utf-8") as file:
        before = file.read()

    def write(value):
        with open(limit, "w", encoding="utf-8") as file:
            file.write(value)

    write("-1")
    try:
        yield
    finally:
        write(before)


def run(own, tool, environment, size, dkeys, pool):
    with tempfile.TemporaryDirectory(dir=own.dir) as place:
        words = ["-D", place, "-P", pool, "-d", str(dkeys), "-a", "1", "-n", "1", "-s", size, "-z", "-R", "U;p F;p"]
        before = ["chrt", "--rr", "10"] if own.real_time else []
        done = subprocess.run([*before, "taskset", "-c", own.cpu, *tool, *words], cwd=place, env=environment,
                              capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{tool}: {done.returncode}\n{done.stdout}\n{done.stderr}")
        return rates(done.stdout)


def main():
    own = options()
    strata = [os.path.abspath(own.strata), "as", "vos_perf"]
    # As daos_server starts its engines: tmpfs knows no unsafe shutdowns, and is to be flushed like storage-class memory.
    memory = {"PMEMOBJ_CONF": "sds.at_create=0", "PMEM_IS_PMEM_FORCE": "1"}
    peer = {**os.environ, **memory, "LD_LIBRARY_PATH": own.library_path, "D_LOG_FILE": "/dev/null"}
    contenders = {"DAOS": ([own.peer], peer), "strata": (strata, None)}
    for words in own.also:
        contenders[f"strata {words}"] = ([*strata, *words.split()], None)
    print(f"| value | test | {' | '.join(contenders)} | ratio, by round |")
    print("|---" * (3 + len(contenders)) + "|")
    with unthrottled(own.real_time):
        for size, dkeys, pool in CELLS:
            if own.cell and size not in own.cell:
                continue
            results = {name: [] for name in contenders}
            for turn in range(own.rounds):
                order = list(contenders)
                for name in order[turn % len(order):] + order[:turn % len(order)]:
                    tool, environment = contenders[name]
                    results[name].append(run(own, tool, environment, size, dkeys, pool))
                    print(f"{size} {name} {results[name][-1]}", file=sys.stderr)
            for test in TESTS:
                columns = [[one[test] for one in results[name]] for name in contenders]
                texts = [f"{statistics.median(column):,.0f}/s" for column in columns]
                ratios = sorted(ours / theirs for theirs, ours in zip(columns[0], columns[1]))
                print(f"| {size} | {test} | {' | '.join(texts)} | {statistics.median(ratios):.2f} "
                      f"({ratios[0]:.2f} to {ratios[-1]:.2f}) |")


if __name__ == "__main__":
    main()
