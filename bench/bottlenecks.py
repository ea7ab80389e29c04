#!/usr/bin/env python3
"""Runs `strata stack` on machines whose bottleneck is known, because the script made it, and holds the verdict to it (root only).

    bench/bottlenecks.py STRATA [--passes 3] [--case NAME]... [--keep DIR] [--short] [--slow-file FILE]

A drive with declared service times (testkit's slow_file under ext4 on a loop device: 8 operations at a time, 2 ms and 256 MiB/s), a drive that a control group
limits, a quota of processor time, and a link of 1 Gbit/s between two network namespaces. The verdict names it, or the script ends with 1; what this machine does not allow is skipped by name.
With --short (`make test`, a build that is not optimized) the drive serves half of the operations, the quota is half of a CPU, and a run that is
inconclusive is repeated, since other programs may have used the machine; a verdict that names anything else is an error at once. The link is left out
there: an engine that is not optimized takes more of the CPUs than others may (the command's test engine_parts has a slow link).
"""

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from clean_runs import declared_drive, loop, unmount
from targets import Unavailable

DRIVE_BYTES = 3 << 30
CGROUPS = "/sys/fs/cgroup"


def must(*words):
    """Runs a command of the system; what it says, or the case is skipped."""
    ended = subprocess.run(words, capture_output=True, text=True)
    if ended.returncode != 0:
        raise Unavailable(f"{' '.join(words)}: {ended.stderr.strip()}")
    return ended.stdout.strip()


@contextlib.contextmanager
def group(controllers, settings):
    """A control group with settings of the second generation or the first; the shell's words that enter it."""
    try:
        with open(os.path.join(CGROUPS, "cgroup.subtree_control"), encoding="utf-8") as file:
            is_second = controllers[0] in file.read().split()
    except OSError:
        is_second = False
    path = os.path.join(CGROUPS, *([] if is_second else [controllers[1]]), f"strata-bottleneck-{os.getpid()}")
    try:
        os.mkdir(path)
    except OSError as error:
        raise Unavailable(f"no control group can be made here: {error}") from error
    try:
        for name, value in settings[0 if is_second else 1]:
            with open(os.path.join(path, name), "w", encoding="utf-8") as file:
                file.write(value)
        yield f"echo $$ > {path}/cgroup.procs && "
    except OSError as error:
        raise Unavailable(f"the control group takes no such setting: {error}") from error
    finally:
        os.rmdir(path)


@contextlib.contextmanager
def slow_drive(options, _scratch):
    kind = "slow-drive" if options.short else "drive"
    with declared_drive(1024, options.slow_file, kind) as mounted:
        yield "", f"--dir {mounted}"


@contextlib.contextmanager
def limited_drive(_options, scratch):
    backing, mounted = (os.path.join(scratch, name) for name in ("backing", "mounted"))
    with open(backing, "wb") as file:
        file.truncate(DRIVE_BYTES)
    os.mkdir(mounted)
    with contextlib.ExitStack() as stack:
        device = stack.enter_context(loop(scratch, backing))
        must("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard", device)
        must("mount", device, mounted)
        stack.callback(unmount, mounted)
        with open(f"/sys/block/{os.path.basename(device)}/dev", encoding="utf-8") as file:
            number = file.read().strip()
        first = [(f"blkio.throttle.{way}_iops_device", f"{number} 2000") for way in ("read", "write")]
        second = [("io.max", f"{number} riops=2000 wiops=2000")]
        enter = stack.enter_context(group(("io", "blkio"), (second, first)))
        yield enter, f"--dir {mounted}"


@contextlib.contextmanager
def quota(options, scratch):
    microseconds = 50_000 if options.short else 20_000
    settings = ([("cpu.max", f"{microseconds} 100000")], [("cpu.cfs_quota_us", str(microseconds))])
    with group(("cpu", "cpu"), settings) as enter:
        yield enter, f"--dir {scratch}"


@contextlib.contextmanager
def slow_link(options, scratch):
    names = [f"strata-bottleneck-{os.getpid()}-{side}" for side in ("server", "client")]
    token = os.path.join(scratch, "token")
    with open(os.open(token, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
        file.write("a secret of this script\n")
    with contextlib.ExitStack() as stack:
        for name in names:
            must("ip", "netns", "add", name)
            stack.callback(subprocess.run, ["ip", "netns", "del", name], check=False)
        server, client = names
        must("ip", "-n", server, "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", client)
        for name, address in ((server, "10.78.0.1"), (client, "10.78.0.2")):
            must("ip", "-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
            must("ip", "-n", name, "link", "set", "lo", "up")
            must("ip", "-n", name, "link", "set", "eth0", "up")
            must("tc", "-n", name, "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "1gbit", "burst", "1mb", "latency", "100ms")
        words = f"engine --pool tank --dir {scratch}/tank --scm 1g --targets 2 --listen 10.78.0.1:0 --token-file {token} --poll block"
        engine = subprocess.Popen(["ip", "netns", "exec", server, options.strata, *words.split()], stdout=subprocess.PIPE, text=True)
        stack.callback(engine.wait)
        stack.callback(engine.terminate)
        line = engine.stdout.readline()
        address = line.split("tcp://")[1].split()[0].strip(",") if "tcp://" in line else ""
        if not address:
            raise Unavailable(f"the engine does not say where it is: {line.strip()}")
        # The user's store is behind the link too: a layer that uses all of it.
        store = f"--stack-object engine://{address}/tank/objects"
        yield f"exec ip netns exec {client} ", f"--dir {scratch} {store} --token-file {token}"


# Name, how the machine is made, the layer of the verdict, and words of its sentence.
CASES = [
    ("drive with declared service times", slow_drive, "media", "the drive is the limit at"),
    ("drive limited by a control group", limited_drive, "media", "limited by a control group"),
    ("quota of processor time", quota, "processor", "the CPU quota is the limit: the control group's quota of 0."),
    ("link of 1 Gbit/s", slow_link, "network", "the network is the limit at"),
]


def verdict(options, name, enter, words, scratch):
    """The verdict of one run."""
    # In a pass of the quick form nothing of 1 MiB would come over the link, and little from the drive to a program that is not optimized.
    is_long = "--stack-object" in words or (options.short and "quota" not in name)
    quick = "" if is_long else "--quick"
    record = os.path.join(scratch, "record.json")
    command = f"{enter}{options.strata} stack {quick} --passes {options.passes} --size 64m --live none --json {record} {words}"
    ended = subprocess.run(["sh", "-c", command], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if ended.returncode != 0:
        raise Unavailable(ended.stderr.strip().splitlines()[-1] if ended.stderr.strip() else f"exit {ended.returncode}")
    if options.keep:
        os.makedirs(options.keep, exist_ok=True)
        shutil.copy(record, os.path.join(options.keep, f"{name.replace(' ', '-')}.json".replace("/", "-")))
    with open(record, encoding="utf-8") as file:
        return json.load(file)["stack"]["verdict"]


def made_and_judged(options, name, make):
    """The verdict of one run on a machine that is made for it."""
    with tempfile.TemporaryDirectory(prefix="strata-bottleneck-", dir=".") as scratch:
        scratch = os.path.abspath(scratch)
        with make(options, scratch) as (enter, arguments):
            return verdict(options, name, enter, arguments, scratch)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("strata")
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--case", action="append", default=[], help="only this one; may be given several times")
    parser.add_argument("--short", action="store_true", help="for builds that are not optimized; up to three runs of a case where one is inconclusive")
    parser.add_argument("--slow-file", metavar="FILE", help="testkit's example slow_file (built by cargo where it is missing)")
    parser.add_argument("--keep", metavar="DIR", help="keep the records here")
    options = parser.parse_args()
    options.strata = os.path.abspath(options.strata)
    missed = 0
    for name, make, layer, words in CASES:
        if (options.case and name not in options.case) or (options.short and make is slow_link):
            continue
        for left in reversed(range(3 if options.short else 1)):
            begun = time.monotonic()
            try:
                found = made_and_judged(options, name, make)
            except Unavailable as reason:
                print(f"{name:36} skipped: {reason}", flush=True)
                break
            is_named = (found["kind"], found["layer"]) == ("limit", layer) and words in found["sentence"]
            is_open = found["kind"] == "inconclusive" and left > 0
            missed += not is_named and not is_open
            said = "named" if is_named else "once more" if is_open else "MISSED"
            print(f"{name:36} {said} in {time.monotonic() - begun:.0f} s: {found['sentence']}", flush=True)
            if not is_open:
                break
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
