#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real trained models through saker. For each model:

  truth    log-probabilities of real text against float32 (truth.py): mean difference at most 0.05
  kv bits  the Kullback-Leibler divergence of caches of 8 and 4 bits to one of 16, over 500 tokens: at most 0.05
  needle   a code in the middle of a long prompt is found with 8 and 4 bits where 16 bits find it (models that chat)
  answers  to 20 prompts are the recorded ones (answers.json), token by token

    check_real.py --saker PROGRAM --models FOLDER [--needles 2000 6000 12000] [--only NAME ...] [--record]

Ends with 'N passed, N failed'.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from models import MODELS, fetch
from truth import Truth

ROOT = pathlib.Path(__file__).resolve().parents[2]
ANSWERS = pathlib.Path(__file__).parent / "answers.json"
CHARACTERS_OF_A_TOKEN = 3.4
LARGEST_KL, LARGEST_DIFFERENCE = 0.05, 0.05
PROMPTS = (
    "What is the capital of France?", "Name three colours.", "Write a Python function that adds two numbers.",
    "What is 7 times 8?", "Translate 'good morning' to Spanish.", "Who wrote Hamlet?", "What does HTTP stand for?",
    "Give me a synonym for happy.", "Write a haiku about rain.", "What is the boiling point of water in Celsius?",
    "List the planets of the solar system.", "What is a linked list?", "Reverse the string 'hello'.",
    "Is 17 a prime number?", "Write SQL that counts the rows of a table users.", "What is the opposite of cold?",
    "How many days are in a leap year?", "Explain recursion in one sentence.", "What language is spoken in Brazil?",
    "Write a regular expression for digits.",
)


class Checks:
    def __init__(self) -> None:
        self.passed = self.failed = 0

    def add(self, good: bool, text: str) -> None:
        self.passed, self.failed = self.passed + good, self.failed + (not good)
        print("ok  " if good else "FAIL", text, flush=True)


def saker(program: str, *arguments: object) -> dict:
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=3600)
    if done.returncode != 0:
        raise SystemExit(f"saker {arguments[0]}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def real_text() -> str:
    return "".join(path.read_text() for path in sorted((ROOT / "docs/adr").glob("*.md")))


def scored(program: str, path: pathlib.Path, tokens: list[int], bits: int) -> np.ndarray:
    """[T, V] log-probabilities."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "logits.npy"
        text = ",".join(map(str, tokens))
        saker(program, "score", path, "--tokens", text, "--kv-bits", bits, "--logits", file, "--json")
        logits = np.load(file).reshape(-1, np.load(file, mmap_mode="r").shape[-1])
    logits -= logits.max(-1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def check_probabilities(checks: Checks, program: str, name: str, path: pathlib.Path) -> None:
    tokens = saker(program, "tokenize", path, "-t", real_text()[:4000], "--json")["tokens"][:500]
    exact = scored(program, path, tokens, 16)
    short = tokens[:200]
    truth = Truth(path).logprobs(short)[:-1][np.arange(len(short) - 1), short[1:]]
    difference = np.abs(exact[: len(short) - 1][np.arange(len(short) - 1), short[1:]] - truth)
    checks.add(difference.mean() <= LARGEST_DIFFERENCE,
               f"{name} truth: mean difference {difference.mean():.4f}, largest {difference.max():.3f}")
    for bits in (8, 4):
        other = scored(program, path, tokens, bits)
        kl = (np.exp(exact) * (exact - other)).sum(-1)
        checks.add(kl.mean() <= LARGEST_KL, f"{name} kv bits {bits}: divergence {kl.mean():.4f}, largest {kl.max():.3f}")


def chat(program: str, path: pathlib.Path, prompts: list[str], bits: int, tokens: int) -> list[dict]:
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "requests.jsonl"
        file.write_text("".join(
            json.dumps({"messages": [{"role": "user", "content": prompt}], "max_tokens": tokens, "temperature": 0}) + "\n"
            for prompt in prompts))
        done = subprocess.run([program, "generate", str(path), "-f", str(file), "--kv-bits", str(bits), "--json"],
                              capture_output=True, text=True, timeout=3600)
    if done.returncode != 0:
        raise SystemExit(f"saker generate: {done.stderr.strip()}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def check_needles(checks: Checks, program: str, name: str, path: pathlib.Path, sizes: list[int]) -> None:
    text = real_text()
    for size in sizes:
        half = int(size * CHARACTERS_OF_A_TOKEN) // 2
        prompt = (text[:half] + "\nThe secret code is 7391-KIWI.\n" + text[half : 2 * half] +
                  "\n\nWhat is the secret code? Answer with the code only.")
        found = {bits: "7391-KIWI" in chat(program, path, [prompt], bits, 24)[0]["text"] for bits in (16, 8, 4)}
        checks.add(all(found.values()) or not found[16], f"{name} needle of {size} tokens: {found}")


def check_answers(checks: Checks, program: str, name: str, path: pathlib.Path, recorded: dict, record: bool) -> None:
    answers = [answer["tokens"] for answer in chat(program, path, list(PROMPTS), 16, 32)]
    if record:
        recorded[name] = answers
        return
    same = sum(a == b for a, b in zip(answers, recorded.get(name, [])))
    checks.add(same == len(PROMPTS), f"{name} answers: {same} of {len(PROMPTS)} are the recorded ones")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--saker", required=True)
    parser.add_argument("--models", type=pathlib.Path, required=True)
    parser.add_argument("--needles", type=int, nargs="*", default=[2000, 6000, 12000])
    parser.add_argument("--only", nargs="*", default=list(MODELS))
    parser.add_argument("--record", action="store_true", help="writes answers.json anew")
    args = parser.parse_args()
    checks = Checks()
    recorded = json.loads(ANSWERS.read_text()) if ANSWERS.exists() else {}
    for name in args.only:
        path = fetch(MODELS[name], args.models)
        check_probabilities(checks, args.saker, name, path)
        if MODELS[name].chats:
            check_answers(checks, args.saker, name, path, recorded, args.record)
            check_needles(checks, args.saker, name, path, args.needles)
    if args.record:
        ANSWERS.write_text(json.dumps(recorded, separators=(",", ":")) + "\n")
    print(f"{checks.passed} passed, {checks.failed} failed")
    return checks.failed > 0


if __name__ == "__main__":
    sys.exit(main())
