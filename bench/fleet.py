#!/usr/bin/env python3
"""Cost of a coordinator by the number of hosts: simulated services in processes of their own, behind the real control channel.

    bench/fleet.py [--hosts 10,100,1000,10000] [--repeat 3] [--tls] [--seconds 10] [--masters] [--profile quick]

Runs the test `tests::scale::sessions::scale_of_sessions` of the fleet crate (runs of --hosts), or `tests::scale::scale` (--masters: jobs of
--clients and --master), in a network namespace of its own where it may, so that no traffic of others counts. Prints a table of medians, the
exponent of growth of each figure over all numbers of hosts (least squares of the logarithms, with the half width of its 95 % interval), and what
it says for 100,000. Bytes are those of loopback with all headers. Services and coordinator share the processors: beside `services_cpu_percent`
near the machine's all, times are those of the services as much as of the coordinator.
"""

import argparse
import json
import math
import os
import re
import resource
import statistics
import subprocess
import sys

# Two-sided 95 % quantiles of Student's t by degrees of freedom.
T_95 = {1: 12.71, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262, 10: 2.228}
TESTS = {False: "tests::scale::sessions::scale_of_sessions", True: "tests::scale::scale"}
# Descriptors of the coordinator, and of a process of services: one and two a service of up to 2,500.
DESCRIPTORS_SPARE = 500


def raise_limit(hosts):
    """Open files up to what is needed, or the hard limit."""
    needed = max(hosts, 2 * 2500) + DESCRIPTORS_SPARE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < needed:
        sys.exit(f"{hosts} hosts take {needed} open files, the hard limit is {hard}; raise it (ulimit -Hn), or give fewer --hosts")
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def build(profile):
    """The test programme of the fleet crate."""
    command = ["cargo", "test", "--profile", profile, "--locked", "-p", "fleet", "--lib", "--no-run",
               "--message-format", "json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit("the test programme was not built")
    messages = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    programmes = [m["executable"] for m in messages if m.get("executable") and m["target"]["name"] == "fleet"]
    return programmes[-1]


def alone():
    """Words that run a command in a network of its own; none where that is not allowed."""
    words = ["unshare", "-rn", "sh", "-c", "ip link set lo up && exec \"$@\"", "sh"]
    try:
        works = subprocess.run(words + ["true"], capture_output=True).returncode == 0
    except OSError:
        works = False
    if not works:
        print("no network namespace: bytes include the traffic of others on loopback", file=sys.stderr)
    return words if works else []


def measure(programme, hosts, options, words):
    environment = dict(os.environ, STRATA_SCALE_HOSTS=str(hosts), STRATA_SCALE_SECONDS=str(options.seconds))
    if options.tls:
        environment["STRATA_SCALE_TLS"] = "1"
    command = words + [programme, "--exact", TESTS[options.masters], "--nocapture"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    line = re.search(r"^scale (.*)$", done.stdout, re.MULTILINE)
    if done.returncode != 0 or line is None:
        print(f"{hosts} hosts: the measurement failed\n{done.stdout[-2000:]}{done.stderr[-2000:]}", file=sys.stderr)
        return None
    load = os.getloadavg()[0]
    print(f"{line.group(0)} load={load:.1f}", file=sys.stderr, flush=True)
    return {name: float(value) for name, value in (word.split("=") for word in line.group(1).split())}


def growth(points):
    """Exponent of a power law, the half width of its 95 % interval, and its value at 100,000; none where a figure is 0."""
    points = [(math.log(hosts), math.log(value)) for hosts, value in points if math.isfinite(value) and value > 0]
    if len({x for x, _ in points}) < 2:
        return None
    mean_x = statistics.fmean(x for x, _ in points)
    mean_y = statistics.fmean(y for _, y in points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    free = len(points) - 2
    half = math.nan
    if free > 0:
        rest = sum((y - mean_y - slope * (x - mean_x)) ** 2 for x, y in points)
        half = T_95.get(free, 1.96 + 2.5 / free) * math.sqrt(rest / free / spread)
    return slope, half, math.exp(mean_y + slope * (math.log(100_000) - mean_x))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", default="10,100,1000,10000")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--profile", default="quick")
    parser.add_argument("--tls", action="store_true")
    parser.add_argument("--masters", action="store_true")
    options = parser.parse_args()
    counts = [int(word) for word in options.hosts.split(",")]
    raise_limit(max(counts))
    programme, words = build(options.profile), alone()
    runs = {hosts: [] for hosts in counts}
    for _ in range(options.repeat):
        for hosts in counts:
            runs[hosts].append(measure(programme, hosts, options, words))
    good = {hosts: [run for run in runs[hosts] if run] for hosts in counts}
    names = [name for name in next((some[0] for some in good.values() if some), {}) if name != "hosts"]
    print("| hosts | runs | " + " | ".join(names) + " |")
    print("|" + "---|" * (len(names) + 2))
    for hosts in counts:
        known = [[run[name] for run in good[hosts] if math.isfinite(run[name])] for name in names]
        cells = [f"{statistics.median(values):.4g}" if values else "" for values in known]
        print(f"| {hosts} | {len(good[hosts])} of {len(runs[hosts])} | " + " | ".join(cells) + " |")
    fits = [growth([(hosts, run[name]) for hosts in counts for run in good[hosts]]) for name in names]
    print("| growth, N to the power of | | " + " | ".join(f"{fit[0]:.2f} ± {fit[1]:.2f}" if fit else "" for fit in fits) + " |")
    print("| 100000, by this growth | | " + " | ".join(f"{fit[2]:.3g}" if fit else "" for fit in fits) + " |")
    if any(None in some for some in runs.values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
