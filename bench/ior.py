#!/usr/bin/env python3
"""IOR and mdtest with their own tools and with `strata as ior` and `strata as mdtest`, in turns. Markdown on standard output."""

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile

# name, tool, words: of IO500, cut to what a page cache holds, and what takes about a second.
CELLS = (
    ("easy", "ior", "-w -r -C -Q 1 -g -e -t 2m -b 512m -F"),
    ("hard", "ior", "-w -r -C -Q 1 -g -e -t 47008 -b 47008 -s 6000"),
    ("small", "ior", "-w -r -C -Q 1 -g -e -t 4k -b 64m"),
    ("md-easy", "mdtest", "-n 20000 -u -L -F -N 1"),
    ("md-hard", "mdtest", "-n 10000 -w 3901 -e 3901 -N 1 -F"),
    ("md-dirs", "mdtest", "-n 10000 -u -D -N 1"),
)


def options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", required=True, help="directory with ior and mdtest")
    parser.add_argument("--mpirun", default="mpirun --oversubscribe --bind-to none")
    parser.add_argument("--strata", default="target/release/strata")
    parser.add_argument("--dir", default="/dev/shm", help="a directory of the file system to measure")
    parser.add_argument("--tasks", default="2")
    parser.add_argument("--rounds", type=int, default=int(os.environ.get("REPEATS", "5")))
    parser.add_argument("--cell", action="append", choices=[cell[0] for cell in CELLS])
    return parser.parse_args()


def figures(tool, text):
    """Figures of a run by row: MiB/s of IOR, operations a second of mdtest."""
    if tool == "ior":
        rows = re.findall(r"^(write|read)\s+([0-9.]+)\s", text, re.MULTILINE)
        return {f"{access} MiB/s": float(rate) for access, rate in rows[:2]}
    rows = re.findall(r"^   ((?:File|Directory) \w+)\s+([0-9.]+)\s", text, re.MULTILINE)
    return {f"{row} /s": float(rate) for row, rate in rows if float(rate) > 0}


def run(own, words, tool):
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    with tempfile.TemporaryDirectory(dir=own.dir) as place:
        target = ["-o", f"{place}/f"] if tool == "ior" else ["-d", f"{place}/d"]
        environment["XDG_STATE_HOME"] = f"{place}/state"
        done = subprocess.run([*words, *target], cwd=place, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{words}: {done.returncode}\n{done.stdout}\n{done.stderr}")
        return figures(tool, done.stdout)


def main():
    own = options()
    strata = os.path.abspath(own.strata)
    print("| load | figure | tool | strata | ratio, by round |")
    print("|---" * 5 + "|")
    for name, tool, words in CELLS:
        if own.cell and name not in own.cell:
            continue
        tasks = ["-N", own.tasks] if tool == "ior" else ["--tasks", own.tasks]
        contenders = {
            "tool": [*own.mpirun.split(), "-n", own.tasks, os.path.join(os.path.abspath(own.peers), tool), *words.split()],
            "strata": [strata, "as", tool, *tasks, *words.split()],
        }
        results = {contender: [] for contender in contenders}
        for turn in range(own.rounds):
            for contender in sorted(contenders, reverse=turn % 2 == 0):
                results[contender].append(run(own, contenders[contender], tool))
                print(f"{name} {contender} {results[contender][-1]}", file=sys.stderr)
        for figure in results["strata"][0]:
            theirs, ours = ([one[figure] for one in results[contender]] for contender in ("tool", "strata"))
            ratios = sorted(own_one / their_one for their_one, own_one in zip(theirs, ours))
            print(f"| {name} | {figure} | {statistics.median(theirs):,.0f} | {statistics.median(ours):,.0f} "
                  f"| {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}) |")


if __name__ == "__main__":
    main()
