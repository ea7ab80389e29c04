#!/usr/bin/env python3
"""Applications: `strata app` beside `strata fs` and `strata object` with the same operations, what a description costs, and fdb-hammer with
one index and one for each process. Contenders take turns; Markdown on standard output. Cases:

  same    one process, 1 MiB calls on --mib of files (beside `strata fs`) and of arrays of `vos:` (beside `strata object`), verified:
          bytes a second of the writing and of the reading stage; wanted: 0.95
  cost    nanoseconds of CPU a call of the application on `null:`, less those of a no-op of `strata media null:`; wanted: below 100
  fdb     fdb-hammer, pattern A, on `vos:` and on an engine on loopback: bytes a second written and read with an index for each process
          over those with a shared one (the seed's, on DAOS: 35 over 20 and 68 over 13 GiB/s)
"""

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

# The helpers beside this file leave no compiled copies in the source tree.
sys.dont_write_bytecode = True

from files import Ran, bandwidth, engine, in_turns, table

PLAIN = """format = 1
name = "plain"
version = "1"
summary = "One process writes items, and reads them"

[parameters]
count = {{ default = {count}, min = 1, help = "Items" }}

[[set]]
name = "data"
kind = "array"
layout = "iteration"
order = "item"
size = "{size}"
transfer = "1MiB"

[[group]]
name = "writers"
stage = "write"
processes = 1
iterations = 1

[[group.step]]
name = "write"
items = "count"
begin = ["create data"]
each = ["write data"]
end = ["close data"]

[[group]]
name = "readers"
stage = "read"
processes = 1
iterations = 1

[[group.step]]
name = "read"
of = "writers.write"
begin = ["open data"]
each = ["read data"]
end = ["close data"]
"""


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", action="append", choices=("same", "cost", "fdb"))
    parser.add_argument("--strata", default="target/release/strata")
    parser.add_argument("--memory", default="/dev/shm", help="a directory in memory")
    parser.add_argument("--mib", type=int, default=512, help="data of a run of the case same (512)")
    parser.add_argument("--rounds", type=int, default=5)
    own = parser.parse_args()
    own.strata = os.path.abspath(own.strata)
    return own


def record_of(own, words, place):
    """The record of a run of strata with all its phases counted: an application has no warm-up."""
    record = os.path.join(place, "record.json")
    Ran([own.strata, *words, "--live", "none", "--json", record], place)
    with open(record, encoding="utf-8") as file:
        return json.load(file)


def moved(own, words, place):
    """MiB a second of the writing and of the reading stage."""
    return {f"{name} MiB/s": rate for name, rate in bandwidth(record_of(own, words, place)).items()}


def described(place, count, size):
    path = os.path.join(place, "plain.toml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(PLAIN.format(count=count, size=size))
    return path


def same(own, place):
    description, data = described(place, own.mib, "1MiB"), os.path.join(place, "data")
    os.mkdir(data)
    shape = ["--shape", "private", "--file-size", f"{own.mib}m", "--block-size", "1m", "--verify"]
    contenders = {
        "strata fs": lambda: moved(own, ["fs", data, "--op", "write,read", *shape], place),
        "strata app": lambda: moved(own, ["app", description, data], place),
    }
    table("files, 1 MiB; ratios to strata fs", in_turns(own, contenders), "strata fs")
    words = ["--op", "write,read", "--objects", 1, "--value-size", "1m", "--records", own.mib, "--verify"]

    def in_pool(front):
        with pool(own, place, 4 * own.mib) as target:
            return moved(own, front(target), place)

    contenders = {
        "strata object": lambda: in_pool(lambda target: ["object", target, *words]),
        "strata app": lambda: in_pool(lambda target: ["app", description, target]),
    }
    table("arrays of vos:, 1 MiB; ratios to strata object", in_turns(own, contenders), "strata object")


def cost(own, place):
    description = described(place, 2_000_000, "8")

    def cpu_ns(words, names):
        phases = record_of(own, words, place)["phases"]
        return {f"{name}, ns of CPU": phase["summary"]["cpu_ns_per_operation"] for name, phase in zip(names, phases)}

    contenders = {
        "no-op of media null:": lambda: cpu_ns(["media", "null:", "--op", "nop", "--count", 2_000_000], ["a call"]),
        "app on null:": lambda: cpu_ns(["app", description, "null:", "--no-verify"], ["write of 8 bytes", "read of 8 bytes"]),
    }
    found = in_turns(own, contenders)
    floor = statistics.median(found["no-op of media null:"]["a call, ns of CPU"])
    costs = {name: [one - floor for one in each] for name, each in found["app on null:"].items()}
    table(f"the description of a call: above the {floor:.0f} ns of a no-op of media null:", {"app on null:": costs}, "app on null:")


@contextlib.contextmanager
def pool(own, place, mib):
    """A new embedded store: what earlier runs left in one is no part of a figure."""
    path = os.path.join(place, "pool")
    subprocess.run([own.strata, "pool", "create", f"vos:{path}", "--scm", f"{mib}m"], check=True, capture_output=True)
    try:
        yield f"vos:{path}"
    finally:
        shutil.rmtree(path)


def fdb(own, place):
    size = ["--set", "size=1MiB,steps=8,levels=16,params=2"]

    def both(title, target):
        hammer = lambda index: moved(own, ["app", "fdb-hammer", target, "--index", index, *size], place)
        contenders = {"one index": lambda: hammer("shared"), "an index each": lambda: hammer("process")}
        table(f"fdb-hammer, {title}; factors to one index", in_turns(own, contenders), "one index")

    with pool(own, place, 6 * 1024) as target:
        both("vos:", target)
    with engine(own, place) as address:
        both("engine on loopback", f"engine://{address}/p/fields")


def main():
    own = options()
    for name, case in (("same", same), ("cost", cost), ("fdb", fdb)):
        if own.case and name not in own.case:
            continue
        place = tempfile.mkdtemp(prefix="strata-app-bench-", dir=own.memory)
        try:
            case(own, place)
        finally:
            shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main()
