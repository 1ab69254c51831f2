# SPDX-License-Identifier: Apache-2.0
"""Tokenizers and templates made to harm, texts and records of any size: one clear line, and others go on."""
import json
import unittest

from saker import DEMO, SakerTest, run

MEGA = 1 << 20


class Tokenizers(SakerTest):
    def growing(self, letter):
        """A model whose tokenizer makes 10^12 letters of one."""
        model = self.demo_copy()
        path = model / "tokenizer.json"
        tokenizer = json.loads(path.read_text())
        step = {"type": "Replace", "pattern": {"String": letter}, "content": letter * 1000}
        tokenizer["normalizer"] = {"type": "Sequence", "normalizers": [step] * 4}
        path.write_text(json.dumps(tokenizer))
        return model

    def test_what_grows_is_refused(self):
        model = self.growing("a")
        self.fails("tokenize", model, "-t", "a", says="256 MB")
        self.fails("generate", model, "-p", "a", "--max-tokens", "2", says="256 MB")
        self.fails("tokenize", model, "-t", "a", addresses=250 * MEGA, says="memory")
        self.ok("tokenize", model, "-t", "b")

    def test_loading_encodes_nothing(self):
        self.ok("generate", self.growing("\n"), "--tokens", "1,2", "--max-tokens", "2")


class LongTexts(SakerTest):
    def answers(self, lines, **options):
        records = "".join(json.dumps(line) + "\n" for line in lines)
        done = run("generate", DEMO, "-f", self.write("r.jsonl", records), **options)
        self.assertEqual(done.returncode, 1, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def test_records_behind_one_that_is_too_long_are_answered(self):
        short = {"prompt": "hi", "max_tokens": 2}
        answers = self.answers([short, {"prompt": "hello " * 1_000_000}, short], addresses=700 * MEGA)
        self.assertEqual(len(answers), 3)
        self.assertIn("more than", answers[1]["error"]["message"])
        self.assertEqual(answers[1]["error"]["code"], "invalid_argument")
        self.assertEqual(answers[0]["tokens"], answers[2]["tokens"])

    def test_a_long_text_needs_little_memory(self):
        text = self.write("text.txt", "Once upon a time there was a cat. " * 20_000)
        codes = []
        for size in range(100, 261, 20):  # With less, the system cannot even map the program.
            with self.subTest(size):
                done = run("tokenize", DEMO, "-f", text, addresses=size * MEGA)
                message = done.stderr.decode()
                self.assertIn(done.returncode, (0, 1), message)
                self.assertEqual(message.startswith("error: ") and len(message.splitlines()) == 1, done.returncode == 1, message)
                codes.append(done.returncode)
        if codes[-1] != 0:
            self.skipTest("sanitizers reserve addresses")


class Templates(SakerTest):
    def render(self, source):
        model = self.demo_copy()
        (model / "chat_template.jinja").write_text(source)
        return model, self.write("m.json", '[{"role": "user", "content": "hi"}]')

    def test_lists_have_bounds(self):
        source = "{% set n = namespace(s=[]) %}{% for i in range(1000) %}{% set n.s = n.s + [('a' * 1000000)|list] %}{% endfor %}"
        model, messages = self.render(source)
        self.fails("template", model, "--messages", messages, says="chat template")
        self.fails("template", model, "--messages", messages, says="", addresses=200 * MEGA)

    def test_a_device_is_no_time_zone(self):
        model, messages = self.render("{{ strftime_now('%Y') }}")
        self.ok("template", model, "--messages", messages, env={"TZ": "/dev/zero"})

    def test_chats_need_few_addresses(self):
        if run("--version", addresses=250 * MEGA).returncode != 0:
            self.skipTest("sanitizers reserve addresses")
        self.ok("run", DEMO, "-p", "hi", "--max-tokens", "1", "--threads", "2", addresses=256 * MEGA)


if __name__ == "__main__":
    unittest.main()
