# SPDX-License-Identifier: Apache-2.0
"""Models written as GGUF files, and read again."""
import json
import shutil
import unittest

from gguf_test import contents, gguf
from saker import DEMO, ROOT, SakerTest

ADAPTER = ROOT / "tests/golden/adapters/peft_llama"
ADAPTED = ROOT / "tests/golden/llama"
TEXT = "Once upon a time there was a little dog who liked to play in the garden. " * 40


class ConvertGguf(SakerTest):
    def floats(self):
        folder = self.folder / "floats"
        self.ok("convert", DEMO, folder, "--dequantize", "--dtype", "float32")
        return folder

    def answer(self, model, *flags):
        return self.json("generate", model, "-p", "Once upon a time", "--max-tokens", "12", "--temp", "0", "--logprobs", "2", *flags, "--json")

    def score(self, model):
        record = self.write("record.jsonl", json.dumps({"text": TEXT[:400]}))
        return self.json("score", model, "-f", record, "--json")["views"]["base"]["sum"]

    def test_floats_are_the_folder(self):
        folder, file = self.floats(), self.folder / "model.gguf"
        self.ok("convert", folder, file)
        whole, got = self.answer(folder), self.answer(file)
        for key in ("text", "tokens", "logprobs", "finish_reason"):
            self.assertEqual(got.get(key), whole.get(key), key)
        messages = self.write("messages.json", '[{"role":"user","content":"Hello"}]')
        self.assertEqual(*(self.ok("template", model, "--messages", messages) for model in (folder, file)))
        self.assertEqual(*(self.ok("tokenize", model, "-t", "A dog's caf\u00e9\n\n12") for model in (folder, file)))
        found = self.json("inspect", file, "--json")
        self.assertTrue(found["runnable"])
        self.assertEqual(found["dtypes"].keys(), {"F32"})

    def test_back_to_the_folder(self):
        folder, file, again = self.floats(), self.folder / "model.gguf", self.folder / "again"
        self.ok("convert", folder, file, "--type", "f32")
        self.ok("convert", file, again)
        self.assertEqual((again / "model.safetensors").read_bytes(), (folder / "model.safetensors").read_bytes())

    def test_blocks(self):
        folder = self.floats()
        truth, losses = self.score(folder), {}
        for kind in ("Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "IQ4_XS", "Q4_0", "Q3_K_M", "Q2_K"):
            file = self.folder / f"{kind}.gguf"
            report = self.json("convert", folder, file, "--type", kind, "--json")
            self.assertEqual(report["bytes"], file.stat().st_size)
            self.assertGreater(report["quantized"], 40)
            losses[kind] = abs(self.score(file) - truth)
            self.assertEqual(len(self.answer(file, "--ignore-eos")["tokens"]), 12)
        self.assertLess(losses["Q8_0"], 2.0)
        self.assertLess(losses["Q6_K"], 5.0)
        sizes = {kind: (self.folder / f"{kind}.gguf").stat().st_size for kind in losses}
        self.assertGreater(sizes["Q8_0"], sizes["Q6_K"])
        self.assertGreater(sizes["Q5_K_M"], sizes["Q4_K_M"])
        self.assertGreater(sizes["Q4_K_M"], sizes["Q2_K"])

    def test_blocks_give_the_logits_of_their_weights(self):
        folder, file, plain = self.floats(), self.folder / "model.gguf", self.folder / "plain"
        self.ok("convert", folder, file, "--type", "Q3_K_S")
        self.assertIn("Q3_K", self.json("inspect", file, "--json")["dtypes"])
        self.ok("convert", file, plain, "--dequantize", "--dtype", "float32")
        self.assertAlmostEqual(self.score(file), self.score(plain), delta=0.05)

    def test_codes_are_rounded_once_more(self):
        file, other = self.folder / "model.gguf", self.folder / "other.gguf"
        self.ok("convert", DEMO, file, "--type", "Q8_0")
        self.ok("convert", file, other, "--type", "Q4_0")
        self.assertEqual(len(self.answer(other, "--ignore-eos")["tokens"]), 12)

    def test_importance(self):
        folder, matrix, file = self.floats(), self.folder / "matrix.gguf", self.folder / "model.gguf"
        text = self.write("text.txt", TEXT)
        self.ok("imatrix", folder, text, matrix, "--context", "64")
        self.ok("convert", folder, file, "--type", "Q2_K_S", "--imatrix", matrix)
        self.assertEqual(len(self.answer(file, "--ignore-eos")["tokens"]), 12)
        plain = self.folder / "plain.gguf"
        self.ok("convert", folder, plain, "--type", "Q4_K_M")
        weighted = self.folder / "weighted.gguf"
        self.ok("convert", folder, weighted, "--type", "Q4_K_M", "--imatrix", matrix)
        self.assertEqual(plain.stat().st_size, weighted.stat().st_size)
        self.assertNotEqual(plain.read_bytes(), weighted.read_bytes())
        wrong = self.write("wrong.gguf", gguf({"general.type": "imatrix"}, {"blk.0.attn_q.weight.in_sum2": ((1, 8), [1.0] * 8), "blk.0.attn_q.weight.counts": ((1, 1), [1.0])}))
        self.fails("convert", folder, self.folder / "x.gguf", "--type", "Q4_0", "--imatrix", wrong, says="has 8 numbers, expected 192")

    def test_importance_for_a_folder(self):
        folder, matrix = self.floats(), self.folder / "matrix.gguf"
        self.ok("imatrix", folder, self.write("text.txt", TEXT), matrix, "--context", "64")
        plain, weighted, again = (self.folder / name for name in ("plain", "weighted", "again"))
        flags = ("--bits", "2", "--group-size", "32")
        self.ok("convert", folder, plain, *flags)
        self.ok("convert", folder, weighted, *flags, "--imatrix", matrix)
        self.ok("convert", folder, again, *flags, "--imatrix", matrix)
        codes = [(path / "model.safetensors").read_bytes() for path in (plain, weighted, again)]
        self.assertEqual(len(codes[0]), len(codes[1]))
        self.assertNotEqual(codes[0], codes[1])
        self.assertEqual(codes[1], codes[2])
        self.assertEqual(*((path / "config.json").read_bytes() for path in (plain, weighted)))
        out = self.folder / "out"
        for others in ((), ("--dtype", "float16"), ("--bits", "4", "--draft", DEMO), ("--mode", "mxfp4")):
            self.fails("convert", folder, out, *others, "--imatrix", matrix, says="--imatrix", code=2)
        wrong = gguf({"general.type": "imatrix"}, {"blk.0.attn_q.weight.in_sum2": ((1, 8), [1.0] * 8), "blk.0.attn_q.weight.counts": ((1, 1), [1.0])})
        self.fails("convert", folder, out, "--bits", "4", "--imatrix", self.write("wrong.gguf", wrong), says="has 8 numbers, expected 192")
        other = gguf({"general.type": "imatrix"}, {"blk.99.attn_q.weight.in_sum2": ((1, 8), [1.0] * 8), "blk.99.attn_q.weight.counts": ((1, 1), [1.0])})
        self.fails("convert", folder, out, "--bits", "4", "--imatrix", self.write("other.gguf", other), says="none for a module")
        self.assertFalse(out.exists())

    def test_with_an_adapter(self):
        fused, file = self.folder / "fused", self.folder / "fused.gguf"
        self.ok("convert", ADAPTED, fused, "--adapter", ADAPTER, "--fuse")
        self.ok("convert", ADAPTED, file, "--adapter", ADAPTER, "--fuse", "--type", "F32")
        flags = ("--tokens", "1,5,6", "--max-tokens", "4", "--ignore-eos", "--json")
        self.assertEqual(self.json("generate", file, *flags)["tokens"], self.json("generate", fused, *flags)["tokens"])
        self.assertEqual([path.name for path in self.folder.iterdir() if "tmp" in path.name or path.name.endswith(".fused")], [])

    def test_refusals(self):
        file = self.folder / "model.gguf"
        self.fails("convert", DEMO, file, "--type", "Q4_K_X", says="expected one of F32", code=2)
        self.fails("convert", DEMO, self.folder / "out", "--type", "Q4_0", says=".gguf", code=2)
        self.fails("convert", DEMO, file, "--bits", "4", says="GGUF file takes", code=2)
        self.fails("convert", DEMO, file, "--type", "Q2_K_S", says="needs an importance matrix")
        self.fails("convert", DEMO, file, "--type", "Q4_0", "--imatrix", self.folder / "none", says="none")
        self.fails("convert", DEMO, file, "--type", "Q4_0", "--imatrix", self.write("broken", b"GGUF"), says="broken")
        self.fails("convert", self.demo_copy(hidden_act="gelu"), file, says="hidden_act is gelu")
        self.assertFalse(file.exists())
        self.ok("convert", DEMO, file)
        self.fails("convert", DEMO, file, says="exists already")

    def test_nothing_half_is_left(self):
        file = self.folder / "out" / "model.gguf"
        file.parent.mkdir()
        self.fails("convert", DEMO, file, "--type", "F32", says="cannot be written", largest_file=1 << 20)
        self.assertEqual(list(file.parent.iterdir()), [])

    def test_weights_that_are_no_numbers(self):
        keys, tensors = contents()
        shape, values = tensors["blk.0.ffn_up.weight"]
        tensors["blk.0.ffn_up.weight"] = (shape, [float("nan"), *values[1:]])
        source = self.write("source.gguf", gguf(keys, tensors))
        self.fails("convert", source, self.folder / "out.gguf", "--type", "Q8_0", says="not finite")
        shape, values = tensors["blk.0.ffn_up.weight"]
        tensors["blk.0.ffn_up.weight"] = (shape, [70000.0, *values[1:]])
        source = self.write("large.gguf", gguf(keys, tensors))
        self.fails("convert", source, self.folder / "out.gguf", "--type", "F16", says="has 70000, which F16 cannot hold")
        self.ok("convert", source, self.folder / "out.gguf", "--type", "BF16")
        # Blocks hold 70000 as a code times a scale; the scale of 1e9 is beyond float16.
        self.ok("convert", source, self.folder / "blocks.gguf", "--type", "Q8_0")
        tensors["blk.0.ffn_up.weight"] = (shape, [1e9, *values[1:]])
        source = self.write("larger.gguf", gguf(keys, tensors))
        for kind in ("Q8_0", "Q4_0", "Q5_1", "IQ4_NL"):
            self.fails("convert", source, self.folder / "none.gguf", "--type", kind, says="cannot hold")


if __name__ == "__main__":
    unittest.main()
