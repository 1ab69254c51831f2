# SPDX-License-Identifier: Apache-2.0
"""What a model says after prompts, as JSON lines: `python continuations.py --model DIR --prompts FILE --out FILE`.

A draft has to guess what its target says, so it learns from the target's own answers and not from anybody's text. The
prompts are records that `saker generate -f` reads: {"messages": [...]} or {"prompt": "..."} a line, of the kind that the
draft will meet. Lines of the result: {"prompt": ids, "answer": ids, "greedy": whether it is the most probable answer}.
A second start goes on behind the answers that are there.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from random import Random

PART = 2000  # records of one run of the program


def requests(rows: list[dict], first: int, options: argparse.Namespace) -> list[dict]:
    """The prompts as they are asked: some greedily, the others sampled with a seed of their own."""
    asked = []
    for number, row in enumerate(rows, first):
        sampled = Random(number * 1_000_003 + options.seed).random() < options.sampled
        drawn = {"temp": options.temp, "seed": options.seed + number} if sampled else {"temp": 0}
        asked.append({**row, "id": str(number), "max_tokens": options.max_tokens, **drawn})
    return asked


def ask(asked: list[dict], options: argparse.Namespace) -> list[dict]:
    path = options.out.with_suffix(".requests.jsonl")
    path.write_text("".join(json.dumps(row) + "\n" for row in asked))
    command = [options.saker, "generate", options.model, "-f", str(path), "--json", "--draft", "none"]
    command += ["--batch", str(options.batch)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    path.unlink()
    replies = [json.loads(line) for line in done.stdout.splitlines()]
    if len(replies) != len(asked):
        raise SystemExit(f"{options.saker} ended with code {done.returncode} and {len(replies)} answers of {len(asked)}")
    answers = []
    for row, reply in zip(asked, replies, strict=True):
        if "error" in reply:
            print(f"record {row['id']} is left out: {reply['error']['message']}", file=sys.stderr)
        else:
            greedy = row["temp"] == 0
            answers.append({"prompt": reply["prompt_tokens"], "answer": reply["tokens"], "greedy": greedy})
    return answers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--saker", default="saker", help="the program [saker]")
    parser.add_argument("--model", required=True, help="the target")
    parser.add_argument("--prompts", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--max-tokens", type=int, default=256)
    parser.add_argument("--sampled", type=float, default=0.3, help="share of the prompts that is sampled [0.3]")
    parser.add_argument("--temp", type=float, default=1.0, help="temperature of these [1]")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batch", type=int, default=16)
    options = parser.parse_args()

    rows = [json.loads(line) for line in options.prompts.read_text().splitlines()]
    progress = options.out.with_suffix(".done")  # prompts that were asked
    start = int(progress.read_text()) if progress.exists() and options.out.exists() else 0
    with options.out.open("a" if start else "w") as out:
        for first in range(start, len(rows), PART):
            part = rows[first : first + PART]
            for answer in ask(requests(part, first, options), options):
                out.write(json.dumps(answer) + "\n")
            out.flush()
            progress.write_text(str(first + len(part)))
            print(f"{first + len(part)} of {len(rows)} prompts", flush=True)


if __name__ == "__main__":
    main()
