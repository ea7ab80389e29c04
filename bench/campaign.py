#!/usr/bin/env python3
"""Kills loads and engines with -9 at random moments, and holds the stores against what they had acknowledged. Power cuts beside it, on the
medium of the tests that loses what was not synced. Markdown on standard output; the exit code is 1 where anything was lost. See README.md beside it."""

import argparse
import glob
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

# Kind: (who is killed, words of the pool, words of the load). Every load is `--durability sync`.
SMALL = "--op put --dkeys 3000 --value-size 64-20k"
ARRAY = "--op write --records 3000 --value-size 1000 --chunk-size 60000"
KINDS = {
    "values, in process": ("load", "--scm 256m", f"{SMALL} --depth 4"),
    "values, 2 threads": ("load", "--scm 256m --store-targets 2", f"{SMALL} --threads 2"),
    "values with a data file": ("load", "--scm 128m --nvme 512m", "--op put --dkeys 300 --value-size 3k-300k --depth 4"),
    "dkeys with akeys": ("load", "--scm 256m --store-targets 2", "--op update --dkeys 500 --akeys 4 --value-size 700 --class S2"),
    "array": ("load", "--scm 256m --store-targets 2", f"{ARRAY} --class S2 --depth 4"),
    "copies (RP_2G1)": ("load", "--scm 256m --store-targets 2", f"{SMALL} --class RP_2G1 --threads 2"),
    "parity (EC_2P1G1)": ("load", "--scm 256m --store-targets 3", f"{SMALL} --class EC_2P1G1 --depth 4"),
    "engine, values": ("engine", "--scm 256m --store-targets 2", f"{SMALL} --depth 8"),
    "engine, copies": ("engine", "--scm 256m --store-targets 2", f"{SMALL} --class RP_2G1 --depth 8"),
    "engine, parity": ("engine", "--scm 256m --store-targets 3", f"{SMALL} --class EC_2P1G1 --depth 8"),
    "engine, array": ("engine", "--scm 256m --store-targets 2", f"{ARRAY} --class S2 --depth 8"),
    "engine, array with parity": ("engine", "--scm 256m --store-targets 3", f"{ARRAY} --class EC_2P1G1 --depth 8"),
    "engine's client, copies": ("client", "--scm 256m --store-targets 2", f"{SMALL} --class RP_2G1 --depth 8"),
    "engine's client, array with parity": ("client", "--scm 256m --store-targets 3", f"{ARRAY} --class EC_2P1G1 --depth 8"),
}
COLUMNS = ("kills", "values", "current", "newer", "lost", "older", "other-run", "damaged", "unreadable", "untested")
# So many pools in which something was wrong stay for somebody to look at.
KEPT_MAX = 3
BAD = ("lost", "older", "other-run", "damaged", "unreadable")


class Failure(Exception):
    pass


def options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--strata", default="target/release/strata")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--dir", action="append", help="where pools are made; several are taken in turns (/dev/shm and the temporary directory)")
    parser.add_argument("--lives", type=int, default=6, help="kills of a pool before it is checked and removed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("--cuts", help="a test binary of the store (target/*/deps/vos-*), which makes power cuts meanwhile")
    return parser.parse_args()


class Life:
    """One pool, killed several times."""

    def __init__(self, own, kind, dice, place):
        self.own, self.dice, self.place = own, dice, place
        self.victim, self.pool, self.load = KINDS[kind]
        self.counts = dict.fromkeys(COLUMNS, 0)
        self.said = []

    def strata(self, *words):
        return subprocess.run([self.own.strata, *words], cwd=self.place, capture_output=True, text=True, timeout=600)

    def start(self, *words, **more):
        with open(os.path.join(self.place, "errors"), "a", encoding="utf-8") as errors:
            return subprocess.Popen([self.own.strata, *words], cwd=self.place, stderr=errors, **more)

    def engine(self):
        words = "engine --path . --poll block --dir tank --pool tank"
        running = self.start(*words.split(), stdout=subprocess.PIPE, text=True)
        line = running.stdout.readline()
        if " at " not in line:
            raise Failure(f"the engine does not start again in {self.place}: {line}")
        return running, line.split(" at ")[1].split(",")[0].strip()

    def kill_once(self, number):
        engine, target = None, "vos:tank"
        if self.victim != "load":
            engine, uri = self.engine()
            target = "engine://" + uri.split("://")[-1] + "/tank"
        said = f"said.{number}"
        self.said.append(said)
        words = f"object {target} {self.load} --keep --container c{number} --time 60s --on-error continue --warmup none --live none"
        words += f" --acknowledged {said} " + ("--durability sync" if engine is None else "--timeout 2s")
        load = self.start(*words.split(), stdout=subprocess.DEVNULL)
        path = os.path.join(self.place, said)
        until = time.monotonic() + 60
        while not os.path.exists(path) or os.path.getsize(path) < 2000:
            if load.poll() is not None or time.monotonic() > until:
                raise Failure(f"no update was acknowledged: strata {words}, in {self.place}")
            time.sleep(0.01)
        time.sleep(self.dice.uniform(0, 2) ** 2 / 2)
        (engine if self.victim == "engine" else load).send_signal(signal.SIGKILL)
        if self.victim == "engine":
            # Its client ends when it notices, or is told to.
            time.sleep(0.3)
            load.send_signal(signal.SIGINT)
        for one in (load, engine):
            if one is None:
                continue
            try:
                one.wait(30 if one is load else 0.1)
            except subprocess.TimeoutExpired:
                one.send_signal(signal.SIGTERM if one is engine else signal.SIGKILL)
                one.wait(60)
        self.counts["kills"] += 1

    def audit(self):
        for said in self.said:
            done = self.strata("object", "audit", said, "vos:tank", "--json")
            if done.returncode not in (0, 1) or not done.stdout:
                raise Failure(f"audit of {said} in {self.place}: {done.returncode} {done.stderr}")
            found = json.loads(done.stdout)
            for verdict, count in found["verdicts"].items():
                self.counts[verdict] = self.counts.get(verdict, 0) + count
            self.counts["values"] += found["values"]
        done = self.strata("pool", "check", "vos:tank", "--json")
        return json.loads(done.stdout)["findings"] if done.stdout else [{"what": done.stderr}]

    def live(self):
        words = ["pool", "create", "vos:tank", *self.pool.split()]
        done = self.strata(*words)
        if done.returncode:
            raise Failure(done.stderr)
        for number in range(self.own.lives):
            self.kill_once(number)
        return self.audit()


def cuts_of(own, minutes):
    """A campaign of power cuts beside the kills: cuts of each part of it."""
    line = [own.cuts, "--exact", "cut::tests::what_was_acknowledged_survives_every_cut", "--nocapture"]
    script = 'seed=$1; shift; while :; do seed=$((seed+1)); STRATA_CUTS=2000 STRATA_CUT_SEED=$seed "$@" || exit 1; done'
    return subprocess.Popen(["timeout", f"{int(minutes * 60)}", "bash", "-c", script, "cuts", str(own.seed), *line],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def main():
    own = options()
    own.strata = os.path.abspath(own.strata)
    dice = random.Random(own.seed)
    grounds = own.dir or ["/dev/shm", tempfile.gettempdir()]
    kinds = own.kind or list(KINDS)
    table = {kind: dict.fromkeys((*COLUMNS, "pools", "findings"), 0) for kind in kinds}
    cuts = cuts_of(own, own.minutes) if own.cuts else None
    until, turn, kept = time.monotonic() + 60 * own.minutes, 0, 0
    while time.monotonic() < until:
        kind, ground = kinds[turn % len(kinds)], grounds[turn // len(kinds) % len(grounds)]
        turn += 1
        place = tempfile.mkdtemp(dir=ground, prefix="strata-campaign-")
        life = Life(own, kind, dice, place)
        row, broken = table[kind], None
        try:
            findings = life.live()
        except (Failure, subprocess.TimeoutExpired) as failure:
            findings, broken = [], str(failure)
        for name, count in life.counts.items():
            row[name] = row.get(name, 0) + count
        row["pools"] += 1
        row["findings"] += len(findings)
        if broken or findings or any(life.counts.get(name, 0) for name in BAD):
            print(f"{kind} in {place}: {broken or ''} {life.counts} {findings[:1]}", file=sys.stderr, flush=True)
            kept += 1
            if kept <= KEPT_MAX:
                continue
        shutil.rmtree(place)
    print("| what was killed and what it wrote | pools | kills | values audited | current | newer | lost, older, damaged | findings of `pool check` |")
    print("|---" * 8 + "|")
    for kind, row in table.items():
        bad = sum(row.get(name, 0) for name in BAD)
        print(f"| {kind} | {row['pools']} | {row['kills']} | {row['values']:,} | {row['current']:,} | {row.get('newer', 0):,} | {bad} | {row['findings']} |")
    total = {name: sum(row.get(name, 0) for row in table.values()) for name in ("pools", "kills", "values")}
    print(f"\n{total['kills']:,} kills of {total['pools']} pools, {total['values']:,} values audited.")
    if cuts:
        said = cuts.communicate()[0]
        # A quick run says so behind the name of the test, in one line.
        lived = [line.partition("Lived {")[2] for line in said.splitlines() if "Lived {" in line and "broke" not in line]
        numbers = [[int("".join(c for c in word if c.isdigit())) for word in line.split(",")] for line in lived]
        sums = [sum(column) for column in zip(*numbers)] or [0, 0, 0]
        print(f"{sums[0]:,} power cuts ({sums[1]:,} of them in an opening after another), {sums[2]:,} acknowledged updates held against each.")
        if cuts.returncode not in (0, 124):
            kept += 1
            print(said[-3000:], file=sys.stderr)
    sys.exit(1 if kept else 0)


if __name__ == "__main__":
    main()
