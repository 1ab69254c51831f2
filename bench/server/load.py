#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loads a server by OpenAI's chat API: `--clients` at a time, each asking one question after another, streamed.

    bench/server/load.py http://127.0.0.1:8080 [--clients 1 4 8] [--requests 8] [--prompt-words 200] [--max-tokens 64] [--model M] [--json]

For each number of clients it prints output tokens/s of all together, the time to the first token (p50, p95) and between tokens (p99), in
milliseconds. Prompts differ from their first word on, so that no cache helps. A chunk with text counts as a token, unless the server's own
count of tokens comes with the last chunk. Standard library alone.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
import urllib.parse
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

WORDS = "river stone cloud letter winter garden engine window silver market bridge forest candle mirror harbour story".split()


@dataclass
class Answer:
    tokens: int = 0
    first: float = 0.0
    gaps: list[float] = field(default_factory=list)
    error: str = ""


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def prompt(seed: int, words: int) -> str:
    dice = random.Random(seed)
    return f"{seed}: " + " ".join(dice.choice(WORDS) for _ in range(words)) + ". Tell a long story about this."


async def pieces(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    """The body after the status line, without the sizes of its chunks."""
    is_chunked = False
    while (header := await reader.readline()) not in (b"\r\n", b""):
        is_chunked |= header.lower().replace(b" ", b"") == b"transfer-encoding:chunked\r\n"
    while is_chunked and (size := int((await reader.readline()).split(b";")[0] or b"0", 16)):
        yield await reader.readexactly(size)
        await reader.readline()
    while not is_chunked and (piece := await reader.read(65536)):
        yield piece


async def lines(reader: asyncio.StreamReader) -> AsyncIterator[bytes]:
    rest = b""
    async for piece in pieces(reader):
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield line


async def ask(address: urllib.parse.SplitResult, args: argparse.Namespace, seed: int) -> Answer:
    answer = Answer()
    body = {"messages": [{"role": "user", "content": prompt(seed, args.prompt_words)}], "max_tokens": args.max_tokens, "temperature": 0,
            "stream": True, "stream_options": {"include_usage": True}, "ignore_eos": True, "seed": seed}
    if args.model:
        body["model"] = args.model
    data = json.dumps(body).encode()
    head = (f"POST {address.path.rstrip('/')}/v1/chat/completions HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Type: application/json\r\n"
            f"Authorization: Bearer {args.api_key}\r\nConnection: close\r\nContent-Length: {len(data)}\r\n\r\n")
    start = last = time.perf_counter()
    reader, writer = await asyncio.open_connection(address.hostname, address.port or 80)
    try:
        writer.write(head.encode() + data)
        status = int((await reader.readline()).split()[1])
        chunks, counted = 0, 0
        async for line in lines(reader):
            if status != 200:
                answer.error = f"status {status}"
                continue
            if not line.startswith(b"data: {"):
                continue
            event = json.loads(line[6:])
            if "error" in event:
                answer.error = str(event["error"])[:200]
            counted = (event.get("usage") or {}).get("completion_tokens", counted)
            delta = event["choices"][0].get("delta", {}) if event.get("choices") else {}
            if any(delta.get(key) for key in ("content", "reasoning_content", "reasoning")):
                now = time.perf_counter()
                if chunks == 0:
                    answer.first = now - start
                else:
                    answer.gaps.append(now - last)
                last, chunks = now, chunks + 1
        answer.tokens = counted or chunks
        if not answer.error and chunks == 0:
            answer.error = "an answer without text"
    finally:
        writer.close()
    return answer


async def measure(address: urllib.parse.SplitResult, args: argparse.Namespace, clients: int) -> dict[str, Any]:
    seeds = iter(range(clients * 1_000_000, clients * 1_000_000 + clients * args.requests))

    async def client() -> list[Answer]:
        return [await ask(address, args, next(seeds)) for _ in range(args.requests)]

    start = time.perf_counter()
    answers = [answer for part in await asyncio.gather(*(client() for _ in range(clients))) for answer in part]
    seconds = time.perf_counter() - start
    good = [answer for answer in answers if not answer.error]
    firsts = [answer.first * 1000 for answer in good]
    return {"clients": clients, "requests": len(answers), "errors": [answer.error for answer in answers if answer.error][:3],
            "failed": len(answers) - len(good), "seconds": round(seconds, 3),
            "tokens_per_second": round(sum(answer.tokens for answer in good) / seconds, 2),
            "first_p50_ms": round(percentile(firsts, 0.5), 1), "first_p95_ms": round(percentile(firsts, 0.95), 1),
            "gap_p99_ms": round(percentile([gap * 1000 for answer in good for gap in answer.gaps], 0.99), 1)}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 4, 8, 16, 32])
    parser.add_argument("--requests", type=int, default=4, help="of each client")
    parser.add_argument("--prompt-words", type=int, default=200)
    parser.add_argument("--max-tokens", type=int, default=64)
    parser.add_argument("--model", default="")
    parser.add_argument("--api-key", default="none")


def load(address: str, args: argparse.Namespace) -> list[dict[str, Any]]:
    """A row of figures for each number of clients, after one request that warms the server up."""
    split = urllib.parse.urlsplit(address)
    warm = asyncio.run(ask(split, args, 1))
    if warm.error:
        raise SystemExit(f"{address}: {warm.error}")
    return [asyncio.run(measure(split, args, clients)) for clients in args.clients]


def table(rows: list[dict[str, Any]]) -> str:
    heads = ["clients", "requests", "failed", "tokens_per_second", "first_p50_ms", "first_p95_ms", "gap_p99_ms"]
    return "\n".join(["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads),
                      *("| " + " | ".join(str(row[head]) for head in heads) + " |" for row in rows)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("address")
    parser.add_argument("--json", action="store_true")
    add_options(parser)
    args = parser.parse_args()
    rows = load(args.address, args)
    print(json.dumps(rows) if args.json else table(rows))
    raise SystemExit(1 if any(row["failed"] for row in rows) else 0)


if __name__ == "__main__":
    main()
