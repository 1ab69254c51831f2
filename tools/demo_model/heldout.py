# SPDX-License-Identifier: Apache-2.0
"""Choose the 40 held-out prompts and the vocabulary: writes heldout.jsonl and words.txt beside this file.

The prompts are spread over topics and kinds of question and taken from the reserved combinations of generator.py,
which no training conversation contains. The words are all words of the answers that the generator gives.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random

from generator import Generator, all_questions, is_reserved, normalised
from topics import TOPICS, capital

HERE = Path(__file__).parent
COUNT = 40
WORD_CONVERSATIONS = 60000


def choose() -> list[dict]:
    """Reserved questions of two words or more, topics in turn, never two of the same kind of question in a topic."""
    rng = Random(40)
    pool = {topic.name: [] for topic in TOPICS}
    for key, kind, thing, question in all_questions():
        if is_reserved(key) and " " in question:
            pool[thing.topic].append((kind.name, thing, question))
    for rows in pool.values():
        rng.shuffle(rows)
    chosen: list[dict] = []
    used: set[tuple[str, str]] = set()
    while len(chosen) < COUNT:
        before = len(chosen)
        for topic, rows in pool.items():
            row = next((r for r in rows if (topic, r[0]) not in used), None)
            if row is None or len(chosen) == COUNT:
                continue
            used.add((topic, row[0]))
            kind, thing, question = row
            expect = sorted({name.removeprefix("the ").lower() for name in (thing.name, thing.plural)})
            prompt = capital(re.sub(r"\bi\b", "I", question))
            chosen.append({"id": f"{topic}/{kind}".replace(" ", "-"), "prompt": prompt, "expect": expect})
        if len(chosen) == before:
            raise SystemExit(f"only {before} held-out prompts")
    return chosen


def answer_words() -> list[str]:
    words: set[str] = set()
    generator = Generator(11)
    for _ in range(WORD_CONVERSATIONS):
        for message in generator.conversation():
            if message["role"] == "assistant":
                words.update(normalised(message["content"]).split())
    return sorted(words)


def main() -> None:
    rows = choose()
    (HERE / "heldout.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = answer_words()
    (HERE / "words.txt").write_text("\n".join(words) + "\n")
    print(f"{len(rows)} prompts, {len(words)} words")


if __name__ == "__main__":
    main()
