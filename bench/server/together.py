#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What streams notice of long prompts and of scores: on a running `saker serve`, alternating without and with them.

    bench/server/together.py arrivals http://127.0.0.1:8080 [--streams 256] [--prompt-tokens 8000] [--seconds 10] [--rounds 2]
    bench/server/together.py scores http://127.0.0.1:8080 [--streams 8] [--texts 1000] [--text-tokens 200] [--rounds 2]

`arrivals` keeps that many streams going, each with a short prompt, and then lets long prompts come, one after the other. It prints p50 and p99
of the time between tokens of the streams, without and with arrivals, and their ratio: p99 should be at most 2. `scores` prints the streams'
tokens/s alone and beside one call of /v1/score, and how much slower they are: at most 30 %. The server needs `--batch` above the number of
streams. Prompts are token ids, all different. Standard library alone.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
import urllib.parse
from typing import Any

import load

Address = urllib.parse.SplitResult


async def post(address: Address, path: str, body: dict[str, Any]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    data = json.dumps(body).encode()
    reader, writer = await asyncio.open_connection(address.hostname, address.port or 80, limit=1 << 24)
    writer.write(f"POST {path} HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Type: application/json\r\nConnection: close\r\n"
                 f"Content-Length: {len(data)}\r\n\r\n".encode() + data)
    status = int((await reader.readline()).split()[1])
    if status != 200:
        raise SystemExit(f"{path}: status {status}: {(await reader.read(2000)).decode(errors='replace')}")
    return reader, writer


def ids(dice: random.Random, count: int) -> list[int]:
    return [dice.randrange(300, 2000) for _ in range(count)]


class Streams:
    """Answers that go on until the end; `gaps` has the moment and the length of each gap between two pieces."""

    def __init__(self, address: Address, args: argparse.Namespace) -> None:
        self.address, self.args = address, args
        self.gaps: list[tuple[float, float]] = []
        self.tasks = [asyncio.create_task(self.run(i)) for i in range(args.streams)]

    async def run(self, number: int) -> None:
        dice = random.Random(number)
        while True:
            body = {"prompt": ids(dice, 16), "max_tokens": self.args.max_tokens, "ignore_eos": True, "temperature": 0, "stream": True}
            reader, writer = await post(self.address, "/v1/completions", body)
            last = 0.0
            try:
                async for line in load.lines(reader):
                    if line.startswith(b"data: {"):
                        now = time.perf_counter()
                        if last:
                            self.gaps.append((now, now - last))
                        last = now
            finally:
                writer.close()

    async def started(self) -> None:
        while len(self.gaps) < 4 * self.args.streams:
            for task in self.tasks:
                if task.done():
                    task.result()
            await asyncio.sleep(0.05)

    def between(self, begin: float, end: float) -> list[float]:
        return [gap for at, gap in self.gaps if begin <= at < end]

    async def stop(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


def row(name: str, gaps: list[float], seconds: float) -> dict[str, Any]:
    return {"name": name, "pieces_per_second": round(len(gaps) / seconds, 1), "gap_p50_ms": round(load.percentile(gaps, 0.5) * 1000, 1),
            "gap_p99_ms": round(load.percentile(gaps, 0.99) * 1000, 1)}


async def arrivals(streams: Streams, args: argparse.Namespace, dice: random.Random) -> int:
    """Long prompts, one after the other, for the given time; returns how many."""
    end = time.perf_counter() + args.seconds
    count = 0
    while time.perf_counter() < end:
        reader, writer = await post(streams.address, "/v1/completions", {"prompt": ids(dice, args.prompt_tokens), "max_tokens": 1})
        await reader.read()
        writer.close()
        count += 1
    return count


async def scores(streams: Streams, args: argparse.Namespace, dice: random.Random) -> int:
    records = [{"tokens": ids(dice, args.text_tokens)} for _ in range(args.texts)]
    reader, writer = await post(streams.address, "/v1/score", {"records": records})
    await reader.read()
    writer.close()
    return args.texts


async def measure(address: Address, args: argparse.Namespace) -> list[dict[str, Any]]:
    streams = Streams(address, args)
    dice = random.Random(1)
    rows = []
    await streams.started()
    for _ in range(args.rounds):
        begin = time.perf_counter()
        await asyncio.sleep(args.seconds)
        middle = time.perf_counter()
        count = await (arrivals if args.scenario == "arrivals" else scores)(streams, args, dice)
        end = time.perf_counter()
        rows.append(row("alone", streams.between(begin, middle), middle - begin))
        rows.append({**row(f"with {args.scenario}", streams.between(middle, end), end - middle), "count": count,
                     "seconds": round(end - middle, 1)})
        print(json.dumps(rows[-2]), json.dumps(rows[-1]), sep="\n", flush=True)
    await streams.stop()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenario", choices=["arrivals", "scores"])
    parser.add_argument("address")
    parser.add_argument("--streams", type=int)
    parser.add_argument("--max-tokens", type=int, default=512)
    parser.add_argument("--prompt-tokens", type=int, default=8000)
    parser.add_argument("--texts", type=int, default=1000)
    parser.add_argument("--text-tokens", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=2)
    args = parser.parse_args()
    args.streams = args.streams or (256 if args.scenario == "arrivals" else 8)
    rows = asyncio.run(measure(urllib.parse.urlsplit(args.address), args))
    for alone, beside in zip(rows[::2], rows[1::2]):
        if args.scenario == "arrivals":
            print(f"p99 of gaps, with arrivals / without: {beside['gap_p99_ms'] / max(alone['gap_p99_ms'], 1e-9):.2f}")
        else:
            print(f"streams are slower by {100 * (1 - beside['pieces_per_second'] / max(alone['pieces_per_second'], 1e-9)):.0f} %")


if __name__ == "__main__":
    main()
