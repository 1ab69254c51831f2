# SPDX-License-Identifier: Apache-2.0
"""EAGLE-3 heads: loaded, converted, named; answers are those without them."""
import json
import pathlib
import shutil
import struct
import unittest

from saker import DEMO, ROOT, SakerTest, run
from draft_test import PROMPT
from generate_test import answer
from mtp_test import write_head

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden/eagle3"
HEAD = ROOT / "models/demo-drafts/eagle3"
SAMPLED = ["--temp", "0.9", "--seed", "5", "--top-p", "0.9", "--repetition-penalty", "1.2"]
OPTIONS = ({}, {"temp": 0.8, "seed": 3}, {"kv_bits": 8}, {"max_kv_size": 16})


def read_tensors(path):
    """Header and bytes of a safetensors file."""
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    return json.loads(data[8 : 8 + size]), data[8 + size :]


def write_tensors(path, header, data):
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


class Eagle3Heads(SakerTest):
    def generate(self, model, *args):
        return self.json("generate", model, "-p", PROMPT, "--max-tokens", "60", "--ignore-eos", "--logprobs", "2", "--json",
                         *args)

    def records(self, model, *args, **options):
        """The answer to a prompt of ids, for models without a tokenizer."""
        record = {"tokens": [3, 14, 15, 9, 26, 5, 35, 8, 9], "max_tokens": 40, "ignore_eos": True, "logprobs": 2, **options}
        return json.loads(self.ok("generate", model, "-f", self.write("r.jsonl", json.dumps(record)), *args))

    def changed_head(self, **changes):
        """The demo model's head with another configuration."""
        folder = self.folder / f"head{len(list(self.folder.iterdir()))}"
        shutil.copytree(HEAD, folder)
        config = json.loads((folder / "config.json").read_text())
        config.update(changes)
        (folder / "config.json").write_text(json.dumps(config))
        return folder

    def test_answers_are_those_without_a_head(self):
        for sampling in ([], SAMPLED):
            plain = self.generate(DEMO, "--draft", "none", *sampling)
            for depth in ("1", "4", "16", "auto"):
                got = self.generate(DEMO, "--draft", HEAD, "--draft-depth", depth, *sampling)
                self.assertEqual(answer(got), answer(plain))
                self.assertEqual(got["stats"]["drafter"], "eagle3")
                self.assertGreater(got["stats"]["drafted"], 0 if depth == "auto" else 30)
        done = run("generate", DEMO, "--draft", HEAD, "-p", PROMPT, "--draft-depth", "3", "--max-tokens", "30", "-v", "--ignore-eos")
        self.assertRegex(done.stderr.decode(), r"; eagle3: \d+ of \d+ draft tokens right in \d+ rounds")

    def test_published_spellings(self):
        for head in sorted(GOLDEN.iterdir()):
            for options in OPTIONS:
                with self.subTest(head.name, **options):
                    plain = self.records(head / "target", speculate="none", **options)
                    got = self.records(head / "target", "--draft", head, speculate="eagle3", draft_depth=4, **options)
                    self.assertEqual(answer(got), answer(plain))
                    self.assertGreater(got["stats"]["drafted"], 30)

    def test_rejection_keeps_to_the_vocabulary(self):
        head = GOLDEN / "flat"
        got = self.records(head / "target", "--draft", head, temp=1.0, seed=4, acceptance="rejection", draft_depth=4)
        self.assertEqual(len(got["tokens"]), 40)
        self.assertGreater(got["stats"]["drafted"], 30)

    def test_a_head_that_is_converted_into_its_model(self):
        for name in ("flat", "speculators"):
            for options in ([], ["--draft-bits", "8", "--draft-group-size", "32"]):
                with self.subTest(name, options=options):
                    model = self.folder / f"{name}{len(options)}"
                    if name == "speculators" and options:  # Its width of 24 has no groups of 32.
                        continue
                    self.ok("convert", GOLDEN / name / "target", model, "--draft", GOLDEN / name, *options)
                    header, _ = read_tensors(model / "draft/model.safetensors")
                    header = {key.removeprefix("model."): entry for key, entry in header.items()}
                    self.assertEqual(header["d2t"]["dtype"], "I64")
                    self.assertEqual(any(key.endswith(".scales") for key in header), bool(options))
                    got = self.records(model, draft_depth=4)
                    self.assertEqual(answer(got), answer(self.records(model, speculate="none")))
                    self.assertEqual(got["stats"]["drafter"], "eagle3")
                    self.assertGreater(got["stats"]["drafted"], 30)

    def test_a_head_comes_before_the_models_own_one(self):
        model = self.folder / "model"
        shutil.copytree(DEMO, model, ignore=shutil.ignore_patterns("draft"))
        shutil.copy(write_head(self.folder / "mtp") / "model.safetensors", model / "model-mtp.safetensors")
        shutil.copytree(HEAD, model / "draft")
        self.assertEqual(self.generate(model, "--draft-depth", "4")["stats"]["drafter"], "eagle3")
        got = self.generate(model, "--draft-depth", "4", "--speculate", "mtp")
        self.assertEqual(got["stats"]["drafter"], "mtp")
        self.assertEqual(answer(got), answer(self.generate(model, "--draft", "none")))
        self.fails("generate", model, "-p", "x", "--speculate", "dflash",
                   says="speculate: dflash needs a DFlash draft; there is prompt-lookup, mtp, eagle3")

    def test_inspect_and_commands_that_need_a_model(self):
        seen = json.loads(run("inspect", HEAD, "--json").stdout)
        self.assertFalse(seen["runnable"])
        self.assertIn("EAGLE-3 head: runs beside its model only", seen["reason"])

    def test_refusals(self):
        self.fails("generate", DEMO, "-p", "x", "--draft", "none", "--speculate", "eagle3", says="eagle3 needs an EAGLE-3 head")
        eagle = {"use_aux_hidden_state": True}
        for changes, says in (
            ({"hidden_size": 100}, "hidden_size is 100, expected the model's 192"),
            ({"vocab_size": 3000}, "vocab_size is 3000, expected the model's 2048"),
            ({"target_hidden_size": 128}, "target_hidden_size is 128, expected the model's 192"),
            ({"draft_vocab_size": 4096}, "'draft_vocab_size' is 4096, expected an integer from 1 to 2048"),
            ({"draft_vocab_size": 512}, "[lm_head.weight] shape"),
            ({"draft_vocab_size": None}, "[lm_head.weight] shape"),
            ({"num_hidden_layers": 2}, "[layers.1."),
            ({"num_attention_heads": "4"}, "num_attention_heads"),
            ({"eagle_config": {**eagle, "eagle_aux_hidden_state_layer_ids": [1, 3, 6]}}, "layer 6"),
            ({"eagle_config": {**eagle, "eagle_aux_hidden_state_layer_ids": [1, 3]}}, "[fc.weight] shape"),
            ({"eagle_config": {**eagle, "parallel_draft_step": 3}}, "parallel_draft_step is 3"),
            ({"eagle_config": {**eagle, "norm_before_fc": True}}, "[input_norm.weight]"),
            ({"model_type": "deepseek_v3"}, "deepseek_v3"),
        ):
            with self.subTest(says):
                self.fails("generate", DEMO, "-p", "x", "--draft", self.changed_head(**changes), says=says)
        self.fails("generate", DEMO, "-p", "x", "--draft", HEAD, "--speculate", "draft", says="draft needs a draft model")

    def test_tensors_that_are_not_what_they_should_be(self):
        header, data = read_tensors(HEAD / "model.safetensors")
        header.pop("__metadata__", None)
        first, end = header["d2t"]["data_offsets"]

        def refused(entries, bytes_, says):
            folder = self.changed_head()
            write_tensors(folder / "model.safetensors", entries, bytes_)
            self.fails("generate", DEMO, "-p", "x", "--draft", folder, says=says)

        for value, says in ((-1, "[d2t] adds -1 to token 0"), (2048, "adds 2048"), (1 << 62, "[d2t] adds")):
            refused(header, data[:first] + struct.pack("<q", value) + data[first + 8 : end] + data[end:], says)
        for name in ("fc.weight", "midlayer.hidden_norm.weight", "d2t", "lm_head.weight"):
            own = "layers.0.hidden_norm.weight" if "midlayer" in name else name
            refused({"x" if key == name else key: entry for key, entry in header.items()}, data, f"[{own}]")
        both = {"mtp." + key if key == "norm.weight" else key: entry for key, entry in header.items()}
        refused(both, data, "MTP head in the folder of an EAGLE-3 head")


if __name__ == "__main__":
    unittest.main()
