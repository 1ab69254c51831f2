# SPDX-License-Identifier: Apache-2.0
"""MTP heads and Gemma 4's assistants: found, converted, named; answers are those without them."""
import json
import pathlib
import shutil
import struct
import unittest

from saker import DEMO, SakerTest, run
from draft_test import PROMPT, write_tensors
from generate_test import answer

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden"
SAMPLED = ["--temp", "0.9", "--seed", "5", "--top-p", "0.9", "--repetition-penalty", "1.2"]


def head_shapes(**changes):
    """Of an MTP head for the demo model."""
    config = dict(json.loads((DEMO / "config.json").read_text()), **changes)
    hidden, inner, size = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    heads, groups = config["num_attention_heads"] * size, config["num_key_value_heads"] * size
    layer = "mtp.layers.0."
    return {
        "mtp.fc.weight": [hidden, 2 * hidden], "mtp.norm.weight": [hidden], "mtp.pre_fc_norm_hidden.weight": [hidden],
        "mtp.pre_fc_norm_embedding.weight": [hidden], layer + "input_layernorm.weight": [hidden],
        layer + "post_attention_layernorm.weight": [hidden], layer + "self_attn.q_norm.weight": [size],
        layer + "self_attn.k_norm.weight": [size], layer + "self_attn.q_proj.weight": [heads, hidden],
        layer + "self_attn.k_proj.weight": [groups, hidden], layer + "self_attn.v_proj.weight": [groups, hidden],
        layer + "self_attn.o_proj.weight": [hidden, heads], layer + "mlp.gate_proj.weight": [inner, hidden],
        layer + "mlp.up_proj.weight": [inner, hidden], layer + "mlp.down_proj.weight": [hidden, inner]}


def write_head(folder, shapes=None, **changes):
    """The head alone, with the model's configuration."""
    folder.mkdir(parents=True)
    config = dict(json.loads((DEMO / "config.json").read_text()), **changes)
    del config["quantization"], config["quantization_config"]
    (folder / "config.json").write_text(json.dumps(config))
    write_tensors(folder / "model.safetensors", shapes or head_shapes(**changes))
    return folder


def tensor_names(folder):
    data = (folder / "model.safetensors").read_bytes()
    return set(json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]]))


class Heads(SakerTest):
    def generate(self, model, *args):
        return self.json("generate", model, "-p", PROMPT, "--max-tokens", "60", "--ignore-eos", "--logprobs", "2", "--json",
                         *args)

    def model_with_head(self):
        model = self.folder / "model"
        shutil.copytree(DEMO, model, ignore=shutil.ignore_patterns("draft"))
        write_tensors(model / "model-mtp.safetensors", head_shapes())
        return model

    def records(self, model, *args, speculate, **options):
        """The answer to a prompt of ids, for models without a tokenizer."""
        ids = [3, 14, 15, 9, 26, 5, 35, 8, 9]
        path = self.write("r.jsonl", json.dumps(
            {"tokens": ids, "max_tokens": 40, "ignore_eos": True, "logprobs": 2, "speculate": speculate, **options}))
        return json.loads(self.ok("generate", model, "-f", path, *args))

    def test_a_head_in_a_folder_of_its_own(self):
        head = write_head(self.folder / "head")
        for sampling in ([], SAMPLED):
            plain = self.generate(DEMO, "--draft", "none", *sampling)
            self.assertEqual(plain["stats"]["drafter"], "none")
            for depth in ("1", "4", "16", "auto"):
                got = self.generate(DEMO, "--draft", head, "--speculate", "mtp", "--draft-depth", depth, *sampling)
                self.assertEqual(answer(got), answer(plain))
                self.assertEqual(got["stats"]["drafter"], "mtp")
                self.assertGreater(got["stats"]["drafted"], 0 if depth == "auto" else 30)

    def test_a_head_in_the_models_own_files(self):
        model = self.model_with_head()
        plain = self.generate(DEMO, "--draft", "none")
        got = self.generate(model, "--draft-depth", "4")
        self.assertEqual(answer(got), answer(plain))
        self.assertGreater(got["stats"]["drafted"], 30)
        self.assertEqual(self.generate(model, "--draft", "none")["stats"]["drafter"], "none")
        self.fails("generate", model, "-p", "x", "--draft", "none", "--speculate", "mtp", says="mtp needs a model that brings")
        done = run("generate", model, "-p", PROMPT, "--draft-depth", "3", "--max-tokens", "30", "-v", "--ignore-eos")
        self.assertRegex(done.stderr.decode(), r"; mtp: \d+ of \d+ draft tokens right in \d+ rounds")
        self.assertNotIn("not used", done.stderr.decode())
        # Commands that draft nothing leave it aside.
        self.assertNotIn("not used", run("score", model, "--text", "hello there").stderr.decode())

    def test_a_draft_comes_before_the_models_own_head(self):
        model = self.model_with_head()
        args = ["--draft", DEMO, "--draft-depth", "4"]
        self.assertEqual(self.generate(model, *args)["stats"]["drafter"], "draft")
        self.assertEqual(self.generate(model, *args, "--speculate", "mtp")["stats"]["drafter"], "mtp")

    def test_converted_models_keep_their_head(self):
        for name in ("qwen3", "qwen3_5"):
            source, model = GOLDEN / "mtp" / name, self.folder / name
            self.ok("convert", source, model, "--bits", "8", "--group-size", "32")
            self.assertIn("mtp.fc.scales", tensor_names(model))
            self.assertIn("mtp.layers.0.self_attn.q_proj.scales", tensor_names(model))
            plain = self.records(model, speculate="none")
            for options in ({"draft_depth": 4}, {"draft_depth": 4, "temp": 0.8, "seed": 3}, {"draft_depth": 4, "kv_bits": 8}):
                plain = self.records(model, speculate="none", **options)
                got = self.records(model, speculate="mtp", **options)
                self.assertEqual(answer(got), answer(plain))
                self.assertGreater(got["stats"]["drafted"], 30)

    def test_an_assistant(self):
        target, assistants = GOLDEN / "assistant/target", GOLDEN / "assistant"
        for name in ("plain", "groups"):
            for options in ({}, {"temp": 0.8, "seed": 3}, {"kv_bits": 8}, {"max_kv_size": 16}):
                plain = self.records(target, speculate="none", **options)
                got = self.records(target, "--draft", assistants / name, speculate="mtp", draft_depth=4, **options)
                self.assertEqual(answer(got), answer(plain))
                self.assertGreater(got["stats"]["drafted"], 30)
        self.fails("generate", DEMO, "-p", "x", "--draft", assistants / "plain", says="backbone_hidden_size is 36")

    def test_an_assistant_that_is_converted_into_its_model(self):
        model = self.folder / "model"
        self.ok("convert", GOLDEN / "assistant/target", model, "--draft", GOLDEN / "assistant/groups")
        got = self.records(model, speculate="mtp", draft_depth=4)
        self.assertEqual(answer(got), answer(self.records(model, speculate="none")))
        self.assertGreater(got["stats"]["drafted"], 30)

    def test_refusals(self):
        self.fails("generate", DEMO, "-p", "x", "--speculate", "mtp", says="mtp needs a model that brings an MTP head")
        for i, (changes, says) in enumerate([({"hidden_size": 100}, "hidden_size is 100"),
                                             ({"vocab_size": 300}, "vocab_size is 300")]):
            head = write_head(self.folder / str(i), **changes)
            self.fails("generate", DEMO, "-p", "x", "--draft", head, says=says)
        shapes = head_shapes()
        del shapes["mtp.layers.0.mlp.up_proj.weight"]
        head = write_head(self.folder / "short", shapes)
        self.fails("generate", DEMO, "-p", "x", "--draft", head, says="[mtp.layers.0.mlp.up_proj.weight]")
        shapes = dict(head_shapes(), **{"mtp.norm.weight": [7]})
        head = write_head(self.folder / "odd", shapes)
        self.fails("generate", DEMO, "-p", "x", "--draft", head, says="[mtp.norm.weight] shape [7]")


if __name__ == "__main__":
    unittest.main()
