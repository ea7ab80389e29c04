#!/usr/bin/env python3
"""fio's engine rbd and `strata media rbd:` in turns, on an image of a Ceph cluster of one node with its OSD in memory. Markdown.

    bench/rbd.py [--strata target/release/strata] [--rounds 5] [--seconds 4]

Both go through the same librbd, with its cache off. The ratio is taken round by round and its median is shown; above 1 strata does more."""

import argparse
import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

from measure import Failure, median, progress, run_child

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NODE = os.path.join(ROOT, "scripts", "ceph-node.sh")
IMAGE = "strata/bench"
# name, fio's rw, operation, block size, depth
CASES = [
    ("4 KiB random reads, depth 1", "randread", "randread", "4k", 1),
    ("4 KiB random reads, depth 16", "randread", "randread", "4k", 16),
    ("4 KiB random writes, depth 16", "randwrite", "randwrite", "4k", 16),
    ("1 MiB reads, depth 4", "read", "read", "1m", 4),
]


def of_fio(arguments, conf, case, scratch):
    _, rw, _, block, depth = case
    pool, image = IMAGE.split("/")
    words = ["fio", "--name=x", "--ioengine=rbd", f"--pool={pool}", f"--rbdname={image}", "--clientname=admin", f"--rw={rw}", f"--bs={block}",
             f"--iodepth={depth}", "--time_based", f"--runtime={arguments.seconds}", "--output-format=json", f"--output={scratch}/fio.json"]
    run_child(["env", f"CEPH_CONF={conf}", *words], arguments.seconds + 60)
    with open(f"{scratch}/fio.json", encoding="utf-8") as file:
        text = file.read()
    job = json.loads(text[text.index("{"):])["jobs"][0]
    way = "write" if rw == "randwrite" else "read"
    return job[way]["iops"], job[way]["clat_ns"]["percentile"]["50.000000"] / 1e3


def of_strata(arguments, conf, case, scratch):
    _, _, operation, block, depth = case
    record = f"{scratch}/record.json"
    words = [arguments.strata, "media", f"rbd:{IMAGE}:conf={conf}", "--op", operation, "-b", block, "-q", str(depth), "--time", f"{arguments.seconds}s",
             "--warmup", "none", "--live", "none", "--direct", "--json", record]
    run_child(words, arguments.seconds + 60)
    with open(record, encoding="utf-8") as file:
        total = json.load(file)["phases"][0]["summary"]["total"]
    return total["operations_per_second"], total["latency"]["p50_ns"] / 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strata", default=os.path.join(ROOT, "target", "release", "strata"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="strata-rbd-") as scratch:
        node = os.path.join(scratch, "node")
        subprocess.run(["bash", NODE, "start", node, str(os.getpid())], check=True, stdout=subprocess.DEVNULL)
        try:
            conf = os.path.join(node, "ceph.conf")
            with open(conf, "a", encoding="utf-8") as file:
                file.write("\n[client]\nrbd_cache = false\n")
            subprocess.run(["rbd", "--conf", conf, "create", "--size", "256M", IMAGE], check=True)
            fill = [arguments.strata, "media", f"rbd:{IMAGE}:conf={conf}", "--op", "write", "-b", "1m", "-q", "4"]
            subprocess.run(fill, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            print("| load | fio, rbd | strata, rbd | ratio: median (lowest to highest) | p50 fio | p50 strata |")
            print("|---|---|---|---|---|---|")
            for case in CASES:
                found = {of_fio: [], of_strata: []}
                for turn in range(arguments.rounds):
                    for side in (of_fio, of_strata) if turn % 2 == 0 else (of_strata, of_fio):
                        progress(f"{case[0]}, round {turn + 1}")
                        found[side].append(side(arguments, conf, case, scratch))
                progress("")
                rates = {side: [run[0] for run in runs] for side, runs in found.items()}
                p50 = {side: median([run[1] for run in runs]) for side, runs in found.items()}
                ratios = [ours / theirs for theirs, ours in zip(rates[of_fio], rates[of_strata])]
                print(f"| {case[0]} | {median(rates[of_fio]):,.0f}/s | {median(rates[of_strata]):,.0f}/s | {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
                      f" | {p50[of_fio]:.0f} us | {p50[of_strata]:.0f} us |", flush=True)
        finally:
            subprocess.run(["bash", NODE, "stop", node], check=False, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(f"rbd: {failure}")
