# SPDX-License-Identifier: Apache-2.0
"""A short training run from tokenizer to answer: needs tools/demo_model/requirements.txt, about a minute.

SAKER_PROGRAM in the environment names a `saker` that has to run the result too.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "tools" / "demo_model"
sys.path.insert(0, str(TOOLS))

import mlx.core as mx  # noqa: E402
import torch  # noqa: E402
from check import ask_mlx_lm, ask_saker  # noqa: E402
from data import CHAT_TEMPLATE, encode, train_tokenizer  # noqa: E402
from export import export  # noqa: E402
from generator import Generator  # noqa: E402
from mlx_lm import load  # noqa: E402
from model import Qwen3, Shape  # noqa: E402
from train import Options, train  # noqa: E402
from weights import read_weights  # noqa: E402
from transformers import AutoTokenizer  # noqa: E402

SHAPE = Shape(vocab_size=512, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=2,
              num_key_value_heads=1, head_dim=32)  # fmt: skip
STEPS = 40


class SmokeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.training = Path(cls.folder.name) / "training"
        cls.model = Path(cls.folder.name) / "model"
        cls.training.mkdir()
        train_tokenizer(1, SHAPE.vocab_size, conversations=300).save(str(cls.training / "tokenizer.json"))
        cls.options = Options(out=cls.training, steps=STEPS, tokens=1024, context=128, peak_rate=1e-2, warmup=5, processes=1)
        train(cls.options, SHAPE)
        cls.losses = torch.load(cls.training / "checkpoint.pt")["losses"]
        export(cls.training, cls.model)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_loss_goes_down(self):
        self.assertEqual(len(self.losses), STEPS)
        self.assertLess(sum(self.losses[-5:]), 0.8 * sum(self.losses[:5]))

    def train_with(self, name: str, **changes) -> list[float]:
        out = self.training.parent / name
        out.mkdir(exist_ok=True)
        (out / "tokenizer.json").write_bytes((self.training / "tokenizer.json").read_bytes())
        train(replace(self.options, out=out, **changes), SHAPE)
        return torch.load(out / "checkpoint.pt")["losses"]

    def test_two_processes_give_the_losses_of_one(self):
        two = self.train_with("two", steps=6, processes=2)
        one = self.train_with("one", steps=6, processes=1)
        for pair in zip(two, one, strict=True):
            self.assertAlmostEqual(*pair, places=3)

    def test_stopped_run_goes_on(self):
        first = self.train_with("stopped", steps=3, processes=2)
        (self.training.parent / "stopped" / "meeting").write_text("left behind")
        both = self.train_with("stopped", steps=5, processes=2)
        self.assertEqual(len(both), 5)
        self.assertEqual(both[:3], first)

    def test_start_goes_on_from_a_model(self):
        losses = self.train_with("start", steps=1, start=self.model)
        self.assertLess(losses[0], 0.8 * self.losses[0])
        self.assertAlmostEqual(losses[0], sum(self.losses[-5:]) / 5, delta=0.5)

    def test_export_is_what_was_trained(self):
        network, tokenizer = load(str(self.model))
        network.set_dtype(mx.float32)  # what is left is the rounding of the weights
        trained = Qwen3(SHAPE)
        trained.load_state_dict(torch.load(self.training / "checkpoint.pt")["model"])
        messages = [{"role": "user", "content": "What does a fox eat?"}]
        ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True)
        with torch.no_grad():
            rows = trained.hidden(torch.tensor([ids]))[0] @ trained.model.embed_tokens.weight.T
        wanted = torch.log_softmax(rows, -1)
        logits = network(mx.array([ids]))[0].astype(mx.float32)
        got = torch.tensor((logits - mx.logsumexp(logits, -1, keepdims=True)).tolist())
        self.assertLess((wanted - got).abs().max().item(), 0.1)

    def test_export_has_packed_weights_and_stops(self):
        weights = mx.load(str(self.model / "model.safetensors"))
        self.assertEqual(weights["model.layers.0.mlp.down_proj.weight"].dtype, mx.uint32)
        self.assertEqual(weights["model.layers.0.mlp.down_proj.weight"].shape, (64, 128 // 4))
        self.assertEqual(weights["model.layers.0.mlp.down_proj.scales"].shape, (64, 128 // 64))
        self.assertEqual(weights["model.norm.weight"].dtype, mx.bfloat16)
        stops = json.loads((self.model / "generation_config.json").read_text())["eos_token_id"]
        tokenizer = AutoTokenizer.from_pretrained(self.model)
        self.assertEqual(tokenizer.convert_ids_to_tokens(stops), ["<|im_end|>", "<|endoftext|>"])

    def test_training_ids_are_those_of_the_chat_template(self):
        tokenizer = AutoTokenizer.from_pretrained(self.model)
        self.assertEqual(tokenizer.chat_template, CHAT_TEMPLATE)
        generator = Generator(5)
        for _ in range(50):
            messages = generator.conversation()
            ids, learn = encode(tokenizer.backend_tokenizer, messages)
            text = tokenizer.apply_chat_template(messages, tokenize=False)
            self.assertEqual(ids, tokenizer(text)["input_ids"])
            learned = tokenizer.decode([i for i, wanted in zip(ids, learn, strict=True) if wanted])
            answers = [m["content"] + "<|im_end|>" for m in messages if m["role"] == "assistant"]
            self.assertEqual(learned, "".join(answers))

    def test_check_asks_the_export(self):
        rows = [{"id": "1", "prompt": "hello"}, {"id": "2", "prompt": "What is a fox?"}]
        self.assertEqual(len(ask_mlx_lm(str(self.model), rows)), 2)
        if program := os.environ.get("SAKER_PROGRAM"):
            self.assertEqual(len(ask_saker(program, str(self.model), rows)), 2)

    def ask(self, *args: str) -> list[dict]:
        command = [os.environ["SAKER_PROGRAM"], "generate", str(self.model), "--json", "--max-tokens", "30", *args]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return [json.loads(line) for line in done.stdout.splitlines()]

    @unittest.skipUnless("SAKER_PROGRAM" in os.environ, "the answers to learn from are the program's")
    def test_drafts_are_trained_on_its_answers(self):
        folder = Path(self.folder.name) / "drafts"
        folder.mkdir()
        prompts, answers = folder / "prompts.jsonl", folder / "answers.jsonl"

        def script(path: str, *args: object) -> str:
            command = [sys.executable, str(TOOLS.parent / path), *map(str, args)]
            return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout

        prompts.write_text(script("demo_model/prompts.py", "--count", 60))
        script("train_dflash/continuations.py", "--saker", os.environ["SAKER_PROGRAM"], "--model", self.model,
               "--prompts", prompts, "--out", answers, "--max-tokens", 30)  # fmt: skip
        rows = [json.loads(line) for line in answers.read_text().splitlines()]
        self.assertEqual(len(rows), 60)
        self.assertTrue(0 < sum(row["greedy"] for row in rows) < 60)

        plain = self.ask("-f", str(prompts))
        common = ("--target", self.model, "--answers", answers, "--tokens", 512, "--held-out", 5, "--steps", 3, "--threads", 1)
        block = ("--out", folder / "dflash", "--layers", 1, "--block", 4, "--taps", 0)
        script("train_dflash/train.py", *common, *block)
        script("demo_model/train_small.py", *common, "--out", folder / "small", "--layers", 1, "--hidden", 64)
        script("demo_model/train_mtp.py", *common, "--out", folder / "mtp")
        self.assertTrue((folder / "mtp" / "draft" / "model.safetensors").exists())
        known = ("--taps", 0, "--tokens-known", 40)
        script("demo_model/train_eagle3.py", *common, *known, "--out", folder / "eagle3")
        export(folder / "small", folder / "small" / "draft")
        for name in ("dflash", "eagle3", "small"):
            with self.subTest(draft=name):
                got = self.ask("-f", str(prompts), "--draft", str(folder / name / "draft"), "--draft-depth", "3")
                self.assertEqual([row["tokens"] for row in got], [row["tokens"] for row in plain])
                self.assertGreater(sum(row["stats"]["drafted"] for row in got), 100)
        own = {"dflash": block[2:], "eagle3": known, "small": ("--layers", 1, "--hidden", 64)}
        for name, options in {**own, "mtp": ()}.items():
            path = "train_dflash/train.py" if name == "dflash" else f"demo_model/train_{name}.py"
            with self.subTest(start=name):
                start = ("--steps", 0, "--start", folder / name / "draft")
                script(path, *common, *options, "--out", folder / f"{name}_more", *start)
                if name == "small":
                    export(folder / "small_more", folder / "small_more" / "draft")
                ours, theirs = (read_weights(place / "draft") for place in (folder / f"{name}_more", folder / name))
                self.assertEqual(set(ours), set(theirs))
                for key, weight in theirs.items():  # what may be left is the rounding of packed weights
                    self.assertLess((ours[key].float() - weight.float()).norm(), 0.02 * weight.float().norm(), key)
        # A second start goes on where the first one ended.
        more = script("train_dflash/train.py", *common, *block, "--steps", 5)
        self.assertIn("step 5:", more)
        self.assertNotIn("step 3:", more)


if __name__ == "__main__":
    unittest.main()
