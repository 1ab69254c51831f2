# SPDX-License-Identifier: Apache-2.0
"""Prompts of the demo model's domain as JSON lines: `python prompts.py --count 16000 > prompts.jsonl`.

Beginnings of the training stream's conversations, each up to a question, and of its plain stories. Those that are held
out (see generator.py) never occur, so that a draft that learned from the answers can be measured on them.
"""

from __future__ import annotations

import argparse
import json

from data import PLAIN_STORY_SHARE
from generator import Generator

LATER_PHASE_SHARE = 0.4  # of the prompts: more small talk, as in the last part of the training


def prompt(generator: Generator) -> dict:
    rng = generator.rng
    if rng.random() < PLAIN_STORY_SHARE:
        words = generator.plain_story().split(" ")
        return {"prompt": " ".join(words[: rng.randint(3, 12)])}
    messages = generator.conversation()
    questions = [i for i, message in enumerate(messages) if message["role"] == "user"]
    return {"messages": messages[: rng.choice(questions) + 1]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=16000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    generators = [Generator(options.seed * 1_000_003 + 500_000 + phase, phase=phase) for phase in (0, 1)]
    for i in range(options.count):
        late = generators[0].rng.random() < LATER_PHASE_SHARE
        print(json.dumps({"id": str(i), **prompt(generators[late])}))


if __name__ == "__main__":
    main()
