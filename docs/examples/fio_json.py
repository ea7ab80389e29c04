#!/usr/bin/env python3
"""Prints IOPS, bandwidth, mean and p99 completion latency of each job from `fio --output-format=json`.

Works on the output of fio and of `strata as fio` alike: reads the files named, or standard input.
"""

import json
import sys

DIRECTIONS = ("read", "write", "trim")
ROW = "{:<16} {:<6} {:>12} {:>12} {:>12} {:>12}"


def rows(result):
    """One row for each direction that a job used."""
    for job in result["jobs"]:
        for direction in DIRECTIONS:
            figures = job[direction]
            if not figures["total_ios"]:
                continue
            latency = figures["clat_ns"]
            p99 = latency.get("percentile", {}).get("99.000000")
            yield (
                job["jobname"],
                direction,
                f"{figures['iops']:.0f}",
                f"{figures['bw_bytes'] / 1e6:.1f}",
                f"{latency['mean'] / 1e3:.2f}",
                "-" if p99 is None else f"{p99 / 1e3:.2f}",
            )


def complaints(result):
    """What casts doubt on the figures."""
    if "error" in result:
        yield f"the run failed: {result['error']}"
    for job in result["jobs"]:
        if job["error"]:
            yield f"{job['jobname']}: error {job['error']}"
        for doubt in job.get("doubts", []):
            yield f"{job['jobname']}: {doubt['detail']}"


def show(text):
    """Prints one result; warnings before the object are skipped."""
    result = json.loads(text[text.index("{") :])
    print(ROW.format("job", "", "IOPS", "BW MB/s", "clat us", "p99 us"))
    for row in rows(result):
        print(ROW.format(*row))
    found = list(complaints(result))
    for complaint in found:
        print(complaint, file=sys.stderr)
    return any(job["error"] for job in result["jobs"]) or "error" in result


def main():
    if len(sys.argv) > 1:
        texts = [open(path, encoding="utf-8").read() for path in sys.argv[1:]]
    else:
        texts = [sys.stdin.read()]
    return int(any([show(text) for text in texts]))


if __name__ == "__main__":
    sys.exit(main())
