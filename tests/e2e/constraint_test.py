# SPDX-License-Identifier: Apache-2.0
"""Constraints: `--json-schema`, `--regex`, `--grammar`: answers fit them, with and without drafts."""
import json
import re
import unittest

from saker import DEMO, SakerTest, run
from generate_test import answer

SCHEMA = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 20}, "size": {"enum": ["small", "large"]},
                                           "legs": {"type": "integer", "minimum": 0, "maximum": 8}},
          "required": ["name", "size", "legs"], "additionalProperties": False}
PROMPT = "What does a fox eat?"


class Constraints(SakerTest):
    def generate(self, *args):
        return self.json("generate", DEMO, "-p", PROMPT, "--max-tokens", "200", "--json", *args)

    def check(self, text):
        value = json.loads(text)
        self.assertEqual(sorted(value), ["legs", "name", "size"])
        self.assertIn(value["size"], ["small", "large"])
        self.assertTrue(0 <= value["legs"] <= 8)

    def test_a_schema_as_text_and_as_file(self):
        schema = self.write("schema.json", json.dumps(SCHEMA))
        for chat in ([], ["--chat"]):
            for seed in range(5):
                sampled = ["--temp", "1.5", "--seed", seed, *chat]
                got = self.generate("--json-schema", json.dumps(SCHEMA), *sampled)
                self.assertEqual(got["finish_reason"], "stop")
                self.check(got["text"])
                self.assertEqual(answer(got), answer(self.generate("--json-schema", schema, *sampled)))

    def test_drafts_change_nothing(self):
        options = ["--json-schema", json.dumps(SCHEMA), "--chat", "--logprobs", "2"]
        for sampling in ([], ["--temp", "1", "--seed", "3"]):
            plain = self.generate("--draft", "none", "--draft-depth", "0", *options, *sampling)
            for drafts in ([], ["--draft", "none"], ["--speculate", "prompt-lookup", "--draft-depth", "7"], ["--draft", DEMO, "--draft-depth", "4"]):
                self.assertEqual(answer(self.generate(*options, *sampling, *drafts)), answer(plain), drafts)

    def test_forced_text_is_drafted(self):
        got = self.generate("--json-schema", json.dumps(SCHEMA), "--draft", "none")
        self.assertEqual(got["stats"]["drafter"], "constraint")
        self.assertGreater(got["stats"]["accepted"], 8)
        self.assertGreater(2 * got["stats"]["accepted"], got["stats"]["drafted"])
        none = self.generate("--json-schema", json.dumps(SCHEMA), "--draft", "none", "--draft-depth", "0")
        self.assertEqual((none["stats"]["drafter"], none["stats"]["rounds"]), ("none", 0))

    def test_expressions_and_grammars(self):
        got = self.generate("--regex", r"[a-z]{3,6}-\d{2}")
        self.assertRegex(got["text"], r"^[a-z]{3,6}-\d{2}$")
        self.assertEqual(got["finish_reason"], "stop")
        grammar = self.write("list.lark", 'start: "[" WORD ("," WORD)~1..4 "]"\nWORD: /[a-z]{1,5}/\n')
        got = self.generate("--grammar", grammar, "--temp", "1")
        self.assertRegex(got["text"], r"^\[[a-z]{1,5}(,[a-z]{1,5}){1,4}\]$")

    def test_the_end_token_stays_out(self):
        for ends in ([], ["--ignore-eos"]):
            got = self.generate("--regex", "(yes|no)", *ends)
            self.assertIn(got["text"], ["yes", "no"])
            self.assertEqual(got["finish_reason"], "stop")

    def test_records_have_constraints_of_their_own(self):
        records = [{"id": 0, "prompt": PROMPT, "json_schema": SCHEMA}, {"id": 1, "prompt": PROMPT, "regex": "[a-c]{9}"},
                   {"id": 2, "prompt": PROMPT}, {"id": 3, "prompt": PROMPT, "json_schema": {"type": "banana"}},
                   {"id": 4, "prompt": PROMPT, "json_schema": True, "regex": "a"}, {"id": 5, "prompt": PROMPT, "regex": 5}]
        path = self.write("in.jsonl", "".join(json.dumps(record) + "\n" for record in records))
        done = run("generate", DEMO, "-f", path, "--max-tokens", "100", "--json")
        self.assertEqual(done.returncode, 1)
        lines = {line["id"]: line for line in map(json.loads, done.stdout.decode().splitlines())}
        self.check(lines[0]["text"])
        self.assertRegex(lines[1]["text"], "^[a-c]{9}$")
        plain = self.json("generate", DEMO, "-p", PROMPT, "--max-tokens", "100", "--json")
        self.assertEqual(answer(lines[2]), answer(plain))
        self.assertIn("banana", lines[3]["error"]["message"])
        self.assertIn("another constraint", lines[4]["error"]["message"])
        self.assertIn("regex", lines[5]["error"]["message"])

    def test_errors_are_one_line(self):
        missing = self.folder / "none.json"
        for args, expected in ((["--json-schema", '{"type": "banana"}'], "banana"), (["--json-schema", "{"], "syntax error"),
                               (["--json-schema", missing], "none.json"), (["--regex", "("], "regex"),
                               (["--grammar", missing], "none.json"),
                               (["--regex", "a", "--json-schema", "{}"], "another constraint")):
            done = run("generate", DEMO, "-p", PROMPT, *args)
            self.assertIn(done.returncode, (1, 2), args)
            self.assertEqual(done.stdout, b"")
            lines = [line for line in done.stderr.decode().splitlines() if line.startswith("error: ")]
            self.assertEqual(len(lines), 1, done.stderr)
            self.assertIn(expected, lines[0])


if __name__ == "__main__":
    unittest.main()
