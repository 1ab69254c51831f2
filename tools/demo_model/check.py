# SPDX-License-Identifier: Apache-2.0
"""Ask a model folder the held-out prompts and judge the answers; exit 1 when fewer than nine in ten pass.

newcomer.jsonl holds what people type first; there the answer has to say a word that shows it is the right one.

    check.py --saker build/release/saker      all prompts in one `saker generate -f`, as many at once as it batches
    check.py --command "PROGRAM ARGS {model} {prompt}"     any program that prints one answer
    check.py --mlx-lm                         the reference, needs mlx-lm

An answer passes when it ends by itself within 80 tokens, uses only words of words.txt and names what was asked about.
A plain command tells no token count; there, an answer has ended when it stops with . ! or ? after at most 80 words.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
MAX_TOKENS = 80


@dataclass(frozen=True)
class Answer:
    text: str
    ended: bool


def words_of(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def judge(row: dict, answer: Answer, vocabulary: set[str]) -> list[str]:
    """What is wrong with the answer; empty when it passes."""
    words = words_of(answer.text)
    faults = [] if answer.ended else [f"no end within {MAX_TOKENS} tokens"]
    strange = sorted(set(words) - vocabulary)
    if strange:
        faults.append("unknown words: " + " ".join(strange[:5]))
    if not set(words) & set(row["expect"]):
        faults.append("does not say " + " or ".join(row["expect"]))
    return faults


def ask_saker(saker: str, model: str, rows: list[dict]) -> list[Answer]:
    with tempfile.TemporaryDirectory() as folder:
        requests = Path(folder) / "requests.jsonl"
        lines = [{"id": row["id"], "messages": [{"role": "user", "content": row["prompt"]}]} for row in rows]
        requests.write_text("".join(json.dumps(line) + "\n" for line in lines))
        command = [saker, "generate", model, "-f", str(requests), "--chat", "--json", "--max-tokens", str(MAX_TOKENS), "--temp", "0"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{saker} failed: {done.stderr.strip()}")
    replies = {reply["id"]: reply for reply in map(json.loads, done.stdout.splitlines())}
    missing = [row["id"] for row in rows if row["id"] not in replies]
    if missing:
        raise SystemExit(f"{saker} gave no answer to {', '.join(missing)}")
    return [Answer(replies[row["id"]]["text"], replies[row["id"]]["finish_reason"] == "stop") for row in rows]


def ask_command(template: str, model: str, rows: list[dict]) -> list[Answer]:
    answers = []
    for row in rows:
        command = [part.format(model=model, prompt=row["prompt"]) for part in shlex.split(template)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            raise SystemExit(f"{command[0]} failed: {done.stderr.strip()}")
        text = done.stdout.strip()
        answers.append(Answer(text, text.endswith((".", "!", "?")) and len(words_of(text)) <= MAX_TOKENS))
    return answers


def ask_mlx_lm(model: str, rows: list[dict]) -> list[Answer]:
    from mlx_lm import load, stream_generate

    network, tokenizer = load(model)
    answers = []
    for row in rows:
        prompt = tokenizer.apply_chat_template([{"role": "user", "content": row["prompt"]}], add_generation_prompt=True)
        pieces = list(stream_generate(network, tokenizer, prompt, max_tokens=MAX_TOKENS))
        answers.append(Answer("".join(piece.text for piece in pieces), pieces[-1].finish_reason == "stop"))
    return answers


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    backend = parser.add_mutually_exclusive_group(required=True)
    backend.add_argument("--saker", metavar="PROGRAM")
    backend.add_argument("--command", metavar="TEMPLATE")
    backend.add_argument("--mlx-lm", action="store_true")
    parser.add_argument("--model", default=str(HERE.parents[1] / "models" / "demo"))
    parser.add_argument("--prompts", type=Path, default=HERE / "heldout.jsonl")
    parser.add_argument("--needed", type=float, default=0.9, metavar="SHARE", help="of answers that must pass")
    options = parser.parse_args()

    rows = [json.loads(line) for line in options.prompts.read_text().splitlines()]
    vocabulary = set((HERE / "words.txt").read_text().split())
    if options.saker:
        answers = ask_saker(options.saker, options.model, rows)
    elif options.command:
        answers = ask_command(options.command, options.model, rows)
    else:
        answers = ask_mlx_lm(options.model, rows)

    passed = 0
    for row, answer in zip(rows, answers, strict=True):
        faults = judge(row, answer, vocabulary)
        passed += not faults
        print(f"{'FAIL' if faults else 'pass'}  {row['prompt']}\n      {answer.text!r}")
        for fault in faults:
            print(f"      {fault}")
    print(f"{passed} passed, {len(rows) - passed} failed")
    return 0 if passed >= options.needed * len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
