# SPDX-License-Identifier: Apache-2.0
"""Tests of the demo model's dialogue generator and of the check of its answers; Python standard library only."""

import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / "tools" / "demo_model"
sys.path.insert(0, str(TOOLS))

import generator  # noqa: E402
import talk  # noqa: E402
from generator import Generator, normalised  # noqa: E402

HELD_OUT = [json.loads(line) for line in (TOOLS / "heldout.jsonl").read_text().splitlines()]


def stream(seed: int, count: int, phase: int = 0) -> list[list[dict]]:
    source = Generator(seed, phase=phase)
    return [source.conversation() for _ in range(count)]


class GeneratorTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.conversations = stream(3, 4000) + stream(5, 1000, phase=1) + stream(6, 1000, phase=2)

    def test_same_seed_gives_same_stream(self):
        self.assertEqual(stream(3, 200), self.conversations[:200])
        self.assertNotEqual(stream(4, 200), self.conversations[:200])

    def test_stream_does_not_depend_on_hash_order(self):
        command = [sys.executable, str(TOOLS / "generator.py"), "--seed", "3", "--count", "50"]
        runs = {
            subprocess.run(command, capture_output=True, check=True, env={"PYTHONHASHSEED": seed}).stdout for seed in "12"
        }
        self.assertEqual(len(runs), 1)

    def test_roles_alternate_and_no_answer_is_empty(self):
        for conversation in self.conversations:
            turns = conversation[1:] if conversation[0]["role"] == "system" else conversation
            self.assertEqual([m["role"] for m in turns], ["user", "assistant"] * (len(turns) // 2))
            self.assertTrue(all(m["content"].strip() for m in conversation if m["role"] != "user"))

    def test_reserved_questions_are_never_in_training(self):
        reserved = generator.reserved_texts()
        self.assertGreater(len(reserved), 300)
        for conversation in self.conversations:
            for message in conversation:
                if message["role"] == "user":
                    self.assertNotIn(normalised(message["content"]), reserved)

    def test_held_out_prompts_are_reserved(self):
        self.assertEqual(len(HELD_OUT), 40)
        self.assertEqual(len({row["prompt"] for row in HELD_OUT}), 40)
        for row in HELD_OUT:
            self.assertIn(normalised(row["prompt"]), generator.reserved_texts())

    def test_answers_are_short_and_made_of_listed_words(self):
        words = set((TOOLS / "words.txt").read_text().split())
        for conversation in self.conversations:
            for message in conversation:
                if message["role"] == "assistant":
                    found = normalised(message["content"]).split()
                    self.assertLessEqual(len(found), 60)
                    self.assertLessEqual(set(found), words)

    def test_answers_name_the_thing(self):
        for _, kind, thing, _ in generator.all_questions():
            if kind.answers:
                for answer in kind.answers:
                    said = set(normalised(thing.fill(answer)).split())
                    names = (normalised(thing.name).split(), normalised(thing.plural).split())
                    self.assertTrue(any(said >= set(name) for name in names), (kind.name, thing.name, answer))

    def test_commands_in_answers_exist(self):
        known = set(re.findall(r"`saker ([a-z]+)", (ROOT / "docs" / "cli.md").read_text()))
        named = {command for _, answers in talk.INTENTS.values() for answer in answers
                 for command in re.findall(r"(?<![Aa] )saker ([a-z]+)", answer)}  # fmt: skip
        self.assertLessEqual({"run", "pull"}, named)
        self.assertLessEqual(named, known)

    def test_no_answer_promises_a_server(self):
        for _, answers in talk.INTENTS.values():
            for answer in answers:
                self.assertNotRegex(answer, r"(?i)\bserv(e|es|ing)\b|(?<!no )\bserver\b")

    def test_sums_are_declined(self):
        source = Generator(8)
        for _ in range(200):
            self.assertEqual([answer for _, answer in source.arithmetic()], [talk.INTENTS["sums"][1][0]])

    def test_english_articles(self):
        for conversation in self.conversations:
            for message in conversation:
                if message["role"] == "assistant":
                    self.assertNotRegex(message["content"], r"\b[Aa] [aeio]|\b[Aa]n [^aeiouh]|[{}]")


class CheckTest(unittest.TestCase):
    def run_check(self, answers: list[str]) -> subprocess.CompletedProcess:
        """Check a program that gives these answers to the held-out prompts."""
        with tempfile.TemporaryDirectory() as folder:
            table = {row["prompt"]: answer for row, answer in zip(HELD_OUT, answers, strict=True)}
            program = Path(folder) / "program.py"
            program.write_text(f"import sys\nprint({table!r}[sys.argv[1]])\n")
            command = [sys.executable, "-S", str(TOOLS / "check.py"), "--command", f"{sys.executable} -S {program} {{prompt}}"]
            return subprocess.run(command, capture_output=True, text=True, check=False)

    def test_36_good_answers_pass(self):
        answers = [f"I like {row['expect'][0]}." for row in HELD_OUT]
        answers[:4] = ["I like to talk.", f"{HELD_OUT[1]['expect'][0]} and", f"Zxcvb {HELD_OUT[2]['expect'][0]}.", ""]
        done = self.run_check(answers)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertTrue(done.stdout.endswith("36 passed, 4 failed\n"))
        for fault in ("does not say tiger", "no end within 80 tokens", "unknown words: zxcvb"):
            self.assertIn(fault, done.stdout)

    def test_35_good_answers_fail(self):
        answers = [f"I like {row['expect'][0]}." for row in HELD_OUT]
        answers[:5] = ["I do not know."] * 5
        done = self.run_check(answers)
        self.assertEqual(done.returncode, 1)
        self.assertTrue(done.stdout.endswith("35 passed, 5 failed\n"))


if __name__ == "__main__":
    unittest.main()
