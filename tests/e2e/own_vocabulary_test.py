# SPDX-License-Identifier: Apache-2.0
"""Adapters with more or fewer tokens than their base: alone they run as the folder that `convert --fuse` writes."""
import json
import random
import shutil
import struct
import unittest

from saker import DEMO, ROOT, SakerTest

GOLDEN = ROOT / "tests/golden"
ADAPTERS = GOLDEN / "adapters"
# Added tokens, embedding and head apart; the same with LoRA on a tied embedding; fewer tokens, still tied.
CASES = (("llama", "peft_resized"), ("qwen3", "peft_resized_embedding"), ("qwen3", "peft_resized_tied"))
COMMON = ("--tokens", "3,14,15,9", "--max-tokens", "8", "--ignore-eos", "--logprobs", "3", "--json")
EXTRA = "<|extra|>"


def answer(result):
    return {key: value for key, value in result.items() if key not in ("stats", "id")}


def read_tensors(path):
    """Dtype, shape and bytes by name."""
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    entries = json.loads(data[8 : 8 + size])
    return {name: (entry["dtype"], entry["shape"], data[8 + size + entry["data_offsets"][0] : 8 + size + entry["data_offsets"][1]])
            for name, entry in entries.items() if name != "__metadata__"}


def write_tensors(path, tensors):
    header, at = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values()))


class OwnVocabulary(SakerTest):
    def fused(self, model, adapter):
        out = self.folder / "fused"
        shutil.rmtree(out, ignore_errors=True)
        self.ok("convert", model, out, "--adapter", adapter, "--fuse")
        return out

    def test_it_runs_as_the_fused_folder(self):
        windows = self.write("w.jsonl", "\n".join(json.dumps({"tokens": [i * 7 % 90 for i in range(30)]}) for _ in range(3)))
        for base, name in CASES:
            model, adapter = GOLDEN / base, ADAPTERS / name
            fused = self.fused(model, adapter)
            given = (model, "--adapter", adapter)
            with self.subTest(name):
                self.assertEqual(answer(self.json("generate", *given, *COMMON)), answer(self.json("generate", fused, *COMMON)))
                score = ("--tokens", "3,14,15,90", "--top-k", "5", "--json")
                got = self.json("score", *given, "--views", "ft", *score)
                self.assertEqual(got["views"]["ft"], self.json("score", fused, *score)["views"]["base"])
                self.json("score", *given, "--views", "ft", "--preflight", "--json")
                mine, theirs = (self.json("perplexity", *which, "-f", windows, "--context", "20", "--json") for which in (given, [fused]))
                self.assertEqual(mine["perplexity"], theirs["perplexity"])

    def test_perplexity_of_any_adapter(self):
        windows = self.write("w.jsonl", json.dumps({"tokens": [i * 7 % 90 for i in range(50)]}))
        losses = [self.json("perplexity", GOLDEN / "llama", "-f", windows, "--json", *use)["mean_loss"]
                  for use in ((), ("--adapter", ADAPTERS / "peft_llama", "--adapter-scale", "0"), ("--adapter", ADAPTERS / "peft_llama"))]
        scored = self.json("score", GOLDEN / "llama", "--tokens", ",".join(str(i * 7 % 90) for i in range(50)), "--adapter",
                           ADAPTERS / "peft_llama", "--json")["views"]
        self.assertEqual(losses[0], losses[1])
        self.assertAlmostEqual(losses[0], -scored["base"]["mean"], 12)
        self.assertAlmostEqual(losses[2], -scored["ft"]["mean"], 12)

    def test_its_rows_are_its_own(self):
        model, adapter = GOLDEN / "llama", ADAPTERS / "peft_resized"
        given, rows = (model, "--adapter", adapter), self.folder / "rows"
        whole = self.json("generate", *given, *COMMON)
        self.ok("cache", "save", *given, "--tokens", "3,14", "-o", rows)
        rest = ("--tokens", "15,9", *COMMON[2:], "--cache-in", rows)
        self.assertEqual(self.json("generate", *given, *rest)["logprobs"], whole["logprobs"])
        self.fails("generate", model, *rest, says="adapter and strength must be the same")
        kept = ("--prefix-cache-dir", self.folder / "prefixes")
        base = self.json("generate", model, *COMMON, *kept)
        for _ in range(2):
            self.assertEqual(answer(self.json("generate", *given, *COMMON, *kept)), answer(whole))
            self.assertEqual(answer(self.json("generate", model, *COMMON, *kept)), answer(base))

    def test_what_cannot_run_beside_it_is_one_line(self):
        model, adapter = GOLDEN / "llama", ADAPTERS / "peft_resized"
        given = (model, "--adapter", adapter)
        beside = "101 tokens and the base 96"
        self.fails("generate", *given, *COMMON, "--adapter-scale", "0.5", says=beside)
        for views in ((), ("--diff",), ("--views", "ft,0.5"), ("--views", "0.5"), ("--views", "null:1,ft")):
            message = self.fails("score", *given, "--tokens", "3,14", *views, says=beside)
            self.assertIn("--fuse", message)
        self.fails("score", *given, "--adapter", f"two={ADAPTERS / 'peft_llama'}", "--views", "ft", "--tokens", "3,14", says=beside)
        records = [{"tokens": [3, 14], "max_tokens": 1, **use}
                   for use in ({}, {"adapter": ""}, {"adapter_scale": 0.5}, {"adapter": str(ADAPTERS / "peft_llama")})]
        path = self.write("r.jsonl", "\n".join(map(json.dumps, records)))
        done = self.run_lines("generate", *given, "-f", path)
        self.assertIn("tokens", done[0])
        for line in done[1:]:
            self.assertIn("vocabulary of its own", line["error"]["message"])
        self.fails("convert", *given[:1], self.folder / "half", *given[1:], "--fuse", "--adapter-scale", "0.5", says="strength")

    def run_lines(self, *args):
        from saker import run
        return [json.loads(line) for line in run(*args).stdout.splitlines()]

    def demo_adapter(self):
        """One token more, with a tokenizer that knows it; LoRA on one layer."""
        plain, out = self.folder / "plain", self.folder / "adapter"
        self.ok("convert", DEMO, plain, "--dequantize")
        dtype, (tokens, hidden), table = read_tensors(plain / "model.safetensors")["model.embed_tokens.weight"]
        noise = random.Random(5)
        floats = lambda count: struct.pack(f"<{count}f", *(noise.gauss(0, 0.1) for _ in range(count)))
        out.mkdir()
        row = len(table) // tokens
        pair = "base_model.model.model.layers.3.self_attn.q_proj.lora_{}.weight".format
        write_tensors(out / "adapter_model.safetensors", {
            "base_model.model.model.embed_tokens.weight": (dtype, [tokens + 1, hidden], table + table[100 * row : 101 * row]),
            pair("A"): ("F32", [4, hidden], floats(4 * hidden)),
            pair("B"): ("F32", [256, 4], floats(256 * 4)),
        })
        (out / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": 4, "lora_alpha": 8, "target_modules": ["q_proj"]}))
        tokenizer = json.loads((DEMO / "tokenizer.json").read_text())
        added = {"id": tokens, "content": EXTRA, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                 "special": False}
        tokenizer["added_tokens"].append(added)
        (out / "tokenizer.json").write_text(json.dumps(tokenizer))
        shutil.copy(DEMO / "tokenizer_config.json", out)
        return out, tokens

    def test_its_tokenizer_comes_with_it(self):
        adapter, extra = self.demo_adapter()
        fused, given = self.fused(DEMO, adapter), (DEMO, "--adapter", adapter)
        options = ("-p", f"Once {EXTRA} upon", "--max-tokens", "12", "--json")
        got = self.json("generate", *given, *options)
        self.assertIn(extra, got["prompt_tokens"])
        self.assertEqual(answer(got), answer(self.json("generate", fused, *options)))
        self.assertEqual(self.ok("run", *given, "-p", f"What is {EXTRA}?"), self.ok("run", fused, "-p", f"What is {EXTRA}?"))
        text = ("--text", f"Once {EXTRA} upon a time", "--json")
        self.assertEqual(self.json("score", *given, "--views", "ft", *text)["views"]["ft"],
                         self.json("score", fused, *text)["views"]["base"])
        records = self.write("t.jsonl", json.dumps({"text": f"Once {EXTRA} upon a time"}))
        mine, theirs = (self.json("perplexity", *which, "-f", records, "--json") for which in (given, [fused]))
        self.assertEqual((mine["perplexity"], mine["tokens"]), (theirs["perplexity"], theirs["tokens"]))

    def test_damage_names_the_adapter_s_file(self):
        adapter, _ = self.demo_adapter()
        (adapter / "tokenizer_config.json").write_text("{")
        self.fails("generate", DEMO, "--adapter", adapter, "-p", "Once", "--chat", says=str(adapter / "tokenizer_config.json"))
        (adapter / "tokenizer.json").write_text("{")
        self.fails("generate", DEMO, "--adapter", adapter, "-p", "Once", says=str(adapter / "tokenizer.json"))

    def test_the_base_s_own_draft_is_left_out(self):
        adapter, _ = self.demo_adapter()
        options = ("-p", "Once upon", "--max-tokens", "12", "--json")
        self.assertEqual(self.json("generate", DEMO, *options)["stats"]["drafter"], "dflash")
        got = self.json("generate", DEMO, "--adapter", adapter, *options)
        self.assertEqual(got["stats"]["drafter"], "none")
        self.assertEqual(answer(got), answer(self.json("generate", self.fused(DEMO, adapter), *options)))


if __name__ == "__main__":
    unittest.main()
