# SPDX-License-Identifier: Apache-2.0
"""Drafts: `--draft`, `--speculate`, `--draft-depth`: answers are those without them."""
import array
import json
import math
import random
import shutil
import struct
import unittest

from saker import DEMO, SakerTest, run
from generate_test import answer

PROMPT = "Tell me about a model that runs on a small machine, and about a machine that runs a small model."


def write_tensors(path, shapes, seed=0):
    """A safetensors file of random float32 tensors by name."""
    draw, header, data = random.Random(seed), {}, b""
    for name, shape in shapes.items():
        size = math.prod(shape)
        mean, spread = (1.0, 0.1) if len(shape) == 1 else (0.0, shape[-1] ** -0.5)
        values = array.array("f", (mean + spread * draw.uniform(-1.7, 1.7) for _ in range(size)))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * size]}
        data += values.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def write_dflash(folder, changes=None):
    """A DFlash draft of one layer with random weights for the demo model."""
    target = json.loads((DEMO / "config.json").read_text())
    hidden, inner, heads, dim = target["hidden_size"], 64, 2, 16
    config = {"model_type": "qwen3", "hidden_size": hidden, "num_hidden_layers": 1, "intermediate_size": inner,
              "num_attention_heads": heads, "num_key_value_heads": 1, "head_dim": dim,
              "vocab_size": target["vocab_size"], "rope_theta": 10000.0,
              "num_target_layers": target["num_hidden_layers"],
              "dflash_config": {"block_size": 6, "mask_token_id": 5, "target_layer_ids": [1, 0]}}
    config.update(changes or {})
    layer = "layers.0."
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    write_tensors(folder / "model.safetensors", {
        "fc.weight": [hidden, 2 * hidden], "hidden_norm.weight": [hidden], "norm.weight": [hidden],
        layer + "input_layernorm.weight": [hidden], layer + "post_attention_layernorm.weight": [hidden],
        layer + "self_attn.q_norm.weight": [dim], layer + "self_attn.k_norm.weight": [dim],
        layer + "self_attn.q_proj.weight": [heads * dim, hidden], layer + "self_attn.k_proj.weight": [dim, hidden],
        layer + "self_attn.v_proj.weight": [dim, hidden], layer + "self_attn.o_proj.weight": [hidden, heads * dim],
        layer + "mlp.gate_proj.weight": [inner, hidden], layer + "mlp.up_proj.weight": [inner, hidden],
        layer + "mlp.down_proj.weight": [hidden, inner]})
    return folder


class Drafts(SakerTest):
    def generate(self, *args, prompt=PROMPT):
        return self.json("generate", DEMO, "-p", prompt, "--max-tokens", "60", "--ignore-eos", "--logprobs", "2",
                         "--json", *args)

    def test_answers_are_those_without_drafts(self):
        for sampling in ([], ["--temp", "0.9", "--seed", "5", "--top-p", "0.9", "--repetition-penalty", "1.2"]):
            plain = self.generate("--draft", "none", *sampling)
            self.assertEqual(plain["stats"]["rounds"], 0)
            for drafts in (
                ["--speculate", "prompt-lookup"],
                ["--speculate", "prompt-lookup", "--draft-depth", "7"],
                ["--draft", DEMO],
                ["--draft", DEMO, "--draft-depth", "4"],
                ["--draft", DEMO, "--kv-bits", "16", "--draft-depth", "auto", "--speculate", "draft"],
            ):
                got = self.generate(*sampling, *drafts)
                self.assertEqual(answer(got), answer(plain), drafts)

    def test_a_draft_model_like_the_model_is_always_right(self):
        stats = self.generate("--draft", DEMO, "--draft-depth", "4", "--ignore-eos")["stats"]
        self.assertGreater(stats["drafted"], 30)
        self.assertEqual(stats["accepted"], stats["drafted"])
        self.assertLessEqual(stats["rounds"], 15)

    def test_rounds_are_compared_with_plain_decoding(self):
        options = ["--draft", DEMO, "--draft-depth", "4", "--ignore-eos"]
        got = self.generate(*options, "--check-speculation")
        stats = got["stats"]
        self.assertEqual(stats["compared"], stats["drafted"] + stats["rounds"])
        plain = self.generate(*options)
        self.assertEqual(answer(got), answer(plain))
        self.assertNotIn("compared", plain["stats"])

    def test_none_and_depth_zero_draft_nothing(self):
        for drafts in (["--speculate", "none"], ["--draft-depth", "0"]):
            self.assertEqual(self.generate("--draft", DEMO, *drafts)["stats"]["rounds"], 0)

    def test_statistics_for_people(self):
        done = run("generate", DEMO, "-p", PROMPT, "--draft", DEMO, "--draft-depth", "3", "--max-tokens", "30", "-v",
                   "--ignore-eos")
        self.assertRegex(done.stderr.decode(), r"; draft: \d+ of \d+ draft tokens right in \d+ rounds")
        self.assertRegex(done.stderr.decode(), r"caches: 0:kv=\d+ 1:kv=\d+ ")

    def test_records_with_options_of_their_own(self):
        records = [
            {"id": i, "prompt": PROMPT[i:], "speculate": how, "draft_depth": depth, "temp": 0.7, "seed": i}
            for i, (how, depth) in enumerate([("none", 0), ("prompt-lookup", 5), ("draft", "auto"), ("draft", 3)])
        ]
        path = self.write("in.jsonl", "".join(json.dumps(record) + "\n" for record in records))
        lines = self.ok("generate", DEMO, "-f", path, "--draft", DEMO, "--max-tokens", "25", "--json").decode()
        for record, line in zip(records, lines.splitlines()):
            alone = self.json("generate", DEMO, "-p", record["prompt"], "--temp", "0.7", "--seed", record["id"],
                              "--max-tokens", "25", "--json")
            self.assertEqual(answer(json.loads(line)), answer(alone))

    def test_answers_end_inside_of_drafts_as_without_them(self):
        """At max_tokens, at a stop string that begins and ends anywhere in a block, at the end of the sequence."""
        floats, small = self.folder / "floats", self.folder / "small"
        self.ok("convert", DEMO, floats, "--dequantize", "--dtype", "bfloat16")
        self.ok("convert", floats, small, "--bits", "2", "--group-size", "32")
        text = self.generate()["text"]
        records = [{"prompt": PROMPT, "max_tokens": n, "ignore_eos": True} for n in (1, 2, 3, 5, 8, 13, 21)]
        records += [{"prompt": PROMPT, "stop": [text[at:at + size]], "ignore_eos": True}
                    for at, size in ((1, 1), (17, 2), (30, 5), (44, 3), (61, 9))]
        records += [{"messages": [{"role": "user", "content": words}], "temp": temp, "seed": 3}
                    for words in ("hello", "Tell me a story.", "What is a cache?") for temp in (0, 0.8)]
        for i, record in enumerate(records):
            record["id"] = i
        path = self.write("in.jsonl", "".join(json.dumps(record) + "\n" for record in records))

        def run_all(*drafts):
            lines = self.ok("generate", DEMO, "-f", path, "--max-tokens", "80", "--logprobs", "2", "--json", *drafts)
            return [json.loads(line) for line in lines.decode().splitlines()]

        plain = run_all()
        self.assertEqual({got["finish_reason"] for got in plain}, {"stop", "length"})
        for drafts in (["--speculate", "prompt-lookup", "--draft-depth", "7"], ["--draft", DEMO, "--draft-depth", "7"],
                       ["--draft", small, "--draft-depth", "4"], ["--draft", small, "--batch", "3"]):
            got = run_all(*drafts)
            self.assertEqual([answer(one) for one in got], [answer(one) for one in plain], drafts)
            if "7" in drafts or "4" in drafts:
                self.assertGreater(sum(one["stats"]["accepted"] for one in got), 15, drafts)

    def test_refusals(self):
        self.fails("generate", DEMO, "-p", "x", "--speculate", "draft", says="draft model")
        self.fails("generate", DEMO, "-p", "x", "--speculate", "magic", says="expected none, prompt-lookup, draft, mtp, dflash or eagle3", code=2)
        self.fails("generate", DEMO, "-p", "x", "--draft-depth", "65", says="0 to 64", code=2)
        self.fails("generate", DEMO, "-p", "x", "--draft-depth", "-3", says="0 to 64", code=2)
        self.fails("generate", DEMO, "-p", "x", "--draft-depth", "many", says="expected an integer or auto", code=2)
        self.fails("generate", DEMO, "-p", "x", "--draft", self.folder / "none", says="none")
        self.fails("generate", DEMO, "-p", "x", "--draft", self.folder, says="no model folder")

    def test_a_draft_of_other_tokens_is_refused(self):
        other = self.folder / "other"
        shutil.copytree(DEMO, other, ignore=shutil.ignore_patterns("draft"))
        tokenizer = json.loads((other / "tokenizer.json").read_text())
        vocab = tokenizer["model"]["vocab"]
        first, second = [piece for piece, _ in sorted(vocab.items(), key=lambda item: item[1])][40:42]
        vocab[first], vocab[second] = vocab[second], vocab[first]
        (other / "tokenizer.json").write_text(json.dumps(tokenizer))
        message = self.fails("generate", DEMO, "-p", "x", "--draft", other, says="token")
        self.assertIn(str(other), message)
        # Without a tokenizer only the sizes are compared.
        (other / "tokenizer.json").unlink()
        self.ok("generate", DEMO, "-p", "x", "--max-tokens", "3", "--draft", other)

    def test_answers_of_a_dflash_draft_are_those_without(self):
        draft = write_dflash(self.folder / "block")
        for sampling in ([], ["--temp", "0.9", "--seed", "5", "--top-p", "0.9", "--repetition-penalty", "1.2"]):
            plain = self.generate("--draft", "none", *sampling)
            for drafts in ([], ["--draft-depth", "3"], ["--draft-depth", "9", "--speculate", "dflash"]):
                got = self.generate(*sampling, "--draft", draft, *drafts)
                self.assertEqual(answer(got), answer(plain), drafts)
                if drafts:
                    self.assertGreater(got["stats"]["drafted"], 30)

    def test_a_model_folder_brings_its_draft(self):
        for name in ("draft", "drafter"):
            model = self.folder / name / "model"
            shutil.copytree(DEMO, model, ignore=shutil.ignore_patterns("draft"))
            write_dflash(model / name)
            args = ["generate", model, "-p", PROMPT, "--max-tokens", "20", "--draft-depth", "4", "--ignore-eos", "--json"]
            self.assertGreater(self.json(*args)["stats"]["drafted"], 10)
            self.assertEqual(self.json(*args, "--draft", "none")["stats"]["drafted"], 0)

    def test_convert_writes_a_model_with_its_draft(self):
        draft = write_dflash(self.folder / "block")
        for i, options in enumerate([[], ["--draft-bits", "8", "--draft-group-size", "32"]]):
            model = self.folder / f"model{i}"
            report = self.json("convert", DEMO, model, "--draft", draft, *options, "--json")
            self.assertGreater(report["draft_bytes"], 0)
            self.assertEqual("quantization" in json.loads((model / "draft/config.json").read_text()), bool(options))
            plain = self.generate("--draft", "none")
            args = ["generate", model, "-p", PROMPT, "--max-tokens", "60", "--ignore-eos", "--logprobs", "2", "--json"]
            got = self.json(*args, "--draft-depth", "4")
            self.assertEqual(answer(got), answer(plain))
            self.assertGreater(got["stats"]["drafted"], 30)
        self.fails("convert", DEMO, self.folder / "other", "--draft-bits", "4", says="--draft", code=2)
        self.fails("convert", DEMO, self.folder / "other", "--draft", self.folder, says="config.json")
        self.assertFalse((self.folder / "other").exists())

    def test_a_broken_draft_that_nobody_asked_for_is_a_warning(self):
        model = self.demo_copy()
        expected = self.ok("generate", model, "-p", "Once", "--max-tokens", "4")
        (model / "draft").mkdir()
        for text in ("{", "[]", "{}", '{"model_type": "nothing"}'):
            with self.subTest(text):
                (model / "draft" / "config.json").write_text(text)
                done = run("generate", model, "-p", "Once", "--max-tokens", "4")
                self.assertEqual((done.returncode, done.stdout), (0, expected), done.stderr.decode())
                self.assertIn("draft: not used", done.stderr.decode())
                self.fails("generate", model, "-p", "Once", "--draft", model / "draft", says="")

    def test_a_modelfile_names_a_model_and_its_draft(self):
        write_dflash(self.folder / "block")
        file = self.write("Modelfile", f"from {DEMO}\nDRAFT block\nPARAMETER num_ctx 4096\n")
        model = self.folder / "model"
        done = run("convert", "-f", file, model, "--draft-bits", "8", "--draft-group-size", "32", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("PARAMETER is not used", done.stderr.decode())
        self.assertGreater(json.loads(done.stdout)["draft_bytes"], 0)
        self.assertIn("quantization", json.loads((model / "draft/config.json").read_text()))
        self.assertGreater(self.json("generate", model, "-p", PROMPT, "--max-tokens", "20", "--ignore-eos", "--json",
                                     "--draft-depth", "4")["stats"]["drafted"], 10)
        other = self.folder / "other"
        self.fails("convert", "-f", self.write("Empty", "# nothing\n"), other, says="no FROM")
        self.fails("convert", "-f", self.write("Plain", f"FROM {DEMO}"), other, "--draft-bits", "4", says="no DRAFT")
        self.fails("convert", "-f", file, DEMO, other, says="DST", code=2)
        self.fails("convert", "-f", file, other, "--draft", DEMO, says="--draft", code=2)
        self.assertFalse(other.exists())

    def test_a_draft_among_the_tensors_of_its_model(self):
        """As ollama keeps it: `draft.` before the names, and a folder with the configuration."""
        draft = write_dflash(self.folder / "block")
        model = self.demo_copy()
        (model / "draft").mkdir()
        shutil.copy(draft / "config.json", model / "draft")
        data = (draft / "model.safetensors").read_bytes()
        (size,) = struct.unpack("<Q", data[:8])
        header = {"draft." + name: entry for name, entry in json.loads(data[8 : 8 + size]).items()}
        text = json.dumps(header).encode()
        (model / "model-draft.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data[8 + size :])
        (model / "model.safetensors.index.json").unlink(missing_ok=True)
        args = ["-p", PROMPT, "--max-tokens", "40", "--ignore-eos", "--logprobs", "2", "--draft-depth", "4", "--json"]
        done = run("generate", model, *args)
        self.assertNotIn("not used", done.stderr.decode())
        got = json.loads(done.stdout)
        self.assertEqual(got["stats"]["drafted"], self.json("generate", DEMO, "--draft", draft, *args)["stats"]["drafted"])
        self.assertEqual(answer(got), answer(self.json("generate", DEMO, *args)))
        seen = self.json("inspect", model, "--json")
        self.assertTrue(seen["runnable"])
        self.assertEqual(seen["parameters"], self.json("inspect", DEMO, "--json")["parameters"])
        written = self.folder / "written"
        report = self.json("convert", model, written, "--draft", model / "draft", "--json")
        self.assertEqual(report["draft_bytes"], len(data) - 8 - size)
        self.assertEqual(answer(self.json("generate", written, *args)), answer(got))

    def test_refusals_of_dflash_drafts(self):
        self.fails("generate", DEMO, "-p", "x", "--draft", "none", "--speculate", "dflash", says="dflash needs a DFlash draft")
        for i, (changes, says) in enumerate([
            ({"hidden_size": 40}, "hidden_size is 40"),
            ({"vocab_size": 300}, "vocab_size is 300"),
            ({"num_target_layers": 50}, "num_target_layers is 50"),
            ({"dflash_config": {"mask_token_id": 5, "target_layer_ids": [77]}}, "layer 77"),
            ({"dflash_config": {"mask_token_id": 10**6}}, "mask_token_id is 1000000"),
            ({"dflash_config": {"target_layer_ids": [0]}}, "mask_token_id"),
            ({"dflash_config": {"mask_token_id": 5, "target_layer_ids": [0]}}, "[fc.weight] shape"),
            ({"num_hidden_layers": 2}, "[layers.1."),
        ]):
            draft = write_dflash(self.folder / str(i), changes)
            self.fails("generate", DEMO, "-p", "x", "--draft", draft, says=says)
        draft = write_dflash(self.folder / "block")
        self.fails("generate", DEMO, "-p", "x", "--draft", draft, "--speculate", "draft", says="draft model")


if __name__ == "__main__":
    unittest.main()
