#!/usr/bin/env python3
"""Cost of a coordinator by the number of hosts: simulated services in processes of their own, behind the real control channel.

    bench/fleet.py [--hosts 100,300,1000,3000,10000] [--repeat 3] [--tls] [--seconds 5]

Runs the test `tests::scale::scale` of the fleet crate (profile quick), and prints a table of medians and the exponent of growth of each figure
between the first and the last number of hosts, with what it says for 100,000. Raise the limit of open files first: three for each host.
"""

import argparse
import math
import os
import re
import statistics
import subprocess
import sys

FIGURES = [
    "connect_s", "start_s", "skew_ms", "p99_late_ms", "cpu_percent", "bytes_per_host_s", "collect_s", "merge_s",
    "by_host_s", "peak_mib",
]


def measure(hosts, options):
    environment = dict(os.environ, STRATA_SCALE_HOSTS=str(hosts), STRATA_SCALE_SECONDS=str(options.seconds))
    if options.tls:
        environment["STRATA_SCALE_TLS"] = "1"
    command = ["cargo", "test", "--profile", "quick", "-p", "fleet", "--lib", "--", "--exact", "tests::scale::scale",
               "--nocapture"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    line = re.search(r"^scale (.*)$", done.stdout, re.MULTILINE)
    if done.returncode != 0 or line is None:
        sys.exit(f"{hosts} hosts: the measurement failed\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return {name: float(value) for name, value in (word.split("=") for word in line.group(1).split())}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", default="100,300,1000,3000,10000")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--tls", action="store_true")
    options = parser.parse_args()
    counts = [int(word) for word in options.hosts.split(",")]
    runs = {hosts: [] for hosts in counts}
    for _ in range(options.repeat):
        for hosts in counts:
            runs[hosts].append(measure(hosts, options))
    medians = {hosts: {name: statistics.median(run[name] for run in runs[hosts]) for name in FIGURES} for hosts in counts}
    print("| hosts | " + " | ".join(FIGURES) + " |")
    print("|" + "---|" * (len(FIGURES) + 1))
    for hosts in counts:
        print(f"| {hosts} | " + " | ".join(f"{medians[hosts][name]:.4g}" for name in FIGURES) + " |")
    if len(counts) < 2:
        return
    first, last = counts[0], counts[-1]
    exponents, ahead = [], []
    for name in FIGURES:
        low, high = medians[first][name], medians[last][name]
        exponent = math.log(high / low) / math.log(last / first) if low > 0 and high > 0 else float("nan")
        exponents.append(f"{exponent:.2f}")
        ahead.append(f"{high * (100_000 / last) ** exponent:.4g}" if math.isfinite(exponent) else "")
    print("| growth, N to the power of | " + " | ".join(exponents) + " |")
    print("| 100000, by this growth | " + " | ".join(ahead) + " |")


if __name__ == "__main__":
    main()
