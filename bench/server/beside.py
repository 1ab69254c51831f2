#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The load of load.py on `saker serve` and, alternating with it, on other servers with the same model.

    bench/server/beside.py --saker build/release/saker --gguf FILE.gguf [--mlx FOLDER] [--peers python3] [--rounds 2] [options of load.py]

`--peers` is a Python with llama-cpp-python[server] (0.3.36) and, for --mlx, mlx-lm (0.32.2). Prints a table for each server with the best
figures of its rounds, and the ratios saker / the better peer: tokens/s should be at least 1.5, p95 of the first token at most 0.5.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import load

WAIT_SECONDS = 300


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


def commands(args: argparse.Namespace, port: int, slots: int) -> dict[str, list[str]]:
    threads = str(args.threads)
    found = {}
    if args.gguf:
        found["saker"] = [args.saker, "serve", args.gguf, "--port", str(port), "--threads", threads, "--batch", str(slots), "--any-model"]
        found["llama-cpp-python"] = [args.peers, "-m", "llama_cpp.server", "--model", args.gguf, "--port", str(port), "--n_threads", threads,
                                     "--n_threads_batch", threads, "--n_ctx", "4096", "--flash_attn", "true",
                                     "--interrupt_requests", "false"]  # Else a new request ends those that run.
    if args.mlx:
        found["saker (mlx)"] = [args.saker, "serve", args.mlx, "--port", str(port), "--threads", threads, "--batch", str(slots), "--any-model"]
        found["mlx_lm.server"] = [args.peers, "-m", "mlx_lm", "server", "--model", args.mlx, "--port", str(port)]
    return found


def run(name: str, command: list[str], port: int, args: argparse.Namespace) -> list[dict[str, Any]]:
    """Starts the server, loads it, ends it."""
    address = f"http://127.0.0.1:{port}"
    with tempfile.TemporaryFile() as log:
        server = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env={**os.environ, "SAKER_CONFIG": ""})
        try:
            end = time.monotonic() + WAIT_SECONDS
            while True:
                try:
                    urllib.request.urlopen(address + "/v1/models", timeout=5).close()
                    break
                except (urllib.error.URLError, OSError):
                    if server.poll() is not None or time.monotonic() > end:
                        log.seek(0)
                        raise SystemExit(f"{name} did not start: {log.read()[-500:].decode(errors='replace')}") from None
                    time.sleep(0.1)
            return load.load(address, args)
        finally:
            server.send_signal(signal.SIGTERM)
            try:
                server.wait(60)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def best(rounds: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    rows = []
    for same in zip(*rounds):
        row = dict(same[0])
        row["tokens_per_second"] = max(one["tokens_per_second"] for one in same)
        row["failed"] = sum(one["failed"] for one in same)
        for key in ("first_p50_ms", "first_p95_ms", "gap_p99_ms"):
            row[key] = min(one[key] for one in same)
        rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--saker", default="build/release/saker")
    parser.add_argument("--gguf", help="a file for saker and llama.cpp")
    parser.add_argument("--mlx", help="a folder in mlx-lm's form for saker and mlx_lm.server")
    parser.add_argument("--peers", default=sys.executable)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--rounds", type=int, default=2)
    load.add_options(parser)
    args = parser.parse_args()
    if not args.gguf and not args.mlx:
        parser.error("--gguf or --mlx is needed")
    for path in filter(None, (args.gguf, args.mlx)):
        if not Path(path).exists():
            parser.error(f"{path} is not there")
    measured: dict[str, list[list[dict[str, Any]]]] = {}
    for _ in range(args.rounds):
        port = free_port()
        for name, command in commands(args, port, max(args.clients)).items():
            measured.setdefault(name, []).append(run(name, command, port, args))
    results = {name: best(rounds) for name, rounds in measured.items()}
    for name, rows in results.items():
        print(f"\n{name}\n\n{load.table(rows)}")
    peers = [rows for name, rows in results.items() if not name.startswith("saker")]
    print()
    for own_name, own in results.items():
        if not own_name.startswith("saker") or not peers:
            continue
        for i, row in enumerate(own):
            speed = row["tokens_per_second"] / max(1e-9, max(rows[i]["tokens_per_second"] for rows in peers))
            first = row["first_p95_ms"] / max(1e-9, min(rows[i]["first_p95_ms"] for rows in peers))
            print(f"{own_name}, {row['clients']} clients: tokens/s {speed:.2f}, p95 of the first token {first:.2f}")
    print(json.dumps(results))


if __name__ == "__main__":
    main()
