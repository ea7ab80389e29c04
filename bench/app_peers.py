#!/usr/bin/env python3
"""Applications beside the tools that they come from, in turns, each on files of the same directory; Markdown on standard output. Each peer is
built or installed outside of the project, and a case whose peer is not named is left out by name.

  hammer   ECMWF's fdb-hammer on an FDB of its own (engine toc), and `strata as fdb-hammer`: fields of the size of the template, written and
           retrieved, bytes a second without the making and checking of content; CPU seconds of the whole process
           --fdb-hammer PATH --template GRIB   (pip install fdb5lib==5.22.0.26 brings the program; a template: bench/README.md)
  h5bench  h5bench_write and h5bench_read (the kernel of VPIC-IO), one rank or `--ranks N`, contiguous, and `strata app vpic --format hdf5`: bytes a second
           of H5Dwrite and H5Dread alone, and with all other calls of HDF5
           --h5bench DIR   (h5pcc -O2 -Icommons h5bench_patterns/h5bench_write.c commons/h5bench_util.c -lm -o h5bench_write)
  dlio     dlio_benchmark, one accelerator without computation, npz files, and `strata app dlio`: samples a second of the last epoch, and
           CPU milliseconds a sample (a long run less a short one, so that the start of Python is no part of it)
           --dlio PATH     (pip install dlio_benchmark torch tensorflow-cpu, openmpi)
"""

import argparse
import json
import os
import re
import shutil
import sys
import tempfile

# The helpers beside this file leave no compiled copies in the source tree.
sys.dont_write_bytecode = True

from files import MIB, Ran, in_turns, table

SCHEMA = """param: Param;
step: Step;
date: Date;
time: Time;
levelist: Double;
expver: Expver;
number: Integer;

[ class, expver, stream, date, time
    [ type, levtype
        [ step, number?, levelist?, param, domain? ]]]
"""
CONFIG = "---\ntype: local\nengine: toc\nschema: {place}/schema\nspaces:\n- handler: Default\n  roots:\n  - path: {place}/root\n"
FIELDS = {"nsteps": 4, "nensembles": 1, "nlevels": 16, "nparams": 8}
H5BENCH = {
    "MEM_PATTERN": "CONTIG", "FILE_PATTERN": "CONTIG", "READ_OPTION": "FULL", "TIMESTEPS": 4, "DELAYED_CLOSE_TIMESTEPS": 2,
    "COLLECTIVE_DATA": "NO", "COLLECTIVE_METADATA": "NO", "EMULATED_COMPUTE_TIME_PER_TIMESTEP": "0 s", "NUM_DIMS": 1, "DIM_2": 1, "DIM_3": 1,
}


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", action="append", choices=("hammer", "h5bench", "dlio"))
    parser.add_argument("--strata", default="target/release/strata")
    parser.add_argument("--memory", default="/dev/shm", help="directory that the files lie in")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--fdb-hammer", help="ECMWF's program")
    parser.add_argument("--template", help="GRIB message of one field")
    parser.add_argument("--h5bench", help="directory with h5bench_write and h5bench_read")
    parser.add_argument("--ranks", type=int, default=1, help="ranks of MPI of the case h5bench")
    parser.add_argument("--transfers", default="collective", choices=("collective", "independent"), help="transfers of several ranks")
    parser.add_argument("--particles", type=int, default=4 << 20, help="particles of the case h5bench (4 Mi: 128 MiB a checkpoint)")
    parser.add_argument("--dlio", help="dlio_benchmark")
    parser.add_argument("--samples", type=int, default=128, help="files of 4 MiB of the case dlio")
    own = parser.parse_args()
    for name in ("strata", "fdb_hammer", "template", "h5bench", "dlio"):
        path = getattr(own, name)
        setattr(own, name, os.path.abspath(path) if path else None)
    return own


def figure(text, name):
    return float(re.search(rf"{re.escape(name)}: *([-+.0-9e]+)", text).group(1))


def hammered(words, place, environment=None):
    """Bytes a second of a run of fdb-hammer, or of the dialect, that writes, and of one that reads."""
    shape = [f"--{name}={count}" for name, count in FIELDS.items()]
    words = [*words[:-1], "--expver=xxxx", "--class=od", *shape, words[-1]]
    wrote = Ran(words, place, environment)
    read = Ran([*words[:-1], "--read", words[-1]], place, environment)
    return wrote, read


def hammer(own, place):
    with open(os.path.join(place, "schema"), "w", encoding="utf-8") as file:
        file.write(SCHEMA)
    config, root, data = (os.path.join(place, name) for name in ("config.yaml", "root", "data"))
    with open(config, "w", encoding="utf-8") as file:
        file.write(CONFIG.format(place=place))
    os.mkdir(data)

    def told(wrote, read):
        return {
            "written, MiB/s": figure(wrote.text, "Bytes written") / figure(wrote.text, "Writing duration") / MIB,
            "read, MiB/s": figure(read.text, "Bytes read") / figure(read.text, "Data read duration") / MIB,
            "CPU of the writer, s": wrote.cpu,
        }

    def theirs():
        os.mkdir(root)
        try:
            return told(*hammered([own.fdb_hammer, own.template], place, {"FDB5_CONFIG_FILE": config}))
        finally:
            shutil.rmtree(root)

    contenders = {
        "fdb-hammer": theirs,
        "strata as fdb-hammer": lambda: told(*hammered([own.strata, "as", "fdb-hammer", "--target", data, own.template], place)),
    }
    fields = 1
    for count in FIELDS.values():
        fields *= count
    size = os.path.getsize(own.template)
    title = f"fdb-hammer: {fields} fields of {size:,} bytes, one process; ratios to fdb-hammer"
    table(title, in_turns(own, contenders), "fdb-hammer", ("CPU of the writer, s",))


def in_calls(phase, data):
    """Bytes a second of a stage of `strata app` while its processes are in the calls that move data, and in any calls of the format."""
    parts = {part["name"]: part for group in phase["observations"]["profile"]["groups"] for part in group["parts"]}
    moved = sum(one["bytes"] for one in phase["summary"]["classes"] if one["class"] == data)
    called_ns = sum(part["time_ns"] for name, part in parts.items() if part["calls"] and name not in ("compute", "wait"))
    return moved / MIB / (parts[data]["time_ns"] / 1e9), moved / MIB / (called_ns / 1e9)


def launched(ranks):
    return ["mpirun", "--oversubscribe", *(["--allow-run-as-root"] if os.geteuid() == 0 else []), "-np", ranks]


def h5bench(own, place):
    data, record = os.path.join(place, "data"), os.path.join(place, "record.json")
    os.mkdir(data)

    def theirs():
        found, file = {}, os.path.join(place, "x.h5")
        for name in ("write", "read"):
            config, csv = os.path.join(place, f"{name}.cfg"), os.path.join(place, f"{name}.csv")
            lines = {**H5BENCH, "DIM_1": own.particles, "CSV_FILE": csv, "COLLECTIVE_DATA": "YES" if own.ranks > 1 and own.transfers == "collective" else "NO"}
            with open(config, "w", encoding="utf-8") as out:
                out.writelines(f"{key}={value}\n" for key, value in lines.items() if name == "read" or key != "READ_OPTION")
            Ran([*launched(own.ranks), os.path.join(own.h5bench, f"h5bench_{name}"), config, file], place)
            with open(csv, encoding="utf-8") as text:
                told = dict(line.split(", ")[:2] for line in text.read().splitlines()[1:])
            size = float(told["total size"])
            found[f"H5D{name}, MiB/s"] = size / float(told["raw time"])
            found[f"{name}, all calls, MiB/s"] = size / float(told["observed time"])
        os.remove(file)
        return found

    def ours():
        shared = f",transfers={own.transfers}" if own.ranks > 1 else ""
        words = [
            *(launched(own.ranks) if own.ranks > 1 else []), own.strata, "app", "vpic", data, "--format", "hdf5", "--profile", "--live", "none", "--json", record, "--set",
            f"ranks={own.ranks},steps={H5BENCH['TIMESTEPS']},compute=0ns,particles={own.particles},transfer={own.particles * 4}{shared}",
        ]
        Ran(words, place)
        with open(record, encoding="utf-8") as file:
            phases = json.load(file)["phases"]
        found = {}
        for phase, name in zip(phases, ("write", "read")):
            # Time is that of all ranks, which are in the calls at the same time.
            found[f"H5D{name}, MiB/s"], found[f"{name}, all calls, MiB/s"] = (own.ranks * rate for rate in in_calls(phase, name))
        return found

    size = own.particles * 32 * own.ranks >> 20
    ranks = "one rank" if own.ranks == 1 else f"{own.ranks} ranks, {own.transfers} transfers"
    table(f"h5bench: checkpoints of {size} MiB, {ranks}; ratios to h5bench", in_turns(own, {"h5bench": theirs, "strata app vpic": ours}), "h5bench")


def dlio(own, place):
    """Samples of 4 MiB, read by one loader thread, no computation."""
    theirs_at, ours_at, record = (os.path.join(place, name) for name in ("theirs", "ours", "record.json"))
    os.mkdir(ours_at)
    shape = {"dataset.num_files_train": own.samples, "reader.read_threads": 1, "reader.batch_size": 4, "train.computation_time": 0.0}
    size = {"record_length": 4 * MIB, "record_length_stdev": 0, "record_length_resize": 0}
    short, long = 2, 10

    def benchmark(epochs, **workflow):
        keys = {
            **shape, **{f"dataset.{name}": value for name, value in size.items()}, "dataset.data_folder": theirs_at, "train.epochs": epochs,
            **{f"workflow.{name}": value for name, value in workflow.items()},
        }
        words = [own.dlio, "workload=unet3d_h100", *(f"++workload.{key}={value}" for key, value in keys.items()), f"hydra.run.dir={place}/out"]
        return Ran(words, place)

    benchmark(1, generate_data=True, train=False, checkpoint=False)

    def theirs():
        least, most = (benchmark(epochs, generate_data=False, train=True, checkpoint=False) for epochs in (short, long))
        rates = re.findall(r"Throughput \(samples/second\): ([.0-9]+)", most.text + most.errors)
        return {"samples/s": float(rates[long - 1]), "CPU, ms a sample": (most.cpu - least.cpu) * 1e3 / (long - short) / own.samples}

    def application(epochs):
        keys = {
            **shape, "dataset.record_length_bytes": 4 * MIB, "dataset.record_length_bytes_stdev": 0, "train.epochs": epochs,
            # The least that strata takes.
            "train.computation_time": 0.000001, "workflow.checkpoint": False,
        }
        words = ["app", "dlio", ours_at, "--workload", "unet3d", "--no-verify", "--live", "none", "--json", record, "--set"]
        ran = Ran([own.strata, *words, ",".join(f"{key}={value}" for key, value in keys.items())], place)
        with open(record, encoding="utf-8") as file:
            return ran, json.load(file)["phases"][-1]

    def ours():
        (least, _), (most, last) = (application(epochs) for epochs in (short, long))
        rate = last["observations"]["utilisation"]["samples_per_second"]
        return {"samples/s": rate, "CPU, ms a sample": (most.cpu - least.cpu) * 1e3 / (long - short) / own.samples}

    title = f"DLIO: {own.samples} samples of 4 MiB, one loader; ratios to dlio_benchmark"
    contenders = {"dlio_benchmark": theirs, "strata app dlio": ours}
    table(title, in_turns(own, contenders), "dlio_benchmark", ("CPU, ms a sample",))


CASES = {"hammer": (hammer, ("fdb_hammer", "template")), "h5bench": (h5bench, ("h5bench",)), "dlio": (dlio, ("dlio",))}


def main():
    own = options()
    for name in own.case or CASES:
        run, needed = CASES[name]
        missing = [f"--{need.replace('_', '-')}" for need in needed if not getattr(own, need)]
        if missing:
            print(f"{name}: left out without {', '.join(missing)}", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory(prefix="strata-app-peers-", dir=own.memory) as place:
            run(own, place)


main()
