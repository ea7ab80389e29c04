#!/usr/bin/env python3
"""Twenty clean runs of different kinds, which are to raise no doubt on a quiet machine.

    make build && bench/clean_runs.py [--dir DIR] [--time 10s] [--except KIND]... [--case NAME]...

Each run is as a careful user would make it: data on the drive, long enough, no cache where none is meant. Every doubt that one
raises is printed with its detail; the script ends with 1 then. `--condition` reads and writes the drive for as long before each run on it: a
drive with a cache, or with a credit that its host lets it overdraw (as cloud drives have), is measured past it. On a machine that others use too, `--except other_load --except
other_io` leaves these kinds out; the last line says so. `--declared` makes a drive that nobody else uses: ext4 on a loop device on a file
whose service times are declared (testkit's `slow_file`, from memory; root only). Runs that this machine or this user cannot provide are skipped by name.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time

from targets import MIB, Unavailable, fill, need_space

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# Name, target, words. `{time}` is the length of a run; runs without it are one pass over the file.
RUNS = [
    ("null paced", "null:", "--op randread --rate 10k --time {time}"),
    ("memory", "mem:", "--op read -b 1m --size 64m --time {time}"),
    ("random read", "file", "--op randread --direct -b 4k --time {time}"),
    ("random read, depth 16", "file", "--op randread --direct -b 4k -e io_uring -q 16 --time {time}"),
    ("random read, libaio", "file", "--op randread --direct -b 16k -e libaio -q 4 --time {time}"),
    ("random read, pvsync2", "file", "--op randread --direct -b 16k -e pvsync2 --time {time}"),
    ("random read, paced", "file", "--op randread --direct -b 4k -e io_uring -q 32 --rate 500 --arrivals poisson --time {time}"),
    ("sequential read", "file", "--op read --direct -b 1m -q 4 -e io_uring --time {time}"),
    ("sequential read, page cache cold", "file", "--op read -b 1m --cache drop"),
    ("sequential read, page cache warm", "file", "--op read -b 64k --cache warm --size 256m --time {time}"),
    ("sequential read, mapped", "file", "--op read -b 1m -e mmap --cache drop"),
    ("random write", "own", "--op randwrite --direct -b 16k --time {time}"),
    ("random write, durable", "own", "--op randwrite --direct -b 16k --sync dsync --time {time}"),
    ("random write, fsync 1", "own", "--op randwrite -b 16k --fsync 1 --time {time}"),
    ("sequential write", "own", "--op write --direct -b 1m --layout fill --time {time}"),
    ("sequential write, synced at the end", "own", "--op write -b 1m --layout fill --end-fsync"),
    ("mixed", "own", "--op randrw --direct -b 16k --time {time}"),
    ("loop device", "loop", "--op randread --direct -b 16k --time {time}"),
    ("overlay", "overlay", "--op randread --direct -b 16k --time {time}"),
    ("verified read", "own", "--op randwrite --direct -b 64k --size 2g --verify"),
]


@contextlib.contextmanager
def loop(scratch, path):
    """A loop device that works on the file past the page cache."""
    made = subprocess.run(["losetup", "--find", "--show", "--direct-io=on", path], capture_output=True, text=True)
    if made.returncode != 0:
        raise Unavailable("cannot set up a loop device here")
    device = made.stdout.strip()
    try:
        yield device
    finally:
        subprocess.run(["losetup", "--detach", device], check=False)


@contextlib.contextmanager
def overlay(scratch, path):
    """The file through an overlay over the directory that it lies in."""
    made = [os.path.join(scratch, name) for name in ("upper", "work", "merged")]
    for directory in made:
        os.mkdir(directory)
    upper, work, merged = made
    options = f"lowerdir={os.path.dirname(path)},upperdir={upper},workdir={work}"
    if subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, merged], capture_output=True).returncode != 0:
        raise Unavailable("cannot mount an overlay here")
    try:
        yield os.path.join(merged, os.path.basename(path))
    finally:
        subprocess.run(["umount", merged], check=False)


@contextlib.contextmanager
def plain(path):
    yield path


def measure(binary, target, words, scratch):
    record = os.path.join(scratch, "record.json")
    command = [binary, "media", target, *words.split(), "--json", record]
    ended = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if ended.returncode != 0:
        raise Unavailable(ended.stderr.strip().splitlines()[-1] if ended.stderr.strip() else f"exit {ended.returncode}")
    with open(record, encoding="utf-8") as file:
        phases = json.load(file)["phases"]
    return [doubt for phase in phases for doubt in phase["doubts"]]


def condition(options, path, scratch):
    """Uses up what the drive does faster for a while only."""
    for operation, target in (("read", path), ("write", os.path.join(scratch, "conditioned"))):
        words = f"--op {operation} --direct -b 1m -q 8 -e io_uring -s {options.size_mib}m --time {options.condition}"
        subprocess.run([options.binary, "media", target, *words.split()], capture_output=True, stdin=subprocess.DEVNULL)


def unmount(mounted):
    """The kernel lets go of the files of a ring a moment after the process that had it."""
    for _ in range(40):
        if subprocess.run(["umount", mounted], capture_output=True).returncode == 0:
            return
        time.sleep(0.25)
    subprocess.run(["umount", mounted], check=False)


@contextlib.contextmanager
def declared_drive(size_mib, slow_file=None, kind="drive"):
    """A directory on a drive with declared service times: no neighbour uses it, and no host takes back what it gave."""
    size_mib = 3 * size_mib + 512
    with contextlib.ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="strata-declared-"))
        served, mounted = (os.path.join(scratch, name) for name in ("served", "mounted"))
        os.mkdir(served)
        os.mkdir(mounted)
        build = ["cargo", "run", "--quiet", "--release", "--locked", "-p", "testkit", "--features", "fuse", "--example", "slow_file", "--"]
        words = [slow_file] if slow_file else build
        drive = subprocess.Popen(
            [*words, served, kind, str(size_mib)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

        def end():
            drive.stdin.close()
            drive.stdout.read()
            drive.wait()

        stack.callback(end)
        path = drive.stdout.readline().strip()
        if not path:
            raise Unavailable("the declared drive cannot be mounted here")
        device = stack.enter_context(loop(scratch, path))
        subprocess.run(["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard", device], check=True)
        subprocess.run(["mount", device, mounted], check=True)
        stack.callback(unmount, mounted)
        yield mounted


def target_of(kind, scratch, path):
    if kind == "file":
        return plain(path)
    if kind == "own":
        return plain(os.path.join(scratch, "own"))
    if kind == "loop":
        return loop(scratch, path)
    if kind == "overlay":
        return overlay(scratch, path)
    return plain(kind)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", default=os.path.join(ROOT, "target"), help="directory on the drive (target/)")
    parser.add_argument("--binary", default=os.path.join(ROOT, "target", "release", "strata"))
    parser.add_argument("--time", default="10s", help="length of a run (10s)")
    parser.add_argument("--size-mib", type=int, default=4096, help="size of the file (4096)")
    parser.add_argument("--condition", metavar="DURATION", help="keep the drive busy for so long before each run on it, reading and then writing")
    parser.add_argument("--declared", action="store_true", help="on a drive with declared service times, instead of --dir")
    parser.add_argument("--slow-file", metavar="PATH", help="testkit's example slow_file, built elsewhere, for --declared on a machine without cargo")
    parser.add_argument("--except", dest="excepted", action="append", default=[], metavar="KIND", help="leave out this kind of doubt")
    parser.add_argument("--case", action="append", default=[], help="only this run; may be given several times")
    options = parser.parse_args()
    if not options.declared:
        sys.exit(clean_runs(options, options.dir))
    with declared_drive(options.size_mib, options.slow_file) as directory:
        raised = clean_runs(options, directory)
    sys.exit(raised)


def clean_runs(options, directory):
    """Makes the runs in `directory` and prints what they raise; 1 when one raises something."""
    raised, skipped, clean = 0, 0, 0
    need_space(directory, 2 * options.size_mib * MIB)
    with tempfile.TemporaryDirectory(prefix="strata-clean-", dir=directory) as scratch:
        below = os.path.join(scratch, "data")
        os.mkdir(below)
        path = os.path.join(below, "file")
        fill(path, options.size_mib * MIB)
        for name, kind, words in RUNS:
            if options.case and name not in options.case:
                continue
            words = words.format(time=options.time)
            if kind == "own" and "--size" not in words:
                words += f" --size {options.size_mib}m"
            if options.condition and kind not in ("null:", "mem:"):
                condition(options, path, scratch)
            try:
                with target_of(kind, scratch, path) as target:
                    doubts = measure(options.binary, target, words, scratch)
            except Unavailable as reason:
                skipped += 1
                print(f"{name:38} skipped: {reason}", flush=True)
                continue
            doubts = [doubt for doubt in doubts if doubt["kind"] not in options.excepted]
            raised += len(doubts)
            clean += not doubts
            print(f"{name:38} {'clean' if not doubts else ''}", flush=True)
            for doubt in doubts:
                print(f"    {doubt['kind']}: {doubt['detail']}", flush=True)
    left_out = f"; left out: {', '.join(options.excepted)}" if options.excepted else ""
    print(f"{clean} clean, {raised} doubts raised, {skipped} skipped{left_out}")
    return 1 if raised else 0


if __name__ == "__main__":
    main()
