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
import socket
import statistics
import subprocess
import sys
import tempfile

MIB = 1 << 20
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


def run(own, words, place):
    record = os.path.join(place, "record.json")
    words = [own.strata, *map(str, words), "--json", record, "--live", "none"]
    ended = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if ended.returncode != 0:
        sys.exit(f"app.py: {' '.join(words)}: exit {ended.returncode}: {ended.stderr.strip()}")
    with open(record, encoding="utf-8") as file:
        return json.load(file)["phases"]


def bytes_of(phase, name):
    """Bytes of the calls of a class in a phase, all workers together."""
    classes = [one for worker in phase["samples"]["workers"] for one in worker["classes"] if one["class"] == name]
    return sum(one["bytes"] for one in classes)


def bandwidth(phases, names):
    """MiB a second of the first phase that has bytes of each of the classes."""
    found = []
    for name in names:
        phase = next(phase for phase in phases if bytes_of(phase, name) > 0 and not phase["plan"].get("is_fill"))
        found.append(bytes_of(phase, name) / MIB / (phase["samples"]["elapsed_ns"] / 1e9))
    return found


def rounds(own, contenders):
    """Figures of each contender, a list a figure, in turns that begin with another one each round."""
    found = {name: [] for name, _ in contenders}
    for turn in range(own.rounds):
        order = contenders[turn % len(contenders) :] + contenders[: turn % len(contenders)]
        for name, contender in order:
            found[name].append(contender())
    return found


def print_ratios(title, found, one, other, figures, unit):
    for at, figure in enumerate(figures):
        ones, others = ([figures[at] for figures in found[name]] for name in (one, other))
        ratios = sorted(a / b for a, b in zip(ones, others))
        spread = f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
        print(f"| {title}, {figure} | {statistics.median(ones):.0f} {unit} | {statistics.median(others):.0f} {unit} | {spread} |", flush=True)


def same(own, place):
    print("| case | app | beside | ratio: median (lowest to highest) |\n|---|---|---|---|")
    description = os.path.join(place, "plain.toml")
    with open(description, "w", encoding="utf-8") as file:
        file.write(PLAIN.format(count=own.mib, size="1MiB"))
    data = os.path.join(place, "data")
    os.mkdir(data)
    app = lambda target: bandwidth(run(own, ["app", description, target], place), ("write", "read"))
    shape = ["--shape", "private", "--file-size", f"{own.mib}m", "--block-size", "1m", "--verify"]
    files = lambda: bandwidth(run(own, ["fs", data, "--op", "write,read", *shape], place), ("write", "read"))
    found = rounds(own, [("app", lambda: app(data)), ("fs", files)])
    print_ratios("files", found, "app", "fs", ("write", "read"), "MiB/s")
    words = ["--op", "write,read", "--objects", 1, "--value-size", "1m", "--records", own.mib, "--verify"]

    def objects(front):
        with pool(own, place, 4 * own.mib) as target:
            return bandwidth(run(own, [*front(target)], place), ("write", "read"))

    fronts = {"app": lambda target: ["app", description, target], "object": lambda target: ["object", target, *words]}
    found = rounds(own, [(name, lambda front=front: objects(front)) for name, front in fronts.items()])
    print_ratios("arrays of vos:", found, "app", "object", ("write", "read"), "MiB/s")


def cost(own, place):
    description = os.path.join(place, "small.toml")
    with open(description, "w", encoding="utf-8") as file:
        file.write(PLAIN.format(count=2_000_000, size="8"))
    def app():
        phases = run(own, ["app", description, "null:", "--no-verify"], place)
        return [phase["summary"]["cpu_ns_per_operation"] for phase in phases[:2]]
    def plain():
        return [run(own, ["media", "null:", "--op", "nop", "--count", 2_000_000], place)[0]["summary"]["cpu_ns_per_operation"]]
    found = rounds(own, [("app", app), ("null", plain)])
    floor = statistics.median(one[0] for one in found["null"])
    print("| call on null: | CPU a call | no-op of media null: | the description |\n|---|---|---|---|")
    for at, name in enumerate(("write of 8 bytes", "read of 8 bytes")):
        own_ns = statistics.median(one[at] for one in found["app"])
        print(f"| {name} | {own_ns:.0f} ns | {floor:.0f} ns | {own_ns - floor:.0f} ns |", flush=True)


def free_port():
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return made.getsockname()[1]


@contextlib.contextmanager
def pool(own, place, mib):
    """A new embedded store: what earlier runs left in one is no part of a figure."""
    path = os.path.join(place, "pool")
    subprocess.run([own.strata, "pool", "create", f"vos:{path}", "--scm", f"{mib}m"], check=True, capture_output=True)
    try:
        yield f"vos:{path}"
    finally:
        shutil.rmtree(path)


@contextlib.contextmanager
def engine(own, place):
    """An engine with a pool in memory; the URL of a container of it."""
    port = free_port()
    words = [own.strata, "engine", "--pool", "tank", "--scm", "4g", "--listen", f"127.0.0.1:{port}", "--path", place]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, text=True)
    try:
        server.stdout.readline()
        url = f"engine://127.0.0.1:{port}/tank/fields"
        subprocess.run([own.strata, "container", "create", url], check=True, capture_output=True)
        yield url
    finally:
        server.terminate()
        server.communicate()


def fdb(own, place):
    print("| fdb-hammer | an index each | one index | factor: median (lowest to highest) |\n|---|---|---|---|")
    size = ["--set", "size=1MiB,steps=8,levels=16,params=2"]
    def hammer(target, index):
        return lambda: bandwidth(run(own, ["app", "fdb-hammer", target, "--index", index, *size], place), ("write", "read"))
    def both(title, target):
        found = rounds(own, [(index, hammer(target, index)) for index in ("process", "shared")])
        print_ratios(title, found, "process", "shared", ("written", "read"), "MiB/s")
    with pool(own, place, 6 * 1024) as target:
        both("vos:", target)
    with engine(own, place) as url:
        both("engine on loopback", url)


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
