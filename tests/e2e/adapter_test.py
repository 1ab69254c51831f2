# SPDX-License-Identifier: Apache-2.0
"""Adapters on the command line and in records: base, fine-tune and other strengths in one batch."""
import json
import shutil
import struct
import unittest

from saker import ROOT, SakerTest

MODEL = ROOT / "tests/golden/llama"
ADAPTERS = ROOT / "tests/golden/adapters"
LORA, DORA = ADAPTERS / "peft_llama", ADAPTERS / "peft_dora_rs"


def answer(result):
    return {key: value for key, value in result.items() if key not in ("stats", "id")}


class Adapters(SakerTest):
    common = ("--tokens", "3,14,15,9", "--max-tokens", "6", "--ignore-eos", "--logprobs", "3", "--json")

    def generate(self, *args):
        return answer(self.json("generate", MODEL, *self.common, *args))

    def test_strength_0_is_the_base(self):
        base = self.generate()
        self.assertEqual(self.generate("--adapter", LORA, "--adapter-scale", "0"), base)
        self.assertNotEqual(self.generate("--adapter", LORA), base)
        self.assertNotEqual(self.generate("--adapter", LORA, "--adapter-scale", "0.5"), self.generate("--adapter", LORA))

    def test_records_with_adapters_of_their_own_share_a_batch(self):
        uses = [{}, {"adapter": str(LORA)}, {"adapter": str(DORA), "adapter_scale": 0.5}, {"adapter": ""},
                {"adapter": str(LORA), "adapter_scale": 0.25}]
        records = [{"tokens": [3, 14, 15, 9], "max_tokens": 6, "ignore_eos": True, "logprobs": 3, **use} for use in uses]
        path = self.write("r.jsonl", "\n".join(map(json.dumps, records)))
        together = [json.loads(line) for line in self.ok("generate", MODEL, "-f", path).splitlines()]
        for use, result in zip(uses, together):
            flags = [part for key, value in use.items() for part in (f"--{key.replace('_', '-')}", str(value))]
            self.assertEqual(answer(result), self.generate(*flags), use)

    def test_cached_prefixes_are_the_adapters_own(self):
        prompt = list(range(1, 60))
        records = [{"tokens": prompt, "max_tokens": 4, "ignore_eos": True, "logprobs": 2, **use}
                   for use in ({}, {"adapter": str(LORA)}, {}, {"adapter": str(LORA), "adapter_scale": 0.5})]
        path = self.write("r.jsonl", "\n".join(map(json.dumps, records)))
        warm, cold = ([answer(json.loads(line)) for line in
                       self.ok("generate", MODEL, "-f", path, "--batch", "1", *args).splitlines()]
                      for args in ((), ("--prefix-cache", "off")))
        self.assertEqual(warm, cold)

    def test_cache_files_are_the_adapters_own(self):
        file = self.folder / "rows"
        foreign = ROOT / "tests/golden/caches/llama.safetensors"

        def go_on(path, *use):
            return ("generate", MODEL, "--tokens", "15,9", "--max-tokens", "6", "--ignore-eos", "--logprobs", "3", "--json",
                    "--cache-in", path, *use)

        half = ("--adapter", LORA, "--adapter-scale", "0.5")
        self.ok("cache", "save", MODEL, "--tokens", "3,14", "-o", file, *half)
        cold, warm = self.generate(*half), answer(self.json(*go_on(file, *half)))
        self.assertEqual((warm["tokens"], warm["logprobs"]), (cold["tokens"], cold["logprobs"]))
        for other in ((), ("--adapter", LORA), ("--adapter", DORA, "--adapter-scale", "0.5")):
            self.fails(*go_on(file, *other), says="adapter and strength must be the same")
        self.fails(*go_on(foreign, *half), says="holds rows of the base")
        self.ok(*go_on(foreign, "--adapter", LORA, "--adapter-scale", "0"))
        # An answer of an adapter goes on.
        first = self.json("generate", MODEL, "--tokens", "3,14,15,9", "--max-tokens", "3", "--ignore-eos", "--json", *half,
                          "--cache-out", file)
        rest = self.json("generate", MODEL, "--tokens", str(first["tokens"][-1]), "--max-tokens", "3", "--ignore-eos", "--json",
                         *half, "--cache-in", file)
        self.assertEqual(first["tokens"] + rest["tokens"], cold["tokens"])
        self.ok("cache", "save", MODEL, "--tokens", "3,14", "-o", file)
        self.fails(*go_on(file, *half), says="holds rows of the base")

    def test_inspect_says_whether_an_adapter_can_be_applied(self):
        self.assertTrue(self.json("inspect", LORA, "--json")["runnable"])
        other = self.folder / "other"
        other.mkdir()
        (other / "adapter_config.json").write_text(json.dumps({"peft_type": "IA3"}))
        (other / "adapter_model.safetensors").write_bytes((LORA / "adapter_model.safetensors").read_bytes())
        report = self.json("inspect", other, "--json")
        self.assertFalse(report["runnable"])
        self.assertIn("IA3", report["reason"])

    def test_what_cannot_be_used_is_one_line(self):
        self.fails("generate", MODEL, *self.common, "--adapter", self.folder, says="no adapter")
        self.fails("generate", MODEL, *self.common, "--adapter", ADAPTERS / "mlx_lora_q4", says="down_proj")

    def test_convert_writes_what_gives_the_same_answer(self):
        out = self.folder / "mlx"
        report = self.json("convert", "--adapter", DORA, out, "--json")
        self.assertEqual((report["tensors"], len(report["converted"]), report["skipped"]), (42, 14, []))
        before, after = self.generate("--adapter", DORA), self.generate("--adapter", out)
        self.assertEqual(before["tokens"], after["tokens"])
        self.assertAlmostEqual(before["logprobs"][0]["logprob"], after["logprobs"][0]["logprob"], 5)
        saved = self.json("convert", "--adapter", ADAPTERS / "peft_saved", self.folder / "saved", "--json")
        self.assertEqual(len(saved["skipped"]), 2)

    def test_convert_without_a_folder_uses_the_cache(self):
        cache = {"XDG_CACHE_HOME": str(self.folder / "cache")}
        first, again = (json.loads(self.ok("convert", "--adapter", LORA, "--json", env=cache)) for _ in range(2))
        self.assertEqual([first["cached"], again["cached"]], [False, True])
        self.assertEqual({**again, "cached": False}, first)
        self.assertEqual(self.ok("convert", "--adapter", LORA, env=cache).decode(), first["output"] + "\n")
        self.assertTrue(first["output"].startswith(f"{self.folder}/cache/saker/adapters/"))
        self.assertEqual(self.generate("--adapter", LORA), self.generate("--adapter", first["output"]))
        sway = json.loads(self.ok("convert", "--adapter", LORA, "--sway-cache", "--json", env=cache))
        self.assertTrue(sway["output"].startswith(f"{self.folder}/cache/dlm-sway/mlx-converted/"))
        self.assertEqual(self.ok("convert", "--adapter", sway["output"], env=cache).decode(), sway["output"] + "\n")
        self.fails("convert", "--adapter", LORA, "--null", "3", says="expected DST", code=2)
        self.fails("convert", "--adapter", LORA, "--sway-cache", self.folder / "x", says="without DST", code=2)

    def test_fuse_leaves_out_the_draft_among_the_tensors(self):
        model = self.folder / "model"
        shutil.copytree(MODEL, model)
        data = (model / "model.safetensors").read_bytes()
        (size,) = struct.unpack("<Q", data[:8])
        header = {"draft." + name: entry for name, entry in json.loads(data[8 : 8 + size]).items() if name != "__metadata__"}
        text = json.dumps(header).encode()
        (model / "model-draft.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data[8 + size :])
        for name, base in (("plain", MODEL), ("with_draft", model)):
            self.ok("convert", base, self.folder / name, "--adapter", LORA, "--fuse")
        tensors = [self.json("inspect", self.folder / name, "--json")["file_bytes"] for name in ("plain", "with_draft")]
        self.assertEqual(*tensors)

    def test_fuse_writes_a_model_that_answers_as_the_adapter(self):
        out = self.folder / "fused"
        report = self.json("convert", MODEL, out, "--adapter", LORA, "--fuse", "--json")
        self.assertEqual((len(report["fused"]), report["added"]), (14, []))
        before, after = self.generate("--adapter", LORA), self.json("generate", out, *self.common)
        self.assertEqual(before["tokens"], after["tokens"])
        self.assertAlmostEqual(before["logprobs"][0]["logprob"], after["logprobs"][0]["logprob"], 4)
        self.fails("convert", MODEL, out, "--adapter", LORA, "--fuse", says="no empty folder")
        self.fails("convert", MODEL, out, "--adapter", LORA, says="SRC is for --fuse", code=2)

    def test_null_tensors_become_an_adapter_of_peft(self):
        out = self.folder / "null"
        self.json("convert", "--adapter", LORA, "--null", "7:0.05", out, "--json")
        views = self.json(
            "score", MODEL, "--tokens", "3,14,15,92", "--adapter", LORA, "--adapter", f"n={out}",
            "--views", "null:7:0.05,n", "--json",
        )["views"]
        self.assertEqual(views["null:7:0.05"]["logprobs"], views["n"]["logprobs"])
        self.fails("convert", "--adapter", LORA, "--null", "7:-1", out, says="init_scale")

    def test_trace_says_what_was_known(self):
        records = [{"tokens": [3, 14, 15], "id": i} for i in (0, 1)] + [{"tokens": [3, 14, 16], "id": 2}]
        path = self.write("r.jsonl", "\n".join(map(json.dumps, records)))
        trace = self.folder / "trace.jsonl"
        lines = self.ok("score", MODEL, "-f", path, "--adapter", LORA, "--batch", "1", "--trace", trace).splitlines()
        first, again = ({**json.loads(line), "id": 0} for line in lines[:2])
        self.assertEqual(first, again)
        calls = [json.loads(line) for line in trace.read_text().splitlines()]
        self.assertEqual([(call["view_id"], call["hit"]) for call in calls],
                         [("base", False), ("ft", False), ("base", True), ("ft", True), ("base", False), ("ft", False)])
        self.fails("score", MODEL, "-f", path, "--trace", self.folder / "no" / "file", says="trace")
        self.fails("score", MODEL, "-f", path, "--trace", "/dev/full", says="/dev/full: the trace takes no more")


if __name__ == "__main__":
    unittest.main()
