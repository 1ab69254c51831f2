#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a server under full load, and looks whether its memory and its descriptors stay.

    bench/server/soak.py [--saker build/release/saker] [--model M] [--minutes 5] [--clients 16]

Clients send streams, whole answers, answers that fit a schema, requests that are wrong, and streams that they leave in the middle. Every five
seconds the server's resident memory and open files are read from /proc. Fails if, after a warm-up of a quarter of the time, memory grows by
more than `--growth` (1 %, and 4 MB), if a descriptor is left at the end, or if an answer is a 5xx. Standard library alone; Linux.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

SCHEMA = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}}}
MB = 1 << 20


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


class Client(threading.Thread):
    """One request after the other until the end."""

    def __init__(self, port: int, number: int, end: float) -> None:
        super().__init__()
        self.port, self.dice, self.end = port, random.Random(number), end
        self.statuses: Counter[str] = Counter()

    def run(self) -> None:
        while time.monotonic() < self.end:
            kind = self.dice.choice(["stream", "stream", "whole", "schema", "left", "wrong"])
            text = " ".join(str(self.dice.randrange(1000)) for _ in range(self.dice.randrange(4, 120)))
            body = {"messages": [{"role": "user", "content": text}], "max_tokens": self.dice.randrange(1, 48), "stream": kind in ("stream", "left")}
            if kind == "schema":
                body |= {"response_format": SCHEMA, "max_tokens": 24}
            if kind == "wrong":
                body["temperature"] = "hot"
            try:
                self.statuses[f"{kind} {self.ask(body, kind)}"] += 1
            except (OSError, http.client.HTTPException) as error:
                self.statuses[f"{kind} {type(error).__name__}"] += 1

    def ask(self, body: dict, kind: str) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
            response = connection.getresponse()
            response.read(200 if kind == "left" else None)
            return response.status
        finally:
            connection.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--saker", default="build/release/saker")
    parser.add_argument("--model", help="the bundled one without it")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--growth", type=float, default=0.01)
    args = parser.parse_args()
    command = [args.saker, "serve", *([args.model] if args.model else []), "--port", "0", "--prefix-cache", "32M"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "SAKER_CONFIG": ""})
    port = next(int(found[1]) for line in server.stderr if (found := re.search(r"is at http://127.0.0.1:(\d+)", line)))
    idle = descriptors(server.pid)
    begin, seconds = time.monotonic(), args.minutes * 60
    clients = [Client(port, i, begin + seconds) for i in range(args.clients)]
    for client in clients:
        client.start()
    samples = []
    while (passed := time.monotonic() - begin) < seconds:
        samples.append((passed, resident(server.pid), descriptors(server.pid)))
        print(f"{passed:6.0f} s {samples[-1][1] / MB:8.1f} MB {samples[-1][2]:4} descriptors", flush=True)
        time.sleep(min(5, seconds))
    for client in clients:
        client.join()
    time.sleep(2)
    left = descriptors(server.pid)
    warm = max(size for passed, size, _ in samples if passed <= seconds / 4)
    last = max(size for passed, size, _ in samples if passed >= seconds * 3 / 4)
    server.send_signal(signal.SIGTERM)
    code = server.wait(60)
    statuses = sum((client.statuses for client in clients), Counter())
    print(f"answers: {dict(sorted(statuses.items()))}")
    print(f"memory: {warm / MB:.1f} MB after the warm-up, {last / MB:.1f} MB at the end; descriptors: {idle} before, {left} after; exit code {code}")
    failed = [name for name in statuses if re.search(r" 5\d\d$|Error$|Exception$|Disconnected$", name)]
    is_good = last <= warm + max(4 * MB, args.growth * warm) and left <= idle and code == 0 and not failed
    sys.exit(0 if is_good else f"soak: FAILED {failed}")


if __name__ == "__main__":
    main()
