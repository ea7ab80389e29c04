"""The table of comparisons with fio."""

from dataclasses import dataclass
from typing import Callable

import targets
from measure import fio, strata

TARGET = "{target}"


@dataclass(frozen=True)
class Ratio:
    """strata against the best of fio's judged variants, by one metric."""

    name: str
    title: str
    metric: str  # rate, cpu_ns or user_ns
    goal: float  # of the rate: at least; of a cost: at most
    contenders: tuple
    target: Callable = lambda options: targets.path_of("/dev/null")
    pinned: bool = True


def uring(kind, target, *, depth=32, op="randread", extra_fio=(), extra_strata=()):
    """strata as it is by default (registered files and buffers where granted) against fio's batching variants."""
    base = ("--ioengine=io_uring", f"--rw={kind}", "--bs=4k", f"--iodepth={depth}", f"--filename={target}", *extra_fio)
    registered = (*base, "--fixedbufs=1", "--registerfiles=1")
    half, full = str(depth // 2), str(depth)

    def batched(submit, least, most):
        return (
            f"--iodepth_batch_submit={submit}",
            f"--iodepth_batch_complete_min={least}",
            f"--iodepth_batch_complete_max={most}",
        )

    return (
        strata("io_uring", target, "--op", op, "-b", "4k", "-q", full, "--engine", "io_uring", *extra_strata),
        fio("registered", *registered),
        fio(f"registered, batch {half}", *registered, *batched(half, 1, full)),
        fio(f"registered, batch {full}", *registered, *batched(full, 1, full)),
        fio(f"registered, batch {half}, wait for {half}", *registered, *batched(half, half, full)),
        fio(f"registered, batch {full}, wait for {full}", *registered, *batched(full, full, full)),
    )


def libaio(target, *, extra_fio=(), extra_strata=()):
    base = ("--ioengine=libaio", "--rw=randread", "--bs=4k", "--iodepth=32", f"--filename={target}", *extra_fio)
    batch = ("--iodepth_batch_submit=16", "--iodepth_batch_complete_min=1", "--iodepth_batch_complete_max=32")
    return (
        strata("libaio", target, "--op", "randread", "-b", "4k", "-q", "32", "--engine", "libaio", *extra_strata),
        fio("libaio", *base),
        fio("libaio, batch 16", *base, *batch),
        fio("libaio, batch 16, user-space reap", *base, *batch, "--userspace_reap"),
    )


def psync(target, *, extra_fio=(), extra_strata=()):
    return (
        strata("psync", target, "--op", "randread", "-b", "4k", "--engine", "psync", *extra_strata),
        fio("psync", "--ioengine=psync", "--rw=randread", "--bs=4k", f"--filename={target}", *extra_fio),
    )


def null(op):
    return (
        strata("null", "null:", "--op", op, "-b", "4k", "-s", "1t", "--engine", "null"),
        fio("null", "--ioengine=null", f"--rw={op}", "--bs=4k", "--size=1t", "--norandommap"),
    )


DIRECT = {"extra_fio": ("--direct=1",), "extra_strata": ("--direct",)}
# fio drops a file's cached pages unless told otherwise; strata keeps them unless told otherwise.
CACHED = {"extra_fio": ("--invalidate=0",)}
DEVNULL = "/dev/null"
# fio scrambles some bytes of each buffer by default; nothing stores what is written to /dev/null, so strata would not.
DEVNULL_SIZE = {"extra_fio": ("--size=100g",), "extra_strata": ("-s", "100g", "--refill", "stamp")}
DEVNULL_PSYNC_FIO = ("--ioengine=psync", "--rw=write", "--bs=4k", f"--filename={DEVNULL}", "--size=100g")
DEVNULL_PSYNC_STRATA = ("--op", "write", "-b", "4k", "-s", "100g", "--engine", "psync")

RATIOS = (
    Ratio("null", "null, sequential, full statistics: user + system CPU per operation", "cpu_ns", 1 / 3, null("read")),
    Ratio("null-random", "null, random, full statistics: user + system CPU per operation", "cpu_ns", 1 / 3, null("randread")),
    Ratio(
        "devnull-psync",
        "4 KiB writes to /dev/null, psync: user CPU per operation",
        "user_ns",
        1 / 2,
        (
            strata("psync", DEVNULL, *DEVNULL_PSYNC_STRATA, "--refill", "stamp"),
            strata("psync, data not renewed", DEVNULL, *DEVNULL_PSYNC_STRATA, "--refill", "once", judged=False),
            fio("psync", *DEVNULL_PSYNC_FIO),
            fio("psync, data not renewed", *DEVNULL_PSYNC_FIO, "--scramble_buffers=0", judged=False),
        ),
    ),
    Ratio(
        "devnull-uring",
        "4 KiB writes to /dev/null, io_uring, depth 32: rate",
        "rate",
        1.5,
        uring("write", DEVNULL, op="write", **DEVNULL_SIZE),
    ),
    Ratio(
        "disk-uring", "4 KiB random reads of a file on the drive, direct, io_uring, depth 32: rate", "rate", 1.0,
        uring("randread", TARGET, **DIRECT), targets.disk_file, pinned=False,
    ),
    Ratio(
        "disk-libaio", "4 KiB random reads of a file on the drive, direct, libaio, depth 32: rate", "rate", 1.0,
        libaio(TARGET, **DIRECT), targets.disk_file, pinned=False,
    ),
    Ratio(
        "loop-psync", "4 KiB random reads of a loop device over /dev/shm, direct, psync: rate", "rate", 1.1,
        psync(TARGET, **DIRECT), targets.shm_loop, pinned=False,
    ),
    Ratio(
        "loop-libaio", "4 KiB random reads of a loop device over /dev/shm, direct, libaio, depth 32: rate", "rate", 1.1,
        libaio(TARGET, **DIRECT), targets.shm_loop, pinned=False,
    ),
    Ratio(
        "loop-uring", "4 KiB random reads of a loop device over /dev/shm, direct, io_uring, depth 32: rate", "rate", 1.1,
        uring("randread", TARGET, **DIRECT), targets.shm_loop, pinned=False,
    ),
    Ratio(
        "cached-psync", "4 KiB random reads of an ext4 file in the page cache, psync: rate", "rate", 1.1,
        psync(TARGET, **CACHED), targets.cached_file,
    ),
    Ratio(
        "cached-libaio", "4 KiB random reads of an ext4 file in the page cache, libaio, depth 32: rate", "rate", 1.1,
        libaio(TARGET, **CACHED), targets.cached_file,
    ),
    Ratio(
        "cached-uring", "4 KiB random reads of an ext4 file in the page cache, io_uring, depth 32: rate", "rate", 1.1,
        uring("randread", TARGET, **CACHED), targets.cached_file,
    ),
)
