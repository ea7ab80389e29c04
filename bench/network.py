#!/usr/bin/env python3
"""Compares strata net with a bare ping-pong, iperf3 and fi_pingpong: interleaved runs, medians, ratios, as Markdown. See README.md beside it."""

import argparse
import json
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

# The helpers beside this file leave no compiled copies in the source tree.
sys.dont_write_bytecode = True

from measure import Failure, median, progress, run_child, spread

CLIENT, SERVER = 0, 1
GIB = 1 << 30
READY_S = 20


def us(ns):
    return f"{ns / 1e3:.2f} us"


def thousand(rate):
    return f"{rate / 1e3:.1f} k/s"


def gib(rate):
    return f"{rate / GIB:.2f} GiB/s"


def verdict(met):
    return "met" if met else "**missed**"


def pinned(core, *words):
    return ["taskset", "-c", str(core), *words] if core is not None else list(words)


class Server:
    """A process that serves until the with-block ends."""

    def __init__(self, words, ready=None):
        self.words, self.ready, self.line = words, ready, ""

    def __enter__(self):
        self.errors = tempfile.TemporaryFile()
        self.child = subprocess.Popen(
            self.words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.errors, start_new_session=True
        )
        end = time.monotonic() + READY_S
        os.set_blocking(self.child.stdout.fileno(), self.ready is not None)
        while self.ready and time.monotonic() < end:
            self.line = self.child.stdout.readline().decode()
            if self.ready in self.line:
                return self
            if not self.line:
                self.errors.seek(0)
                raise Failure(f"{shlex.join(self.words)}: {self.errors.read().decode().strip()}")
        time.sleep(0 if self.ready else 0.3)
        return self

    def __exit__(self, *_):
        os.killpg(self.child.pid, signal.SIGTERM)
        try:
            self.child.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self.child.pid, signal.SIGKILL)
            self.child.wait()
        self.child.stdout.close()
        self.errors.close()


class Bench:
    def __init__(self, arguments):
        self.strata, self.ping_pong = arguments.strata, arguments.ping_pong
        self.seconds, self.repeats = arguments.seconds, arguments.repeats
        self.scratch = tempfile.TemporaryDirectory(prefix="strata-bench-")
        self.record = os.path.join(self.scratch.name, "record.json")
        self.commands = {}

    def engine(self, poll, provider="tcp", targets=1, core=SERVER):
        words = pinned(core, self.strata, "engine", "--path", self.scratch.name, "--listen", "127.0.0.1:0", "--poll", poll)
        words += ["--provider", provider, "--targets", str(targets), "--helpers", "0"]
        return Server(words, "engine: rank")

    def net(self, label, poll, sizes, inflight, *more, provider="tcp", targets=1, limited=True, cores=(CLIENT, SERVER)):
        """One run of strata net against an engine of its own; the record's last phase."""
        with self.engine(poll, provider, targets, cores[1]) as server:
            uri = re.search(r" at (\S+?),", server.line).group(1)
            place = ["--path", self.scratch.name] if "--endpoint" in more else [uri]
            words = pinned(cores[0], self.strata, "net", *place, "--message-sizes", sizes, "--inflight", str(inflight))
            words += ["--poll", poll, *more, *(["--time", f"{self.seconds}s"] if limited else [])]
            words += ["--warmup", "none", "--live", "none", "--json", self.record]
            shown = shlex.join(words).replace(self.strata, "strata").replace(self.record, "RECORD")
            shown = shown.replace(uri, "URI").replace(self.scratch.name, "DIR")
            self.commands[label] = shown
            _, usage, _ = run_child(words, self.seconds + 120)
        with open(self.record, encoding="utf-8") as file:
            record = json.load(file)
        if record["status"] != "complete" or record["debug_build"]:
            raise Failure(f"{shown}: {record['status']}, debug build: {record['debug_build']}")
        phase = record["phases"][-1]
        total = phase["summary"]["total"]
        elapsed = phase["samples"]["elapsed_ns"]
        client = phase["samples"]["process_cpu_user_ns"] + phase["samples"]["process_cpu_system_ns"]
        servers = phase["observations"].get("servers", [])
        server = sum(one["cpu_user_ns"] + one["cpu_system_ns"] for one in servers)
        return {
            "p50": total["latency"]["p50_ns"],
            "rate": total["operations_per_second"],
            "bytes": total["bytes_per_second"],
            "cpu_per_gib": (client + server) / max(total["bytes"] / GIB, 1e-9) if total["bytes"] else 0,
            "rss": usage.ru_maxrss * 1024,
            "operations": total["operations"],
            "elapsed": elapsed,
        }

    def bare(self, poll, inflight):
        words = [self.ping_pong, str(self.seconds), f"bare {poll} {inflight}"]
        self.commands[f"bare {poll} {inflight}"] = shlex.join(words).replace(self.ping_pong, "ping_pong")
        output, _, _ = run_child(words, self.seconds * 4 + 60)
        found = re.search(rf"^bare {poll} {inflight}: p50 ([\d.]+) us, ([\d.]+) k/s", output, re.M)
        if not found:
            raise Failure(f"{shlex.join(words)}: {output}")
        return {"p50": float(found.group(1)) * 1e3, "rate": float(found.group(2)) * 1e3}

    def iperf3(self, block, reverse):
        with Server(pinned(SERVER, "iperf3", "-s", "-1", "-p", "25201", "-B", "127.0.0.1", "--forceflush"), "listening"):
            words = pinned(CLIENT, "iperf3", "-c", "127.0.0.1", "-p", "25201", "-t", str(self.seconds), "-l", block, "-J")
            words += ["-R"] if reverse else []
            self.commands[f"iperf3 {block}{' -R' if reverse else ''}"] = shlex.join(words)
            output, _, _ = run_child(words, self.seconds + 60)
        end = json.loads(output)["end"]
        received = end["sum_received"]
        cpu = end["cpu_utilization_percent"]
        seconds = (cpu["host_total"] + cpu["remote_total"]) / 100 * received["seconds"]
        return {"bytes": received["bits_per_second"] / 8, "cpu_per_gib": seconds * 1e9 / (received["bytes"] / GIB)}

    def fi_pingpong(self, provider, size):
        iterations = "20000" if size < 65536 else "2000"
        common = ["fi_pingpong", "-p", provider, "-e", "rdm", "-I", iterations, "-S", str(size)]
        with Server(pinned(SERVER, *common)):
            words = pinned(CLIENT, *common, "127.0.0.1")
            self.commands[f"fi_pingpong {provider} {size}"] = shlex.join(words)
            output, _, _ = run_child(words, 120)
        row = output.strip().splitlines()[-1].split()
        return {"half_us": float(row[-2]), "bytes": float(row[-3]) * 1e6}

    def interleaved(self, contenders):
        """Figures of each contender over all rounds; each round begins with another one."""
        names, results = list(contenders), {name: [] for name in contenders}
        for turn in range(self.repeats):
            first = turn % len(names)
            for name in names[first:] + names[:first]:
                progress(f"round {turn + 1}/{self.repeats}: {name}")
                results[name].append(contenders[name]())
        progress("")
        return results

    def tell(self):
        print("\n```sh")
        print("\n".join(dict.fromkeys(self.commands.values())))
        print("```\n")
        self.commands.clear()


def of(results, name, key):
    return [result[key] for result in results[name]]


def ratios(results, one, other, key):
    return [a / b for a, b in zip(of(results, one, key), of(results, other, key))]


def row(what, goal, values, met, form=lambda value: f"{value:.2f}"):
    print(f"| {what} | {goal} | {spread(values, form)} | {verdict(met(median(values)))} |")


def small(bench):
    print("## RPCs over loopback, client and engine on a core each\n")
    contenders = {}
    for poll in ("spin", "block"):
        for inflight in (1, 16):
            contenders[f"bare {poll} {inflight}"] = lambda p=poll, n=inflight: bench.bare(p, n)
    for poll in ("spin", "adaptive", "block"):
        for inflight in (1, 16):
            name = f"empty {poll} {inflight}"
            contenders[name] = lambda p=poll, n=inflight, l=name: bench.net(l, p, "0 0", n)
    contenders["2 KiB spin 16"] = lambda: bench.net("2 KiB spin 16", "spin", "i2048 i2048", 16)
    results = bench.interleaved(contenders)
    print("| what | median latency | RPCs |\n|---|---|---|")
    for name in contenders:
        print(f"| {name} | {spread(of(results, name, 'p50'), us)} | {spread(of(results, name, 'rate'), thousand)} |")
    print("\n| what | goal | measured | |\n|---|---|---|---|")
    row("spin, 1 in flight, p50 of the bare ping-pong's", "at most 1.4", ratios(results, "empty spin 1", "bare spin 1", "p50"), lambda v: v <= 1.4)
    row("spin, 1 in flight, of self_test's 34 to 37 k/s", "at least 2", [v / 37e3 for v in of(results, "empty spin 1", "rate")], lambda v: v >= 2)
    row("spin, 16 in flight", "at least 500 k/s", of(results, "empty spin 16", "rate"), lambda v: v >= 500e3, thousand)
    row("2 KiB both ways, spin, 16 in flight", "at least 300 k/s", of(results, "2 KiB spin 16", "rate"), lambda v: v >= 300e3, thousand)
    row("block, 1 in flight, p50 of the bare ping-pong's", "at most 1.15", ratios(results, "empty block 1", "bare block 1", "p50"), lambda v: v <= 1.15)
    for inflight in (1, 16):
        best = [max(a, b) for a, b in zip(of(results, f"empty spin {inflight}", "rate"), of(results, f"empty block {inflight}", "rate"))]
        values = [b / a for a, b in zip(of(results, f"empty adaptive {inflight}", "rate"), best)]
        row(f"adaptive, {inflight} in flight, best of both over its rate", "at most 1.2", values, lambda v: v <= 1.2)
    bench.tell()


def bulk(bench):
    print("## 1 MiB bulk over loopback TCP\n")
    contenders = {}
    for reverse, sizes, name in ((False, "b1048576 0", "out"), (True, "0 b1048576", "in")):
        for block in ("128K", "1M"):
            contenders[f"iperf3 {block} {name}"] = lambda b=block, r=reverse: bench.iperf3(b, r)
        for poll in ("adaptive", "block"):
            label = f"strata {poll} {name}"
            contenders[label] = lambda p=poll, s=sizes, l=label: bench.net(l, p, s, 16)
    results = bench.interleaved(contenders)
    print("| what | bandwidth | CPU of both sides a GiB |\n|---|---|---|")
    for name in contenders:
        cpu = spread(of(results, name, "cpu_per_gib"), lambda v: f"{v / 1e6:.0f} ms")
        print(f"| {name} | {spread(of(results, name, 'bytes'), gib)} | {cpu} |")
    print("\n| what | goal | measured | |\n|---|---|---|---|")
    for name in ("out", "in"):
        theirs = [max(a, b) for a, b in zip(of(results, f"iperf3 128K {name}", "bytes"), of(results, f"iperf3 1M {name}", "bytes"))]
        for poll in ("adaptive", "block"):
            ours = of(results, f"strata {poll} {name}", "bytes")
            row(f"{name}, {poll}, of iperf3's best", "at least 0.95", [a / b for a, b in zip(ours, theirs)], lambda v: v >= 0.95)
        row(f"{name}, adaptive, bandwidth", "at least 5 GiB/s", of(results, f"strata adaptive {name}", "bytes"), lambda v: v >= 5 * GIB, gib)
        cpu = [min(a, b) for a, b in zip(of(results, f"iperf3 128K {name}", "cpu_per_gib"), of(results, f"iperf3 1M {name}", "cpu_per_gib"))]
        for poll in ("adaptive", "block"):
            ours = of(results, f"strata {poll} {name}", "cpu_per_gib")
            row(f"{name}, {poll}, CPU a GiB of iperf3's", "at most 1", [a / b for a, b in zip(ours, cpu)], lambda v: v <= 1)
    bench.tell()


def fabric(bench):
    print("## libfabric over loopback and shared memory\n")
    cases = [("ofi+tcp", "tcp;ofi_rxm"), ("ofi+shm", "shm")]
    contenders = {}
    for ours, theirs in cases:
        for size, sizes in ((64, "i64 i64"), (1 << 20, "b1048576 b1048576")):
            contenders[f"fi_pingpong {theirs} {size}"] = lambda t=theirs, s=size: bench.fi_pingpong(t, s)
            label = f"strata {ours} {size}"
            contenders[label] = lambda o=ours, s=sizes, l=label: bench.net(l, "spin", s, 1, provider=o)
    results = bench.interleaved(contenders)
    print("| what | goal | measured | |\n|---|---|---|---|")
    for ours, theirs in cases:
        # A round trip of theirs is two transfers; an RPC of ours is one each way.
        small_ = [2e3 * a / b for a, b in zip(of(results, f"fi_pingpong {theirs} 64", "half_us"), of(results, f"strata {ours} 64", "p50"))]
        row(f"{ours}, 64 bytes each way: their round trip over our p50", "at least 0.9", small_, lambda v: v >= 0.9)
        size = 1 << 20
        large = [a / b for a, b in zip(of(results, f"strata {ours} {size}", "bytes"), of(results, f"fi_pingpong {theirs} {size}", "bytes"))]
        row(f"{ours}, 1 MiB each way: bandwidth of theirs", "at least 0.9", large, lambda v: v >= 0.9)
    bench.tell()


def memory(bench):
    print("## 64 endpoints: memory by number of RPCs\n\n| RPCs | peak memory of the client |\n|---|---|")
    sizes = []
    for count in (1_000_000, 10_000_000):
        result = bench.net(f"memory {count}", "adaptive", "0 0", 1024, "--count", str(count), "--endpoint", "0:2-65", targets=64, limited=False, cores=(None, None))
        sizes.append(result["rss"])
        print(f"| {result['operations']:,} | {result['rss'] / (1 << 20):.1f} MiB |")
    print(f"\n{verdict(sizes[1] < sizes[0] * 1.1)}: the same within 10 %.")
    bench.tell()


CASES = {"small": small, "bulk": bulk, "fabric": fabric, "memory": memory}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--strata", default="target/release/strata")
    parser.add_argument("--ping-pong", default="target/release/examples/ping_pong", help="cargo build --release -p network --example ping_pong")
    parser.add_argument("--seconds", type=float, default=2, help="length of one run")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--case", choices=CASES, action="append")
    arguments = parser.parse_args()
    arguments.strata, arguments.ping_pong = map(os.path.abspath, (arguments.strata, arguments.ping_pong))
    if (os.cpu_count() or 1) < 2:
        sys.exit("network.py: it needs two processors, one for each side")
    for tool, package in (("iperf3", "iperf3"), ("fi_pingpong", "libfabric-bin"), ("taskset", "util-linux")):
        if not shutil.which(tool):
            sys.exit(f"network.py: {tool} is missing: apt-get install {package}")
    print(f"{os.cpu_count()} processors, Linux {platform.release()}, {time.strftime('%Y-%m-%d')}; {arguments.repeats} rounds\n")
    bench = Bench(arguments)
    for case in arguments.case or CASES:
        try:
            CASES[case](bench)
        except Failure as failure:
            print(f"\n{case}: failed: {failure}\n")


if __name__ == "__main__":
    main()
