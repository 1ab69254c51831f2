# SPDX-License-Identifier: Apache-2.0
"""Perplexity: mlx-lm's figure on its windows, the scorer's log-probabilities on others."""
import json
import math
import re
import statistics
import unittest
import unittest.mock

from saker import DEMO, ROOT, SakerTest

GOLDEN = ROOT / "tests/golden"
IDS = [(i * i * 7 + i * 3) % 96 for i in range(200)]
# mlx_lm.perplexity.eval_ppl of IDS in float32, windows of 40 and batches of 4: perplexity, standard error.
MLX_LM = {"llama": (685.671307, 89.244787), "qwen3": (662.456247, 95.832640)}
# Conversations and pairs, and mlx-lm's figure on the bundled model as float32: its ChatDataset and CompletionsDataset behind each other.
CHAT = [{"messages": [{"role": "user", "content": f"What is {a}?"}, {"role": "assistant", "content": f"{a} is {b}."},
                      {"role": "user", "content": "And why?"}, {"role": "assistant", "content": "Nobody knows."}]}
        for a, b in (("rain", "water"), ("bread", "food"), ("a cat", "an animal"))]
PAIRS = [{"prompt": f"Tell me about {a}.", "completion": f"{a} is what people like. It is old."} for a in ("rain", "bread", "the moon")]
MLX_LM_CHAT = ((CHAT, 67, 134, 41670.647429, 16290.860936), (PAIRS, 89, 89, 6594.750521, 3477.147630))


class Perplexity(SakerTest):
    def records(self, ids, size=37):
        lines = [json.dumps({"tokens": ids[i : i + size]}) for i in range(0, len(ids), size)]
        return self.write("ids.jsonl", "\n".join(lines))

    def measure(self, model, file, *flags):
        return self.json("perplexity", model, "-f", file, *flags, "--json")

    def losses(self, model, windows):
        lines = [json.dumps({"tokens": window, "prompt_tokens": seen}) for seen, window in windows]
        answers = self.ok("score", model, "-f", self.write("windows.jsonl", "\n".join(lines)), "--json")
        return [-x for line in answers.splitlines() for x in json.loads(line)["views"]["base"]["logprobs"] if x is not None]

    def test_figure_of_mlx_lm(self):
        for name, (perplexity, error) in MLX_LM.items():
            result = self.measure(GOLDEN / name, self.records(IDS), "--context", 40)
            self.assertAlmostEqual(result["perplexity"] / perplexity, 1, 4)
            self.assertAlmostEqual(result["standard_error"] / error, 1, 4)
            self.assertEqual((result["tokens"], result["windows"], result["scored"]), (200, 5, 195))

    def test_the_last_token_of_a_window_needs_no_place_in_the_context(self):
        model = self.demo_copy(max_position_embeddings=16)
        self.assertEqual(self.measure(model, self.records(IDS), "--context", 17), {
            **self.measure(DEMO, self.records(IDS), "--context", 17), "tokens_per_second": unittest.mock.ANY, "peak_memory_bytes": unittest.mock.ANY})
        self.fails("perplexity", model, "-f", self.records(IDS), "--context", 18, says="context: got 18, expected from 2 to 17")

    def test_windows_that_move_score_each_token_once(self):
        model, context, stride = GOLDEN / "qwen3", 60, 25
        windows = [([], IDS[:context])]
        for begin in range(stride, len(IDS), stride):
            done = begin - stride + context
            if done < len(IDS):
                windows.append((IDS[begin:done], IDS[done : begin + context]))
        losses = self.losses(model, windows)
        self.assertEqual(len(losses), len(IDS) - 1)
        result = self.measure(model, self.records(IDS), "--context", context, "--stride", stride)
        self.assertEqual((result["scored"], result["windows"]), (len(losses), len(windows)))
        self.assertAlmostEqual(result["mean_loss"], statistics.fmean(losses), 9)
        error = math.exp(statistics.fmean(losses)) * statistics.stdev(losses) / math.sqrt(len(losses))
        self.assertAlmostEqual(result["standard_error"] / error, 1, 9)

    def test_a_shorter_last_window_counts(self):
        losses = self.losses(GOLDEN / "llama", [([], IDS[:80]), ([], IDS[80:130])])
        result = self.measure(GOLDEN / "llama", self.records(IDS[:130]), "--context", 80)
        self.assertAlmostEqual(result["mean_loss"], statistics.fmean(losses), 9)

    def test_batches_do_not_change_it(self):
        file = self.records(IDS)
        results = [self.measure(GOLDEN / "qwen3", file, "--context", 30, "--batch", batch) for batch in (1, 3, 8)]
        self.assertEqual(len({(r["perplexity"], r["standard_error"]) for r in results}), 1)

    def test_texts(self):
        text = "Saker answers questions about itself. It was trained for that and for nothing else."
        plain = self.measure(DEMO, self.write("a.txt", text))
        ids = self.json("tokenize", DEMO, "-t", text, "--json")["tokens"]
        self.assertEqual(plain["perplexity"], self.measure(DEMO, self.records(ids))["perplexity"])
        packed = self.measure(DEMO, self.write("a.jsonl", json.dumps({"text": text}) + "\n" + json.dumps({"text": text})))
        self.assertIn(packed["tokens"] - 2 * len(ids), (0, 2))  # An EOS after each.
        self.assertIn("perplexity", self.ok("perplexity", DEMO, "-f", self.write("b.txt", text)).decode())

    def test_conversations_are_those_of_mlx_lm(self):
        floats = self.folder / "floats"
        self.ok("convert", DEMO, floats, "--dequantize", "--dtype", "float32")
        for records, context, tokens, perplexity, error in MLX_LM_CHAT:
            file = self.write("chat.jsonl", "\n".join(map(json.dumps, records)))
            result = self.measure(floats, file, "--context", context)
            self.assertEqual(result["tokens"], tokens)
            self.assertAlmostEqual(result["perplexity"] / perplexity, 1, 4)
            self.assertAlmostEqual(result["standard_error"] / error, 1, 4)

    def test_the_text_has_as_many_digits_as_the_error_allows(self):
        file = self.write("t.txt", "Saker is a runtime for language models. " * 20)
        text = self.ok("perplexity", DEMO, "-f", file).decode()
        value, error = re.match(r"perplexity ([\d.]+) \u00b1 ([\d.]+),", text).groups()
        self.assertEqual(len(value.partition(".")[2]), len(error.partition(".")[2]))
        self.assertLessEqual(len(error.replace(".", "").strip("0")), 2)

    def test_refusals(self):
        model, file = GOLDEN / "llama", self.records(IDS)
        self.fails("perplexity", model, "-f", self.write("e.jsonl", ""), says="0 tokens, expected at least 2")
        self.fails("perplexity", model, "-f", self.write("n.jsonl", "[1]"), says="n.jsonl:1: expected an object")
        self.fails("perplexity", model, "-f", self.write("b.jsonl", '{"tokens":[1,96]}'), says="96")
        self.fails("perplexity", model, "-f", self.write("p.jsonl", '{"prompt":"a"}'), says='p.jsonl:1: expected an object with a "text"')
        self.fails("perplexity", model, "-f", self.write("m.jsonl", json.dumps(CHAT[0])), says="m.jsonl:1: the model has no chat template")
        self.fails("perplexity", DEMO, "-f", self.write("k.jsonl", '{"messages":7}'), says="k.jsonl:1: ")
        self.fails("perplexity", model, "-f", file, "--context", 100000, says="context: got 100000")
        self.fails("perplexity", model, "-f", file, "--context", 20, "--stride", 21, says="stride: got 21")
        self.fails("perplexity", model, "-f", self.folder / "none", says="none")
        self.fails("perplexity", model, says="-f", code=2)


if __name__ == "__main__":
    unittest.main()
