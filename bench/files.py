#!/usr/bin/env python3
"""Files: strata beside IOR, mdtest, elbencho and find, and one store by its library, a mount and interception. Contenders take turns; Markdown on
standard output, each run on standard error. Cases:

  small   create, stat, read, remove of empty files and of 3901 bytes; mdtest, elbencho (where given) and strata, --tasks workers each
  ior     IOR easy and hard through the page cache, and easy with O_DIRECT: bandwidth, and CPU time a GiB (user + system, of all processes)
  dfs     one core on `vos:` in --memory: create, stat, remove a second; 1 MiB written to new files and read, beside arrays of `strata object`
  doors   `dfs+engine://` on loopback, 1 MiB: `strata fs` (library), IOR on a mount, IOR on it with libstrata_intercept.so; beside DAOS where --dfuse
          names a mount of its (shared/peers/daos.sh, its env.sh in the environment): IOR on it, and on it with --pil4dfs
  find    a tree of --entries: GNU find and `strata fs --op find`, whole processes
  tree    --entries files against 100 thousand: rates, and the memory of strata

What is ready before the time counts: see README.md.
"""

import argparse
import contextlib
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

MIB = 1 << 20
IOR = (
    ("easy, cached", "-w -r -C -Q 1 -g -e -t 2m -b 512m -F"),
    ("hard, cached", "-w -r -C -Q 1 -g -e -t 47008 -b 47008 -s 6000"),
    ("easy, direct", "-w -r -C -Q 1 -g -t 2m -b 512m -F --posix.odirect"),
)
MDTEST = (("empty files", "-n {half} -u -L -F -N 1", 0), ("3901 bytes", "-n {half} -w 3901 -e 3901 -u -L -F -N 1", 3901))


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", action="append", choices=("small", "ior", "dfs", "doors", "find", "tree"))
    parser.add_argument("--strata", default="target/release/strata")
    parser.add_argument("--intercept", help="libstrata_intercept.so (that beside --strata)")
    parser.add_argument("--peers", help="directory with ior and mdtest: cases small, ior, doors")
    parser.add_argument("--elbencho", help="elbencho's binary: case small")
    parser.add_argument("--dfuse", metavar="DIR", help="a directory that dfuse of DAOS has mounted: case doors")
    parser.add_argument("--pil4dfs", metavar="FILE", help="libpil4dfs.so of DAOS: case doors, with --dfuse")
    parser.add_argument("--mpirun", default="mpirun --oversubscribe --bind-to none")
    parser.add_argument("--dir", default="/dev/shm", help="a directory of the file system to measure: cases small, ior, find, tree")
    parser.add_argument("--memory", default="/dev/shm", help="a directory in memory: pools")
    parser.add_argument("--tasks", type=int, default=2)
    parser.add_argument("--files", type=int, default=40_000, help="files of a run: cases small, dfs")
    parser.add_argument("--entries", type=int, default=1_000_000, help="entries of the tree: cases find, tree")
    parser.add_argument("--rounds", type=int, default=int(os.environ.get("REPEATS", "5")))
    own = parser.parse_args()
    own.strata = os.path.abspath(own.strata)
    own.intercept = os.path.abspath(own.intercept or os.path.join(os.path.dirname(own.strata), "libstrata_intercept.so"))
    return own


class Ran:
    """A process that has ended: its output, the seconds it took, and the CPU seconds of it and those it waited for."""

    def __init__(self, words, place, more=None):
        environment = {
            **os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "XDG_STATE_HOME": f"{place}/state", **(more or {}),
        }
        words = [str(word) for word in words]
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            begun = time.monotonic()
            process = subprocess.Popen(words, stdout=out, stderr=err, stdin=subprocess.DEVNULL, env=environment, cwd=place)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            self.seconds = time.monotonic() - begun
            self.cpu = usage.ru_utime + usage.ru_stime
            self.peak_bytes = usage.ru_maxrss * 1024
            for stream in (out, err):
                stream.seek(0)
            self.text, self.errors = out.read().decode(), err.read().decode()
        if process.returncode:
            raise SystemExit(f"{' '.join(words)}: {process.returncode}\n{self.text}\n{self.errors}")


def mpi(own, tool, words, exports=()):
    peer = os.path.join(os.path.abspath(own.peers or ""), tool)
    if not own.peers or not os.access(peer, os.X_OK):
        raise SystemExit(f"{tool}: give --peers, the directory with ior and mdtest (bench/README.md says how to build them)")
    more = [word for name in exports for word in ("-x", name)]
    return [*own.mpirun.split(), "-n", own.tasks, *more, peer, *words.split()]


def in_turns(own, contenders):
    """Runs each contender once a round, each round beginning with another one; figures by contender, a list a figure."""
    figures = {name: {} for name in contenders}
    names = list(contenders)
    for turn in range(own.rounds):
        for name in names[turn % len(names):] + names[: turn % len(names)]:
            found = contenders[name]()
            print(f"{name}: {found}", file=sys.stderr, flush=True)
            for figure, value in found.items():
                figures[name].setdefault(figure, []).append(value)
    return figures


def table(title, figures, base, is_less_better=()):
    """Medians by figure; behind each the median of its ratio to `base`, round by round."""
    names = list(figures)
    print(f"\n### {title}\n\n| figure | {' | '.join(names)} |\n|---{'|---' * len(names)}|")
    for figure in figures[names[0]]:
        cells = []
        for name in names:
            mine, theirs = figures[name].get(figure), figures[base].get(figure)
            if not mine:
                cells.append("-")
                continue
            cell = f"{statistics.median(mine):,.2f}" if statistics.median(mine) < 100 else f"{statistics.median(mine):,.0f}"
            if name != base and theirs:
                ratios = sorted(one / other for one, other in zip(mine, theirs))
                cell += f" ({statistics.median(ratios):.2f}; {ratios[0]:.2f} to {ratios[-1]:.2f})"
            cells.append(cell)
        less = " (less is better)" if figure in is_less_better else ""
        print(f"| {figure}{less} | {' | '.join(cells)} |")
    sys.stdout.flush()


def rates(record, wanted):
    """Operations a second of a record's phases by operation: items of the phase over the time from its first operation to its last."""
    found = {}
    for phase in record["phases"]:
        if phase["plan"].get("is_fill") or phase["plan"]["operation"] not in wanted:
            continue
        summary = phase["summary"]
        first = summary["classes"][0]
        found[phase["plan"]["operation"]] = first["operations"] / (summary["last_done"]["elapsed_ns"] / 1e9)
    return found


def measured(own, words, place, pin=None, more=None):
    """A run of strata, and its record."""
    record = f"{place}/record.json"
    words = [own.strata, *words, "--warmup", "none", "--live", "none", "--json", record]
    ran = Ran((["taskset", "-c", pin] if pin is not None else []) + words, place, more)
    with open(record) as file:
        return ran, json.load(file)


def mdtest_rates(text):
    rows = dict(re.findall(r"^   File (\w+)\s+([0-9.]+)\s", text, re.MULTILINE))
    names = {"creation": "create /s", "stat": "stat /s", "read": "read /s", "removal": "remove /s"}
    return {name: float(rows[row]) for row, name in names.items() if float(rows.get(row, 0)) > 0}


def elbencho_rates(text):
    """Rates of the slowest worker's end, as those of the others: `Files/s` of each phase, in the column of the last."""
    phases = {"WRITE": "create /s", "STAT": "stat /s", "READ": "read /s", "RMFILES": "remove /s"}
    found, phase = {}, None
    for line in text.splitlines():
        words = line.split()
        if words and words[0] in ("MKDIRS", "RMDIRS", *phases):
            phase = words[0]
        rate = re.search(r"Files/s\s*:\s*\S+\s+(\S+)", line)
        if rate and phase in phases:
            found[phases[phase]] = float(rate.group(1))
    return found


def small(own, place):
    for title, words, size in MDTEST:
        words = words.format(half=own.files // own.tasks)

        def by_mdtest():
            return mdtest_rates(Ran([*mpi(own, "mdtest", words), "-d", f"{place}/d"], place).text)

        def by_strata():
            ran = Ran([own.strata, "as", "mdtest", "--tasks", own.tasks, *words.split(), "-d", f"{place}/d"], place)
            return mdtest_rates(ran.text)

        def by_elbencho():
            blocks = ["-s", size, *(["-b", size] if size else [])]
            ran = Ran([own.elbencho, "-t", own.tasks, "-n", 1, "-N", own.files // own.tasks, *blocks, "-d", "-w", "--stat", "-r", "-F",
                       "-D", "--nolive", f"{place}/e"], place)
            return elbencho_rates(ran.text)

        contenders = {"mdtest": by_mdtest, "strata": by_strata}
        if own.elbencho:
            own.elbencho = os.path.abspath(own.elbencho)
            os.makedirs(f"{place}/e", exist_ok=True)
            contenders["elbencho"] = by_elbencho
        table(f"small files: {title}, {own.files:,} on {own.dir}, {own.tasks} workers; ratios to mdtest", in_turns(own, contenders), "mdtest")


def ior_figures(ran):
    rows = re.findall(r"^(write|read)\s+([0-9.]+)\s", ran.text, re.MULTILINE)
    return {f"{access} MiB/s": float(rate) for access, rate in rows[:2]}


def ior(own, place):
    for title, words in IOR:
        def run(prefix):
            ran = Ran([*prefix, *words.split(), "-o", f"{place}/f"], place)
            sizes = re.findall(r"^aggregate filesize\s*:\s*([0-9.]+) (\w)iB", ran.text, re.MULTILINE)
            size, unit = sizes[0] if sizes else ("1", "G")
            gib = float(size) * {"M": 1 / 1024, "G": 1, "T": 1024}[unit]
            return {**ior_figures(ran), "CPU s/GiB": ran.cpu / (2 * gib)}

        contenders = {
            "IOR": lambda: run(mpi(own, "ior", "")),
            "strata": lambda: run([own.strata, "as", "ior", "-N", own.tasks]),
        }
        table(f"IOR {title}, {own.tasks} tasks, on {own.dir}; ratios to IOR", in_turns(own, contenders), "IOR", ("CPU s/GiB",))


def dfs(own, place):
    pool, other = f"{place}/pool", f"{place}/objects"
    Ran([own.strata, "pool", "create", f"vos:{pool}", "--scm", "3g"], place)

    def names():
        words = ["fs", f"dfs+vos:{pool}", "--op", "tree-create,create,stat,unlink,tree-remove", "--files", own.files]
        _, record = measured(own, words, place, 1)
        return {f"{name} /s": rate for name, rate in rates(record, ("create", "stat", "unlink")).items()}

    def data():
        words = ["fs", f"dfs+vos:{pool}", "--op", "write,read", "--shape", "private", "--file-size", "512m", "--block-size", "1m"]
        _, record = measured(own, words, place, 1)
        return {f"{name} MiB/s": rate for name, rate in bandwidth(record).items()}

    def objects():
        words = ["object", f"vos:{other}", "--scm", "2g", "--op", "write,read", "--objects", "1", "--value-size", "1m", "--records", "512"]
        _, record = measured(own, words, place, 1)
        return {f"{name} MiB/s": rate for name, rate in bandwidth(record).items()}

    table("dfs: names, one core, `vos:` in memory", in_turns(own, {"strata fs": names}), "strata fs")
    table("dfs: 1 MiB, one core, `vos:` in memory; ratios to strata object", in_turns(own, {"strata object": objects, "strata fs": data}),
          "strata object")


def bandwidth(record):
    """MiB/s of the reads and writes of a record's phases."""
    found = {}
    for phase in record["phases"]:
        if phase["plan"].get("is_fill"):
            continue
        for one in phase["summary"]["classes"]:
            if one["class"] in ("write", "read") and one["bytes"]:
                found[one["class"]] = one["bytes"] / MIB / (phase["summary"]["last_done"]["elapsed_ns"] / 1e9)
    return found


@contextlib.contextmanager
def engine(own, place):
    """The address of an engine with the pool `p`, whose store takes all its space when it is made, as DAOS does with its memory."""
    process = subprocess.Popen(
        [own.strata, "engine", "--dir", f"{place}/pool", "--pool", "p", "--scm", "3g", "--allocate", "whole", "--no-attach-info",
         "--until-stdin-closes"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield re.search(r"tcp://(\S+?),", process.stdout.readline()).group(1)
    finally:
        process.stdin.close()
        process.wait()


def doors(own, place):
    mount = f"{place}/mount"
    os.mkdir(mount)
    environment = {"XDG_RUNTIME_DIR": place}
    with engine(own, place) as address, contextlib.ExitStack() as ending:
        ending.callback(subprocess.run, ["umount", mount], check=False)
        url = f"dfs+engine://{address}/p/c"
        Ran([own.strata, "mount", url, mount, "--create", "--intercept", "--background"], place, environment)
        each = f"{512 // own.tasks}m"

        def library():
            words = ["fs", url, "--op", "write,read", "--shape", "private", "--threads", own.tasks, "--file-size", each, "--block-size", "1m"]
            _, record = measured(own, words, place)
            return {f"{name} MiB/s": rate for name, rate in bandwidth(record).items()}

        def on_mount(directory, preload=None):
            more = {"LD_PRELOAD": preload} if preload else {}
            words = mpi(own, "ior", f"-w -r -C -Q 1 -F -t 1m -b {each}", more)
            return ior_figures(Ran([*words, "-o", f"{directory}/f"], place, environment | more))

        contenders = {
            "library": library,
            "mount": lambda: on_mount(mount),
            "interception": lambda: on_mount(mount, own.intercept),
        }
        if own.dfuse:
            contenders["dfuse"] = lambda: on_mount(own.dfuse)
        if own.dfuse and own.pil4dfs:
            contenders["libpil4dfs"] = lambda: on_mount(own.dfuse, own.pil4dfs)
        figures = in_turns(own, contenders)
        for base in ("library", *(name for name in ("dfuse", "libpil4dfs") if name in contenders)):
            table(f"doors: 1 MiB over `dfs+engine://` on loopback, {own.tasks} workers; ratios to {base}", figures, base)


def make_tree(own, place, files, keep=True):
    words = ["fs", f"{place}/t", "--op", "tree-create,create", "--items", files // own.tasks, "--threads", own.tasks]
    os.makedirs(f"{place}/t", exist_ok=True)
    return measured(own, [*words, "--branch", "10", "--levels", "2", *(["--keep"] if keep else [])], place)


def find(own, place):
    make_tree(own, place, own.entries)
    tests = [("all", [], []), ("name and size", ["-name", "*01*", "-size", "0c"], ["--find-name", "*01*", "--find-size", "0"])]
    for title, theirs, ours in tests:
        def by_find():
            ran = Ran(["find", f"{place}/t", *theirs, "-printf", ""], place)
            return {"s": ran.seconds, "CPU s": ran.cpu}

        def by_strata():
            ran = Ran([own.strata, "fs", f"{place}/t", "--op", "find", "--threads", own.tasks, "--warmup", "none", "--live", "none", *ours], place)
            return {"s": ran.seconds, "CPU s": ran.cpu}

        table(f"find: {title}, {own.entries:,} files on {own.dir}, whole processes; ratios to find",
              in_turns(own, {"find": by_find, "strata": by_strata}), "find", ("s", "CPU s"))


def tree(own, place):
    def run(files):
        os.makedirs(f"{place}/t", exist_ok=True)
        words = ["fs", f"{place}/t", "--op", "tree-create,create,stat,unlink,tree-remove", "--items", files // own.tasks, "--threads", own.tasks,
                 "--branch", "10", "--levels", "3"]
        ran, record = measured(own, words, place)
        found = {f"{name} /s": rate for name, rate in rates(record, ("create", "stat", "unlink")).items()}
        return {**found, "memory MiB": ran.peak_bytes / MIB}

    table(f"trees on {own.dir}, {own.tasks} workers; ratios to 100,000 files",
          in_turns(own, {"100,000": lambda: run(100_000), f"{own.entries:,}": lambda: run(own.entries)}), "100,000")


def main():
    own = options()
    cases = {"small": small, "ior": ior, "dfs": dfs, "doors": doors, "find": find, "tree": tree}
    for name in own.case or cases:
        base = own.memory if name in ("dfs", "doors") else own.dir
        place = tempfile.mkdtemp(prefix="strata-bench-", dir=base)
        try:
            cases[name](own, place)
        finally:
            shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main()
