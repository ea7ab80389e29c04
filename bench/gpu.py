#!/usr/bin/env python3
"""Memory of a GPU: strata beside PyTorch and elbencho. Contenders take turns; Markdown on standard output, each run on standard error. Cases:

  copies    host to device and device to host, pinned and pageable, and within the device: strata and PyTorch
  staged    reads from the page cache to the device, beside the copy alone and the file alone
  elbencho  the same line of elbencho by elbencho (--elbencho, built with CUDA) and by strata: throughput and CPU time a GiB
  paths     reads of a file by each way of --gpu-path, through the page cache
  lines     every line of a dialect and of an application that has buffers on a GPU: exit code and bytes
  verified  blocks made, written, read back and checked on the device by every engine: errors

It needs python3, a GPU, and nothing else of this repository.
"""

import argparse
import json
import os
import re
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

GIB = 1 << 30
TORCH = """
import sys, time, torch
size, seconds, how = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
pinned = "pageable" not in how
host = torch.empty(size, dtype=torch.uint8, pin_memory=pinned).fill_(1)
device = torch.empty(size, dtype=torch.uint8, device="cuda").fill_(1)
other = torch.empty_like(device) if how == "within" else None
to, source = (other, device) if how == "within" else (device, host) if how.startswith("in") else (host, device)
def turn(count):
    for _ in range(count):
        to.copy_(source, non_blocking=False)
        torch.cuda.synchronize()
turn(3)
began, done = time.perf_counter(), 0
while time.perf_counter() - began < seconds:
    turn(5)
    done += 5
print(done * size / (time.perf_counter() - began))
"""


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", action="append", choices=("copies", "staged", "paths", "elbencho", "lines", "verified"))
    parser.add_argument("--strata", default="target/release/strata")
    parser.add_argument("--elbencho", help="elbencho's binary: case elbencho")
    parser.add_argument("--dir", default=".", help="a directory of a file system with a page cache")
    parser.add_argument("--size", default="4g", help="the file: cases staged, elbencho")
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=int(os.environ.get("REPEATS", "5")))
    own = parser.parse_args()
    own.strata, own.dir = os.path.abspath(own.strata), os.path.abspath(own.dir)
    return own


def run(words, place, limit_s=300):
    """Output of a process that succeeds, and the CPU seconds that it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(words, cwd=place, capture_output=True, text=True, timeout=limit_s)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"# {shlex.join(words[:12])}: {done.returncode}", file=sys.stderr)
    if done.returncode:
        sys.exit(f"{shlex.join(words)}\n{done.stdout[-3000:]}{done.stderr[-2000:]}")
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


class Strata:
    """A load of strata: bytes a second."""

    def __init__(self, own, words):
        self.own, self.words = own, words

    def __call__(self, place):
        record = os.path.join(place, "record.json")
        time_s = f"{self.own.seconds}s"
        words = [self.own.strata, "media", *self.words.split(), "--time", time_s, "--warmup", "none", "--live", "none", "--json", record]
        run(words, place)
        with open(record, encoding="utf-8") as file:
            return json.load(file)["phases"][0]["summary"]["total"]["bytes_per_second"]


class Torch:
    """The same copy by PyTorch."""

    def __init__(self, own, size, how):
        self.words = [sys.executable, "-c", TORCH, str(size), str(own.seconds), how]

    def __call__(self, place):
        return float(run(self.words, place)[0].split()[-1])


def in_turns(own, contenders, place):
    """Figures of each contender, over all rounds."""
    figures = {name: [] for name in contenders}
    names = list(contenders)
    for turn in range(own.repeats):
        for name in names[turn % len(names):] + names[:turn % len(names)]:
            figures[name].append(contenders[name](place))
    return figures


def gib(rates):
    return f"{statistics.median(rates) / GIB:.2f} GiB/s ({min(rates) / GIB:.2f} to {max(rates) / GIB:.2f})"


def copies(own, place):
    size = 256 << 20
    base = f"mem: -s {size} -b {size} --memory gpu"
    cases = (
        ("host to device, pinned", "in", "--op read"),
        ("device to host, pinned", "out", "--op write --refill once"),
        ("host to device, pageable", "in pageable", "--op read --gpu-staging pageable"),
        ("device to host, pageable", "out pageable", "--op write --refill once --gpu-staging pageable"),
        ("within the device", "within", "--op read -e gpu_mem"),
    )
    print("| copy of 256 MiB | strata | PyTorch | ratio |\n|---|---|---|---|")
    for name, how, words in cases:
        figures = in_turns(own, {"strata": Strata(own, f"{base} {words}"), "torch": Torch(own, size, how)}, place)
        ratio = statistics.median(figures["strata"]) / statistics.median(figures["torch"])
        print(f"| {name} | {gib(figures['strata'])} | {gib(figures['torch'])} | {ratio:.3f} |", flush=True)


def file_of(own, place):
    """A file of data in the page cache."""
    run([own.strata, "media", "f", "-s", own.size, "-b", "1m", "--op", "write", "--keep", "--live", "none"], place)


def staged(own, place):
    file_of(own, place)
    print("| reads of 1 MiB from the page cache | file | copy | staged | of the lower |\n|---|---|---|---|---|")
    for name, words in (("io_uring, depth 8", "-e io_uring -q 8"), ("psync, 1 thread", "-e psync"), ("psync, 4 threads", "-e psync -t 4")):
        read = f"f --op read -b 1m {words}"
        threads = "-t 4" if "-t 4" in words else ""
        figures = in_turns(own, {
            "file": Strata(own, read),
            "copy": Strata(own, f"mem: -s 256m -b 1m --op read --memory gpu {threads}"),
            "staged": Strata(own, f"{read} --memory gpu"),
        }, place)
        median = {key: statistics.median(rates) for key, rates in figures.items()}
        ratio = median["staged"] / min(median["file"], median["copy"])
        print(f"| {name} | {gib(figures['file'])} | {gib(figures['copy'])} | {gib(figures['staged'])} | {ratio:.3f} |", flush=True)


def paths(own, place):
    file_of(own, place)
    print("| reads from the page cache | 1 MiB | 64 KiB |\n|---|---|---|")
    ways = ("staged -q 8", "staged", "cufile", "cufile-batch -q 8", "cufile-stream -q 8")
    figures = {}
    for size in ("1m", "64k"):
        loads = {way: Strata(own, f"f --op randread -b {size} --memory gpu --gpu-path {way}") for way in ways}
        figures[size] = in_turns(own, loads, place)
    for way in ways:
        print(f"| `--gpu-path {way}` | {gib(figures['1m'][way])} | {gib(figures['64k'][way])} |", flush=True)


class Elbencho:
    """A line of elbencho: bytes a second, and CPU seconds a GiB."""

    def __init__(self, words, line, seconds):
        self.words = [*words, *line.split(), "--infloop", "--timelimit", str(seconds), "--nolive", "f"]

    def __call__(self, place):
        output, cpu_s = run(self.words, place)
        rate = float(re.search(r"Throughput MiB/s\s*:\s*\S+\s+(\S+)", output).group(1)) * (1 << 20)
        total = float(re.search(r"Total MiB\s*:\s*\S+\s+(\S+)", output).group(1)) * (1 << 20)
        return rate, cpu_s * GIB / total


def elbencho(own, place):
    if not own.elbencho:
        sys.exit("case elbencho needs --elbencho, a binary that was built with CUDA")
    file_of(own, place)
    lines = (
        "-r -t 1 -b 1m --gpuids 0 --cuhostbufreg --iodepth 8",
        "-r -t 1 -b 1m --gpuids 0 --cuhostbufreg",
        "-r -t 4 -b 1m --gpuids 0 --cuhostbufreg",
        "-r -t 4 -b 128k --gpuids 0 --cuhostbufreg",
        "-r -t 4 -b 1m --gpuids 0",
    )
    print("| line | elbencho | strata | throughput | CPU a GiB |\n|---|---|---|---|---|")
    for line in lines:
        contenders = {
            "elbencho": Elbencho([os.path.abspath(own.elbencho)], line, own.seconds),
            "strata": Elbencho([own.strata, "as", "elbencho"], line, own.seconds),
        }
        figures = in_turns(own, contenders, place)
        rate = {name: statistics.median(value[0] for value in values) for name, values in figures.items()}
        cpu = {name: statistics.median(value[1] for value in values) for name, values in figures.items()}
        shown = {name: f"{rate[name] / GIB:.2f} GiB/s, {cpu[name]:.4f} s" for name in figures}
        print(
            f"| `{line}` | {shown['elbencho']} | {shown['strata']} | {rate['strata'] / rate['elbencho']:.3f} | {cpu['strata'] / cpu['elbencho']:.3f} |",
            flush=True,
        )


def verified(own, place):
    print("| engine | blocks written | blocks read | errors |\n|---|---|---|---|")
    for words in ("-e psync", "-e pvsync2", "-e mmap", "-e io_uring -q 8", "-e libaio -q 8 --direct", "-e io_uring -q 8 --gpu-staging pageable", "-e cufile", "-e cufile_batch -q 8", "-e cufile_stream -q 8"):
        record = os.path.join(place, "record.json")
        line = f"v -s 256m -b 64k --op randwrite,randread --verify --memory gpu {words} -t 2 --keep --live none --json {record}"
        run([own.strata, "media", *line.split()], place)
        with open(record, encoding="utf-8") as file:
            phases = json.load(file)["phases"]
        totals = [phase["summary"]["total"] for phase in phases]
        errors = sum(total["errors"] for total in totals)
        print(f"| {words} | {totals[0]['operations']} | {totals[-1]['operations']} | {errors} |", flush=True)
        os.remove(os.path.join(place, "v"))


# Lines of dialects and applications, with %D for a directory.
LINES = (
    *(
        f"as elbencho {phase} -t 2 -b 1m -s 64m --nolive {gpu} %D/f"
        for gpu in ("--gpuids all", "--gpuids 0 --cuhostbufreg", "--gpuids 0 --cufile", "--gpuids 0 --cufile --gdsbufreg --cufiledriveropen", "--gpuids 0 --gds", "--gpuids 0 --gpuperservice", "--gpuids 0 --cuhostbufreg --iodepth 4")
        for phase in ("-w", "-r")
    ),
    "as elbencho -d -w -r -F -D -t 2 -n 1 -N 8 -s 1m -b 256k --nolive --gpuids 0 --cufile --gdsbufreg %D",
    "as elbencho -d -w -r -F -D -t 2 -n 1 -N 8 -s 1m -b 256k --nolive --gpuids 0 --cuhostbufreg %D",
    "as fio --name=j --ioengine=libcufile --gpu_dev_ids=0 --cuda_io=cufile --rw=write --bs=1m --size=64m --direct=1 --directory=%D",
    "as fio --name=j --ioengine=libcufile --gpu_dev_ids=0 --cuda_io=posix --rw=randread --bs=64k --size=64m --directory=%D",
    "as ior -a POSIX -b 32m -t 1m --allocateBufferOnGPU=3 -o %D/ior",
    "as ior -a POSIX -b 32m -t 1m -O allocateBufferOnGPU=3 -O GPUDirect=1 -o %D/ior",
    "as mdtest -n 16 -w 64k -e 64k -d %D --allocateBufferOnGPU=3",
    "as mdtest -n 16 -w 64k -e 64k -d %D --gpuDirect",
    "app checkpoint %D --set size=16m,steps=2 --memory gpu",
    "app dlio %D --workload bert --memory gpu --set dataset.num_files_train=2,dataset.num_samples_per_file=640,train.computation_time=0.01,train.total_training_steps=8",
    "fs %D --op write,read --dirs 2 --files 8 --file-size 256k --memory gpu --gpu-path cufile --verify",
    "object null: --op put,get --dkeys 64 --value-size 1m --memory gpu",
    "net loopback: --count 64 -s b1m --memory gpu --verify",
    "stack --quick --size 64m --passes 2 --dir %D --gpu all",
)


def lines(own, place):
    print("| line | exit code | last words of standard error |\n|---|---|---|")
    for line in LINES:
        words = [own.strata, *shlex.split(line.replace("%D", place))]
        done = subprocess.run(words, cwd=place, capture_output=True, text=True, timeout=300)
        told = (done.stderr.strip().splitlines() or [""])[-1][:160] if done.returncode else ""
        print(f"| `{line}` | {done.returncode} | {told} |", flush=True)


def main():
    own = options()
    cases = {"copies": copies, "staged": staged, "paths": paths, "elbencho": elbencho, "lines": lines, "verified": verified}
    for name in own.case or [name for name in cases if name != "elbencho" or own.elbencho]:
        with tempfile.TemporaryDirectory(dir=own.dir, prefix="strata-gpu-") as place:
            began = time.monotonic()
            cases[name](own, place)
            print(f"\n{name}: {own.repeats} rounds of {own.seconds} s, {time.monotonic() - began:.0f} s\n", flush=True)


main()
