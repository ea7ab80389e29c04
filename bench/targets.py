"""Targets that are made for a case and removed after it."""

import contextlib
import os
import shutil
import subprocess
import tempfile

MIB = 1 << 20


class Unavailable(Exception):
    """What this machine or this user cannot provide."""


@contextlib.contextmanager
def path_of(path):
    """A target that is there already."""
    yield path, None


def fill(path, size_bytes):
    """Writes a file fully with incompressible data: what was never written would be answered without the drive."""
    block = bytearray(os.urandom(MIB))
    with open(path, "wb", buffering=0) as file:
        for index in range(size_bytes // MIB):
            block[0:8] = index.to_bytes(8, "little")
            file.write(block)
        os.fsync(file.fileno())


def need_space(directory, size_bytes):
    free = shutil.disk_usage(directory).free
    if free < size_bytes + 256 * MIB:
        raise Unavailable(f"{directory} has {free // MIB} MiB free, {size_bytes // MIB + 256} are needed")


@contextlib.contextmanager
def filled_file(directory, size_bytes):
    need_space(directory, size_bytes)
    with tempfile.TemporaryDirectory(prefix="strata-bench-", dir=directory) as scratch:
        path = os.path.join(scratch, "file")
        fill(path, size_bytes)
        yield path


@contextlib.contextmanager
def disk_file(options):
    """A file on the drive, none of it in the page cache."""
    with filled_file(options.dir, options.disk_mib * MIB) as path:

        def drop():
            with open(path, "rb", buffering=0) as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

        yield path, drop


@contextlib.contextmanager
def loop_device(backing):
    if os.geteuid() != 0:
        raise Unavailable("a loop device needs root")
    attached = subprocess.run(["losetup", "--find", "--show", backing], capture_output=True, text=True)
    if attached.returncode != 0:
        raise Unavailable(f"losetup: {attached.stderr.strip()}")
    device = attached.stdout.strip()
    try:
        yield device
    finally:
        subprocess.run(["losetup", "--detach", device], check=False)


@contextlib.contextmanager
def shm_loop(options):
    """A loop device over a file in shared memory."""
    with filled_file("/dev/shm", options.memory_mib * MIB) as backing, loop_device(backing) as device:
        yield device, None


@contextlib.contextmanager
def ext4_directory(options):
    """The scratch directory if it lies on ext4, else an ext4 of its own on a loop device."""
    kind = subprocess.run(
        ["findmnt", "-no", "FSTYPE", "-T", options.dir], capture_output=True, text=True, check=True
    ).stdout.strip()
    if kind == "ext4":
        yield options.dir
        return
    need_space(options.dir, 2 * options.memory_mib * MIB)
    with tempfile.TemporaryDirectory(prefix="strata-bench-", dir=options.dir) as scratch:
        image = os.path.join(scratch, "image")
        with open(image, "wb") as file:
            file.truncate(2 * options.memory_mib * MIB)
        with loop_device(image) as device:
            mount_point = os.path.join(scratch, "mount")
            os.mkdir(mount_point)
            subprocess.run(["mkfs.ext4", "-q", device], check=True)
            subprocess.run(["mount", device, mount_point], check=True)
            try:
                yield mount_point
            finally:
                subprocess.run(["umount", mount_point], check=False)


@contextlib.contextmanager
def cached_file(options):
    """A file on ext4 that is read into the page cache before every run."""
    with ext4_directory(options) as directory, filled_file(directory, options.memory_mib * MIB) as path:

        def warm():
            with open(path, "rb", buffering=0) as file:
                while file.read(MIB):
                    pass

        yield path, warm
