#!/usr/bin/env python3
"""Every application of `strata app` on every kind of target, as one process, with `--hosts local:4` and under mpirun: does it run, and is
nothing left behind? Small, and verified; no figures of speed. Markdown on standard output; ends with 1 where a run fails or leaves files.

S3 is versitygw on a directory. mpirun is Open MPI's.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile

# The helpers beside this file leave no compiled copies in the source tree.
sys.dont_write_bytecode = True

from files import engine

FIELDS = "steps=2,members=2,levels=2,params=2,writers=4,readers=4,size=256KiB"
DLIO = ("dataset.num_files_train=16,dataset.record_length_bytes=1048576,dataset.record_length_bytes_stdev=0,train.epochs=1,"
        "train.computation_time=0.01,reader.batch_size=2")

# Words of each application, and its values on kinds of targets that take them in another form.
APPLICATIONS = {
    "fdb-hammer A": (["fdb-hammer"], FIELDS, {}),
    "fdb-hammer B": (["fdb-hammer", "--pattern", "B"], FIELDS, {}),
    "checkpoint": (["checkpoint"], "ranks=4,steps=2,size=4MiB,compute=5ms",
                   {kind: "names=direct,transfer=4MiB" for kind in ("vos", "engine", "s3")}),
    "vpic": (["vpic"], "ranks=4,steps=2,particles=65536,compute=5ms", {"s3": "files=variable"}),
    "bd-cats": (["bd-cats"], "ranks=4,steps=2,particles=65536,compute=5ms", {"s3": "files=variable"}),
    "cosmic-tagger": (["cosmic-tagger"], "samples=400,batch=8,batches=20,step=2ms,loaders=3",
                      {"s3": "files=sample", "direct": "size=20KiB..40KiB/4KiB"}),
    "database": (["database"], "clients=4,interval=100,steps=2,pages=256,reads=200,dirty=50", {"s3": "files=page"}),
    "dlio unet3d": (["dlio", "--workload", "unet3d", "--accelerators", "4"], DLIO, {}),
}

WAYS = {
    "one process": ([], []),
    "local:4": ([], ["--hosts", "local:4"]),
    "mpirun": (["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "4"], []),
}


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strata", default="target/release/strata")
    parser.add_argument("--versitygw", help="the server; without it there is no column of S3")
    parser.add_argument("--port", type=int, default=7999, help="port of the server (7999)")
    parser.add_argument("--dir", help="where the targets lie (a directory of its own among temporary files)")
    parser.add_argument("--application", action="append", choices=APPLICATIONS, help="one of them alone; several times: several")
    return parser.parse_args()


@contextlib.contextmanager
def gateway(own, place):
    """The options of a bucket `b` of versitygw; none without the server."""
    if own.versitygw is None:
        yield None
        return
    os.makedirs(f"{place}/s3/b")
    server = subprocess.Popen(
        [own.versitygw, "--access", os.environ["AWS_ACCESS_KEY_ID"], "--secret", os.environ["AWS_SECRET_ACCESS_KEY"],
         "--port", f"127.0.0.1:{own.port}", "posix", f"{place}/s3"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield ["--target-options", f"s3-endpoint=http://127.0.0.1:{own.port}"]
    finally:
        server.kill()
        server.wait()


def run(own, place, words, way):
    """None, or why the run is no good."""
    before, after = WAYS[way]
    record = f"{place}/record.json"
    with contextlib.suppress(FileNotFoundError):
        os.remove(record)
    words = [*before, own.strata, "app", *words, *after, "--live", "none", "--json", record]
    try:
        ended = subprocess.run(words, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return "no end in 120 s"
    if ended.returncode != 0:
        lines = [line for line in ended.stderr.splitlines() if line.startswith("strata")]
        return f"{ended.returncode}: {(lines or ended.stderr.splitlines() or ['?'])[0]}"
    with open(record, encoding="utf-8") as file:
        status = json.load(file)["status"]
    return None if status == "complete" else f"the record is {status}"


def main():
    own = options()
    os.environ.setdefault("AWS_ACCESS_KEY_ID", "ak")
    os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "secretsecret")
    with tempfile.TemporaryDirectory(dir=own.dir) as place, gateway(own, place) as s3, engine(own, place) as address:
        os.makedirs(f"{place}/files")
        os.environ["XDG_STATE_HOME"] = f"{place}/state"
        for pool in ("store", "filesystem"):
            subprocess.run([own.strata, "pool", "create", f"vos:{place}/{pool}", "--scm", "2g"], check=True, capture_output=True)
        targets = {
            "directory": (f"{place}/files", []),
            "direct": (f"{place}/files", ["--target-options", "direct=true"]),
            "dfs+vos": (f"dfs+vos:{place}/filesystem", []),
            "dfs+engine": (f"dfs+engine://{address}/p/files", []),
            "vos": (f"vos:{place}/store", []),
            "engine": (f"engine://{address}/p/objects", []),
        }
        if s3 is not None:
            targets["s3"] = ("s3://b", s3)
        print("| application | " + " | ".join(targets) + " |")
        print("|---" * (len(targets) + 1) + "|")
        faults, count = [], 0
        for name in own.application or APPLICATIONS:
            words, values, others = APPLICATIONS[name]
            cells = []
            for kind, (target, more) in targets.items():
                set_words = ",".join(filter(None, [values, others.get(kind)]))
                good = []
                for way in WAYS:
                    count += 1
                    fault = run(own, place, [words[0], target, *words[1:], "--set", set_words, *more], way)
                    left = os.listdir(f"{place}/files")
                    fault = fault or (f"left {left}" if left else None)
                    if fault:
                        faults.append(f"{name} on {kind}, {way}: {fault}")
                    else:
                        good.append(way)
                cells.append("all" if len(good) == len(WAYS) else ", ".join(good) or "none")
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
        print(f"\n{count - len(faults)} of {count} runs are good.")
        for fault in faults:
            print(f"- {fault}")
        return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
