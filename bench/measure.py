"""Runs strata or fio once and says what it did and what it cost: resource usage of the child, so that both are measured alike."""

import json
import os
import shlex
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field


class Failure(Exception):
    """A tool that did not do what it was asked for."""


@dataclass
class Outcome:
    operations: int
    rate: float
    user_ns: float
    system_ns: float
    wall_s: float
    rss_bytes: int = 0
    record: dict = field(default_factory=dict)

    @property
    def cpu_ns(self):
        return self.user_ns + self.system_ns


@dataclass(frozen=True)
class Contender:
    """A tool with its options. Only judged ones count for the ratio; the others are shown for comparison."""

    tool: str
    label: str
    arguments: tuple
    judged: bool = True


def strata(label, target, *arguments, judged=True):
    return Contender("strata", label, ("media", target, *arguments), judged)


def dialect(label, *arguments):
    """strata given fio's own words."""
    return Contender("dialect", label, arguments)


def fio(label, *arguments, judged=True):
    return Contender("fio", label, arguments, judged)


class Bench:
    """Where the tools are, how long and how often they run."""

    def __init__(self, strata_path, seconds, repeats, core):
        self.strata_path = strata_path
        self.seconds = seconds
        self.repeats = repeats
        self.core = core
        self.scratch = tempfile.TemporaryDirectory(prefix="strata-bench-")
        self.record_path = os.path.join(self.scratch.name, "record.json")

    def command(self, contender, pinned=False, limited=True):
        """The words of the command line; `limited` adds the time to run."""
        if contender.tool == "strata":
            words = [self.strata_path, *contender.arguments]
            words += ["--time", f"{self.seconds}s", "--warmup", "none"] if limited else []
            words += ["--live", "none", "--json", self.record_path]
        else:
            words = [self.strata_path, "as", "fio"] if contender.tool == "dialect" else ["fio"]
            words += ["--name=bench", *contender.arguments]
            words += ["--time_based", f"--runtime={self.seconds}"] if limited else []
            words += ["--output-format=json"]
        return (["taskset", "-c", str(self.core)] if pinned else []) + words

    def shown(self, contender, pinned=False):
        """The command line for people."""
        words = self.command(contender, pinned)
        return shlex.join(words).replace(self.strata_path, "strata").replace(self.record_path, "RECORD")

    def run(self, contender, pinned=False, limited=True):
        """One run."""
        if os.path.exists(self.record_path):
            os.remove(self.record_path)
        words = self.command(contender, pinned, limited)
        output, usage, wall_s = run_child(words, self.seconds + 120)
        try:
            figures = strata_figures(self.record_path) if contender.tool == "strata" else fio_figures(output)
        except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
            raise Failure(f"{shlex.join(words)}: its result cannot be read: {error!r}") from error
        operations, rate, record = figures
        if operations == 0:
            raise Failure(f"{shlex.join(words)}: no operation was done")
        return Outcome(
            operations=operations,
            rate=rate,
            user_ns=usage.ru_utime * 1e9 / operations,
            system_ns=usage.ru_stime * 1e9 / operations,
            wall_s=wall_s,
            rss_bytes=usage.ru_maxrss * 1024,
            record=record,
        )

    def interleaved(self, contenders, pinned=False, before=None):
        """Outcomes of each contender over all rounds. Each round begins with another contender."""
        outcomes = {contender: [] for contender in contenders}
        for turn in range(self.repeats):
            first = turn % len(contenders)
            for contender in contenders[first:] + contenders[:first]:
                progress(f"round {turn + 1}/{self.repeats}: {contender.tool} {contender.label}")
                if before:
                    before()
                outcomes[contender].append(self.run(contender, pinned))
        progress("")
        return outcomes


def progress(text):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def run_child(words, limit_s):
    """Output, resource usage (with that of its own children) and wall time of a command that must succeed."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        start = time.monotonic()
        child = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, start_new_session=True
        )
        timer = threading.Timer(limit_s, lambda: os.killpg(child.pid, signal.SIGKILL))
        timer.start()
        try:
            _, status, usage = os.wait4(child.pid, 0)
        except BaseException:
            os.killpg(child.pid, signal.SIGTERM)
            os.wait4(child.pid, 0)
            raise
        finally:
            timer.cancel()
        wall_s = time.monotonic() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        if child.returncode != 0:
            said = errors.read().decode(errors="replace").strip() or output.read().decode(errors="replace").strip()
            raise Failure(f"{shlex.join(words)}: exit {child.returncode}: {said[-2000:]}")
        return output.read().decode(errors="replace"), usage, wall_s


def strata_figures(path):
    with open(path, encoding="utf-8") as file:
        record = json.load(file)
    if record["status"] != "complete":
        raise ValueError(f"the run is {record['status']}: {record['failure']}")
    if record["debug_build"]:
        raise ValueError("strata was built with debug assertions")
    total = record["phases"][-1]["summary"]["total"]
    if total["errors"]:
        raise ValueError(f"{total['errors']} operations failed")
    return total["operations"], total["operations_per_second"], record


def fio_figures(output):
    # Notes may stand before the JSON.
    result = json.loads(output[output.index("{"):])
    jobs = result["jobs"]
    if any(job["error"] for job in jobs):
        raise ValueError(f"fio error {[job['error'] for job in jobs]}")
    kinds = [job[kind] for job in jobs for kind in ("read", "write")]
    return sum(kind["total_ios"] for kind in kinds), sum(kind["iops"] for kind in kinds), result


def median(values):
    return statistics.median(list(values))


def spread(values, form):
    values = list(values)
    return f"{form(median(values))} ({form(min(values))} to {form(max(values))})"


def priority():
    """Words in front of a command that give it real-time priority, where that is allowed."""
    try:
        allowed = subprocess.run(["chrt", "--rr", "5", "true"], capture_output=True).returncode == 0
    except FileNotFoundError:
        allowed = False
    return ["chrt", "--rr", "5"] if allowed else []
