#!/usr/bin/env python3
"""Runs `strata stack` several times in a row and compares the verdicts: the same layer and load each time, and every factor in the
prediction interval of every other run. With --neighbour, a busy process takes half of the processors: the same verdict then, or "inconclusive", never another.

    bench/verdict.py STRATA [--runs 10] [--neighbour] [--keep DIR] [WORDS of strata stack...]

--keep has the records in DIR, a folder a run.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile


def verdict(strata, words, keep=None):
    """The verdict of one run, from its record."""
    with contextlib.ExitStack() as stack:
        out = keep or stack.enter_context(tempfile.TemporaryDirectory())
        subprocess.run([strata, "stack", "--live", "none", "--out", out, *words], check=True, stdout=subprocess.DEVNULL)
        with open(os.path.join(out, "record.json"), encoding="utf-8") as record:
            return json.load(record)["stack"]["verdict"]


def spin():
    """A process that keeps one processor busy, at work until it is ended."""
    return subprocess.Popen([sys.executable, "-c", "while True: pass"])


def name(found):
    return (found["kind"], found["layer"], found["load"])


def disagreements(verdicts):
    """Pairs of runs whose factors are not in each other's prediction intervals."""
    def holds(one, other):
        factors = one["factor"], other["factor"]
        return None in factors or one["prediction_low"] <= other["factor"] <= one["prediction_high"]
    pairs = [(a, b) for a in range(len(verdicts)) for b in range(a)]
    return [(b + 1, a + 1) for a, b in pairs if not (holds(verdicts[a], verdicts[b]) and holds(verdicts[b], verdicts[a]))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("strata")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--neighbour", action="store_true")
    parser.add_argument("--keep")
    arguments, words = parser.parse_known_args()
    kept = lambda name: arguments.keep and os.path.join(arguments.keep, name)
    found = []
    for run in range(arguments.runs):
        found.append(verdict(arguments.strata, words, kept(str(run + 1))))
        print(f"{run + 1:2}: {found[-1]['kind']}: {found[-1]['sentence']}", flush=True)
    names = {name(one) for one in found}
    good = len(names) == 1 and not disagreements(found)
    if len(names) > 1:
        print(f"{len(names)} different verdicts")
    for pair in disagreements(found):
        print(f"runs {pair[0]} and {pair[1]}: the factor of one is not in the interval of the other")
    if arguments.neighbour:
        spinning = [spin() for _ in range(max(1, (os.cpu_count() or 2) // 2))]
        try:
            beside = verdict(arguments.strata, words, kept("neighbour"))
        finally:
            for process in spinning:
                process.kill()
                process.wait()
        print(f"with a neighbour: {beside['kind']}: {beside['sentence']}")
        good = good and (beside["kind"] == "inconclusive" or name(beside) in names)
    print("good" if good else "the verdict does not repeat")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
