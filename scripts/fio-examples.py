#!/usr/bin/env python3
"""Runs every example job file of Debian's fio package through fio itself and through `strata as fio`, and tells what became
of each.

    scripts/fio-examples.py [--strata PATH] [--fio PATH] [--examples DIRECTORY] [--scratch DIRECTORY] [--page FILE]
                            [--bucket http://HOST:PORT/BUCKET] [--ceph CONF:POOL] [FILE...]

Prints a row of Markdown for each file: that it ran, with operations and exit code (one that was stopped counts as neither), or the option that it is rejected for, and
whether fio itself ran it here. With --page the rows and both counts are put between the marks of docs/dialects/fio.md. Exits
with 1 where a file neither ran nor was rejected by the name of an option. Jobs on objects need a bucket (its keys come from
AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY) and a pool of Ceph.

What is replaced, so that no device is touched and the whole takes a few minutes (REPLACED below tells it to readers):
paths, sizes, times and repetitions. Every other line is run as it stands.
"""

import argparse
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

SIZE_BYTES_MAX = 16 << 20
SECONDS_MAX = 2
LOOPS_MAX = 2
LIMIT_S = 40
MARKS = ("<!-- examples that ran -->\n", "<!-- end of examples that ran -->")
REPLACED = """`scripts/fio-examples.py` ran these files, each in a separate directory. It replaced only these lines:

- every path of `filename` by a file of the same name in the directory; a path below `/dev` becomes an existing file of 16 MiB, and
  with `allow_file_create=0` the files of the jobs exist;
- `program` by `/bin/true` if this machine does not have it;
- `directory` by that directory; the environment variables of the files are set (`FIO_RW=randread`, `FIO_BS=4k`,
  `FIO_IODEPTH=1`, `FIO_DIR`, and 16 MiB and 2 s for sizes and times);
- `size`, `filesize` and `io_size` above 16 MiB by 16 MiB; `runtime` and `timeout` above 2 s by 2 s; `ramp_time` and
  `startdelay` above 1 s by 1 s; `loops` above 2 by 2; `zonesize` above 1 MiB by 1 MiB;
- `http_host`, `https`, and `filename` of jobs with `ioengine=http`, by a bucket of a server on this machine; `pool` and `conf` by
  a pool of a one-node Ceph cluster with an image `fio_test`; keys by the keys of these servers, and `STORAGE_CLASS` by `STANDARD`;
- `POOL` and `CONT` by the file system of a pool in the directory (`vos:pool`, `dfs`)."""

UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "ms": 0.001, "us": 0.000001}
LIMITS = {
    "size": ("bytes", SIZE_BYTES_MAX, "16m"),
    "filesize": ("bytes", SIZE_BYTES_MAX, "16m"),
    "io_size": ("bytes", SIZE_BYTES_MAX, "16m"),
    "io_limit": ("bytes", SIZE_BYTES_MAX, "16m"),
    "runtime": ("seconds", SECONDS_MAX, "2"),
    "timeout": ("seconds", SECONDS_MAX, "2"),
    "ramp_time": ("seconds", 1, "1"),
    "startdelay": ("seconds", 1, "1"),
    "zonesize": ("bytes", 1 << 20, "1m"),
    "loops": ("count", LOOPS_MAX, "2"),
}
REFUSAL = re.compile(
    r"^strata: fio: (?:job file [^,]+(?:, line \d+)?(?:, section \[.*?\])?|job [^,]+), (?P<option>[A-Za-z0-9_-]+): (?P<why>.*)$",
    re.MULTILINE,
)


# Where jobs on objects have theirs: host and bucket of a server, and configuration and pool of a cluster.
PLACES: dict[str, str] = {}


def amount(kind: str, text: str) -> float | None:
    """What a value comes to; None where it is no plain amount, such as a percentage or a variable."""
    match = re.fullmatch(r"(\d+)\s*([a-z]*)", text.strip().lower())
    if not match:
        return None
    number, unit = int(match[1]), match[2]
    if kind == "seconds":
        return number * SECONDS[unit] if unit in SECONDS else None
    if kind == "bytes":
        unit = unit.removesuffix("ib").removesuffix("b")
    return number * UNITS[unit] if unit in UNITS else None


def replaced(line: str, scratch: pathlib.Path, is_of_http: bool) -> str:
    """A line of a job file with its place, size or time replaced."""
    match = re.match(r"\s*([a-z_]+)\s*=\s*([^;#]*?)\s*(?:[;#].*)?$", line)
    if not match:
        return line
    key, value = match[1], match[2]
    if key == "program" and not pathlib.Path(value).exists():
        return "program=/bin/true"
    if key in ("http_host", "pool", "conf") and key in PLACES and "$" not in value:
        return f"{key}={PLACES[key]}"
    if key == "https" and "http_host" in PLACES:
        return "https=off"
    if key == "filename" and is_of_http and "bucket" in PLACES:
        return f"filename=/{PLACES['bucket']}/{value.split('/')[-1]}"
    if key == "directory":
        return f"directory={scratch}"
    if key == "filename":
        names = []
        for path in re.split(r"(?<!\\):", value):
            names.append(path.strip().replace("\\", "").split("/")[-1])
            if path.strip().startswith("/dev/"):
                (scratch / names[-1]).touch()
                os.truncate(scratch / names[-1], SIZE_BYTES_MAX)
        return f"filename={':'.join(name.replace(':', '_') for name in names)}"
    if key in LIMITS:
        kind, most, text = LIMITS[key]
        found = amount(kind, value)
        if found is not None and found > most:
            return f"{key}={text}"
    return line


def environment(scratch: pathlib.Path, text: str) -> dict[str, str]:
    """The variables of the job file, all set."""
    known = {"FIO_RW": "randread", "FIO_BS": "4k", "FIO_IODEPTH": "1", "FIO_DIR": str(scratch)}
    known |= {"S3_ID": os.environ.get("AWS_ACCESS_KEY_ID", ""), "S3_KEY": os.environ.get("AWS_SECRET_ACCESS_KEY", "")}
    known["STORAGE_CLASS"] = "STANDARD"
    known |= {"POOL": "vos:pool", "CONT": "dfs"}
    variables = dict(os.environ)
    for name in re.findall(r"\$\{(\w+)\}", text):
        default = "2" if "TIME" in name else "16m"
        variables[name] = known.get(name, default)
    return variables


def end_all(scratch: pathlib.Path) -> None:
    """Ends every process that works in a directory."""
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").resolve() == scratch.resolve():
                os.kill(int(process.name), signal.SIGKILL)
        except OSError:
            pass  # It has ended, or is another's.


def attempt(words: list[object], example: pathlib.Path, base: pathlib.Path) -> tuple[int, str, list[int] | None]:
    """Exit code, standard error and operations by direction of a program that runs a file; no operations where it printed no
    results, and no exit code where it did not end."""
    with tempfile.TemporaryDirectory(dir=base, ignore_cleanup_errors=True) as name:
        scratch = pathlib.Path(name)
        text = example.read_text(errors="replace")
        if re.search(r"^\s*allow_file_create\s*=\s*0", text, re.MULTILINE):
            for section in re.findall(r"^\[(?!global)(.+?)\]", text, re.MULTILINE):
                (scratch / f"{section}.0.0").touch()
                os.truncate(scratch / f"{section}.0.0", SIZE_BYTES_MAX)
        if "${POOL}" in text and "as" in words:
            made = [words[0], "pool", "create", "vos:pool", "--scm", "64m", "--nvme", "1g"]
            subprocess.run(made, cwd=scratch, stdout=subprocess.DEVNULL, check=True)
        copy = scratch / example.name
        is_of_http = re.search(r"^\s*ioengine\s*=\s*http", text, re.MULTILINE) is not None
        copy.write_text("".join(replaced(line, scratch, is_of_http) + "\n" for line in text.splitlines()))
        # Into a file: fio's jobs are processes with sessions of their own, which outlive their parent and would hold a pipe.
        with (scratch / "stderr.txt").open("w") as said:
            program = subprocess.Popen(
                [*words, "--output-format=json", "--output=out.json", example.name],
                cwd=scratch,
                env=environment(scratch, text),
                stdout=subprocess.DEVNULL,
                stderr=said,
            )
            try:
                program.wait(timeout=LIMIT_S)
            except subprocess.TimeoutExpired:
                end_all(scratch)
                program.wait()
                return -1, f"did not end within {LIMIT_S} s", None
        said = (scratch / "stderr.txt").read_text(errors="replace")
        try:
            # fio writes its messages before the object.
            results = (scratch / "out.json").read_text()
            jobs = json.loads(results[results.index("{") :])["jobs"]
            ways = [job[way]["total_ios"] for job in jobs for way in ("read", "write", "trim")]
        except (OSError, ValueError, KeyError):
            ways = None
        return program.returncode, said, ways


def run(strata: pathlib.Path, example: pathlib.Path, base: pathlib.Path) -> tuple[str, bool]:
    """What became of a file in words, and whether that is one of the two things that may become of it."""
    code, said, ways = attempt([strata, "as", "--destroy-data", "fio"], example, base)
    if code == -1:
        return f"ran: still at work when it was stopped, after {LIMIT_S} s", True
    refusal = REFUSAL.search(said)
    if code == 2 and refusal:
        return f"rejected: `{refusal['option']}`", True
    last = (said.strip().splitlines() or ["nothing said"])[-1]
    if ways is None:
        return f"failed: exit {code}: {last}", False
    if code == 1 and sum(ways) > 0:
        return f"ran: {sum(ways)} operations, exit 1: {last.removeprefix('strata: run: partial: ')}", False
    if code == 2 and "no zone of the range holds data" in last:
        # Emulated zones are empty: fio reads nothing either, and says nothing.
        return "ran: 0 operations, exit 2: no zone of the range holds data below its write pointer", True
    if code != 0 or sum(ways) == 0:
        return f"failed: exit {code}, {sum(ways)} operations: {last}", False
    return f"ran: {sum(ways)} operations, exit 0", True


def run_original(fio: pathlib.Path, example: pathlib.Path, base: pathlib.Path) -> bool:
    """Whether fio itself runs a file here: exit 0, and results."""
    code, _, ways = attempt([fio], example, base)
    return code == 0 and ways is not None


def main() -> int:
    root = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description="Runs fio's example job files through strata as fio.")
    parser.add_argument("--strata", type=pathlib.Path, default=root / "target/release/strata")
    parser.add_argument("--fio", type=pathlib.Path, default=pathlib.Path("/usr/bin/fio"), help="fio itself")
    parser.add_argument("--examples", type=pathlib.Path, default=pathlib.Path("/usr/share/doc/fio/examples"))
    parser.add_argument("--scratch", type=pathlib.Path, default=None, help="on a real disk; default: the system's")
    parser.add_argument("--bucket", help="http://HOST:PORT/BUCKET for jobs with ioengine=http")
    parser.add_argument("--ceph", help="CONF:POOL for jobs with ioengine=rados or rbd; the pool has an image fio_test")
    parser.add_argument("--page", type=pathlib.Path, help="page whose marked part is replaced by the rows")
    parser.add_argument("names", nargs="*", help="only these files")
    options = parser.parse_args()
    if options.bucket:
        PLACES["http_host"], PLACES["bucket"] = options.bucket.removeprefix("http://").split("/")
    if options.ceph:
        PLACES["conf"], PLACES["pool"] = options.ceph.rsplit(":", 1)
        # For jobs that name no configuration.
        os.environ["CEPH_CONF"] = PLACES["conf"]
    files = [file for file in sorted(options.examples.glob("*.fio")) if not options.names or file.name in options.names]
    if not files:
        print(f"no job files in {options.examples}", file=sys.stderr)
        return 1
    base = options.scratch or pathlib.Path(tempfile.gettempdir())
    rows, bad = {}, 0
    if options.names and options.page:
        # Only these rows are made anew.
        part = options.page.read_text().split(MARKS[0])[1].split(MARKS[1])[0]
        rows = {name: line for line in part.splitlines() for name in re.findall(r"^\| `([^`]+)` \| ", line)}
    for file in files:
        is_run_by_fio = run_original(options.fio, file, base)
        words, is_good = run(options.strata.resolve(), file, base)
        # What fails in fio too may fail here.
        bad += not is_good and (is_run_by_fio or not words.startswith("ran: "))
        rows[file.name] = f"| `{file.name}` | {words} | {'runs' if is_run_by_fio else 'does not run'} |"
        print(rows[file.name], flush=True)
    by_fio = [row for row in rows.values() if row.endswith("| runs |")]
    ran = [row for row in rows.values() if "exit 0 |" in row]
    sentence = (
        f"On this machine, fio itself runs {len(by_fio)} of the {len(rows)} files, and strata runs {len(ran)}. Of the files that fio runs, "
        f"strata runs {len(set(ran) & set(by_fio))}."
    )
    print(f"{sentence} {sum('| rejected: ' in row for row in rows.values())} rejected, {bad} neither.", file=sys.stderr)
    if options.page and not bad:
        page = options.page.read_text()
        before, rest = page.split(MARKS[0])
        after = rest.split(MARKS[1])[1]
        table = "\n".join(["| file | result | fio itself |", "|---|---|---|", *(rows[name] for name in sorted(rows))])
        options.page.write_text(f"{before}{MARKS[0]}\n{REPLACED}\n\n{sentence}\n\n{table}\n\n{MARKS[1]}{after}")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
