#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A job on a cluster of two nodes while its actors are killed: each record once, with the numbers of one process.

Then the driver itself is killed and the job runs again: it finishes what is missing. Needs Ray and the package saker.
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import pyarrow.dataset
import ray
import ray.data
from ray.cluster_utils import Cluster

import saker
import saker.ray

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEMO = str(ROOT / "models" / "demo")
WORDS = "the a cat dog sat on mat ran to house red big small said yes no once upon time".split()
BROKEN = 100
"""One of so many records has no text."""


def write_records(file, count):
    rng = random.Random(1)
    with file.open("w") as out:
        for number in range(count):
            text = None if number % BROKEN == 7 else " ".join(rng.choice(WORDS) for _ in range(rng.randint(3, 9)))
            out.write(json.dumps({"id": f"r{number}", "text": text}) + "\n")


def actors():
    """Process ids of this machine's actors of a job."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().startswith(b"ray::MapWorker(MapBatches(_Actor))"):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def kill_some(every, stop, killed):
    rng = random.Random(2)
    while not stop.wait(every):
        alive = actors()
        if alive:
            os.kill(rng.choice(alive), signal.SIGKILL)
            killed.append(time.monotonic())


def score(records, output, rows_per_block):
    workers = saker.ray.Workers(count=2, threads=1, rows_per_block=rows_per_block)
    return saker.ray.score(ray.data.read_json(str(records)), model=DEMO, output=output, workers=workers)


def written(output):
    table = pyarrow.dataset.dataset(output, format="parquet").to_table()
    return sorted(table.to_pylist(), key=lambda row: row["id"])


def expected(records):
    with records.open() as lines:
        rows = [json.loads(line) for line in lines]
    results = saker.jobs.Worker(saker.jobs.Job("score", DEMO)).run(rows)
    return sorted(({"id": row["id"], **result} for row, result in zip(rows, results, strict=True)), key=lambda r: r["id"])


def comparable(rows):
    return [json.dumps({name: value for name, value in row.items() if value is not None}, sort_keys=True) for row in rows]


def with_killed_actors(records, output, args):
    stop, killed = threading.Event(), []
    killer = threading.Thread(target=kill_some, args=(args.kill_every, stop, killed))
    killer.start()
    try:
        report = score(records, output, args.rows_per_block)
    finally:
        stop.set()
        killer.join()
    print(f"{report}; {len(killed)} actors killed")
    return report, len(killed) > 0


def with_killed_driver(records, output, args):
    """Ends a driver once some blocks are committed; the job is done by the call after it."""
    command = [sys.executable, __file__, "--drive", str(records), output, "--rows-per-block", str(args.rows_per_block)]
    driver = subprocess.Popen(command)
    while driver.poll() is None and len(list(pathlib.Path(output).glob("*.parquet"))) < 2:
        time.sleep(0.2)
    was_running = driver.poll() is None
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    print(f"driver killed: {was_running}, {len(list(pathlib.Path(output).glob('*.parquet')))} files before")
    return score(records, output, args.rows_per_block), was_running


def check(records, args, run, name):
    output = str(records.parent / name)
    report, was_killed = run(records, output, args)
    got, wanted = comparable(written(output)), comparable(expected(records))
    failures = [] if got == wanted else [f"{name}: {len(got)} rows, {len(wanted)} expected, or other numbers"]
    if not was_killed:
        failures.append(f"{name}: nothing was killed before the end; give more rows")
    if report.duplicates or report.failed != {"invalid_argument": sum(row % BROKEN == 7 for row in range(args.rows))}:
        failures.append(f"{name}: {report}")
    try:
        saker.ray.perplexity(ray.data.read_json(str(records)), model=DEMO, output=output)
        failures.append(f"{name}: another job was let into its folder")
    except saker.InvalidArgumentError as error:
        print(f"refused: {error}")
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100000)
    parser.add_argument("--kill-every", type=float, default=6, help="seconds")
    parser.add_argument("--rows-per-block", type=int, default=2000)
    parser.add_argument("--drive", nargs=2, metavar=("RECORDS", "OUTPUT"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.drive:
        ray.init(address="auto")
        score(pathlib.Path(args.drive[0]), args.drive[1], args.rows_per_block)
        return 0
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    cluster.add_node(num_cpus=2)
    ray.init(address=cluster.address)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="saker_ray_"))
    try:
        records = folder / "records.jsonl"
        write_records(records, args.rows)
        failures = check(records, args, with_killed_actors, "actors")
        failures += check(records, args, with_killed_driver, "driver")
    finally:
        ray.shutdown()
        cluster.shutdown()
        shutil.rmtree(folder)
    print("\n".join(failures) or "each record once, with the numbers of one process")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
