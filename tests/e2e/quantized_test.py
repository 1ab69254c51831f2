# SPDX-License-Identifier: Apache-2.0
"""Checkpoints in other tools' quantized formats: run as they are, converted with mlx-lm's arrays (golden/quantized), refused when broken."""
import json
import shutil
import struct
import unittest

from convert_test import config_of, tensors_of
from saker import ROOT, SakerTest, run

GOLDEN = ROOT / "tests/golden/quantized"
EXPECTED = json.loads((GOLDEN / "expected.json").read_text())
EXACT = {"awq", "gptq", "packed", "mxfp4", "int8", "bitnet", "fp8_powers"}
IDS = ("--tokens", "1,2,3,4,5", "--max-tokens", "8", "--ignore-eos", "--logprobs", "2", "--json")
LAYER = "model.layers.0.self_attn.q_proj."


class Quantized(SakerTest):
    def broken(self, name, tensors=None, **section):
        """A copy in which tensors have another name, dtype, shape or beginning, and the section other fields."""
        folder = self.folder / f"broken{len(list(self.folder.iterdir()))}"
        shutil.copytree(GOLDEN / name, folder)
        config = config_of(folder)
        config["quantization_config"].update(section)
        (folder / "config.json").write_text(json.dumps(config))
        data = (folder / "model.safetensors").read_bytes()
        (size,) = struct.unpack("<Q", data[:8])
        header = json.loads(data[8 : 8 + size])
        for leaf, change in (tensors or {}).items():
            entry = header.pop(LAYER + leaf)
            header[LAYER + change.get("leaf", leaf)] = {**entry, **{key: change[key] for key in ("dtype", "shape") if key in change}}
            begin = 8 + size + entry["data_offsets"][0]
            put = change.get("put", b"")
            data = data[:begin] + put + data[begin + len(put) :]
        text = json.dumps(header).encode()
        (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data[8 + size :])
        return folder

    def test_arrays_are_those_of_mlx_lm(self):
        for name, expected in EXPECTED.items():
            with self.subTest(name):
                out = self.folder / name
                report = self.json("convert", GOLDEN / name, out, "--json")
                self.assertEqual(tensors_of(out), expected)
                self.assertEqual(report["parameters"], 35008)
                config = config_of(out)
                self.assertNotIn("quant_method", json.dumps(config))
                self.assertEqual("quantization" in config, name in EXACT)

    def test_runs_as_it_is(self):
        for name in EXPECTED:
            with self.subTest(name):
                out = self.folder / name
                self.ok("convert", GOLDEN / name, out)
                answers = [self.json("generate", folder, *IDS) for folder in (GOLDEN / name, out)]
                for answer in answers:
                    del answer["stats"]
                self.assertEqual(*answers)
                inspected = self.json("inspect", GOLDEN / name, "--json")
                self.assertTrue(inspected["runnable"])
                self.assertEqual(inspected["parameters"], 35008)

    def test_notes_what_no_format_holds(self):
        for name in EXPECTED:
            done = run("convert", GOLDEN / name, self.folder / name)
            self.assertEqual(b"bfloat16 in its place" in done.stderr, name not in EXACT, name)

    def test_scales_that_are_no_powers_make_bfloat16(self):
        folder = self.broken("fp8_powers", {"weight_scale_inv": {"put": struct.pack("<f", 0.003)}})
        done = run("convert", folder, self.folder / "out")
        self.assertIn(b"1 weight of fp8 has no format of MLX that holds it: bfloat16", done.stderr)
        made = tensors_of(self.folder / "out")
        self.assertEqual(made[LAYER + "weight"][:2], ["bfloat16", [64, 64]])
        self.assertEqual({key: value for key, value in made.items() if not key.startswith(LAYER)},
                         {key: value for key, value in EXPECTED["fp8_powers"].items() if not key.startswith(LAYER)})

    def test_settings_in_a_file_of_their_own(self):
        folder = self.broken("modelopt")
        config = config_of(folder)
        section = config.pop("quantization_config")
        (folder / "config.json").write_text(json.dumps(config))
        own = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": section["quant_algo"], "group_size": 16}}
        (folder / "hf_quant_config.json").write_text(json.dumps(own))
        self.ok("convert", folder, self.folder / "out")
        self.assertEqual(tensors_of(self.folder / "out"), EXPECTED["modelopt"])
        answers = [self.json("generate", path, *IDS)["tokens"] for path in (folder, self.folder / "out")]
        self.assertEqual(*answers)
        own["quantization"]["quant_algo"] = "INT4_AWQ"
        (folder / "hf_quant_config.json").write_text(json.dumps(own))
        self.fails("generate", folder, *IDS, says="'INT4_AWQ' with modelopt, expected FP8 or NVFP4")

    def test_ternary_weights_by_another_class_multiply(self):
        """The same codes; scales are the file's, not one divided by them."""
        self.ok("convert", self.broken("bitnet", linear_class="autobitlinear"), self.folder / "out")
        made, expected = tensors_of(self.folder / "out"), EXPECTED["bitnet"]
        self.assertEqual(made[LAYER + "weight"], expected[LAYER + "weight"])
        self.assertEqual(made[LAYER + "scales"][:2], ["bfloat16", [64, 1]])

    def test_converts_further(self):
        out = self.folder / "out"
        report = self.json("convert", GOLDEN / "fp8", out, "--bits", "4", "--group-size", "32", "--json")
        self.assertEqual(report["quantized"], 8)
        floats = self.folder / "floats"
        self.json("convert", GOLDEN / "awq", floats, "--dequantize", "--json")
        self.assertEqual(tensors_of(floats)[LAYER + "weight"][:2], ["float16", [64, 64]])
        again = self.folder / "again"
        done = run("convert", GOLDEN / "awq", again, "--bits", "8")
        self.assertIn(b"rounded once more", done.stderr)
        self.ok("convert", floats, self.folder / "twice", "--bits", "8")
        self.assertEqual(tensors_of(again), tensors_of(self.folder / "twice"))
        self.assertEqual(config_of(again), config_of(self.folder / "twice"))

    def test_dequantizes_what_is_bfloat16_already(self):
        for name in ("fp8", "nvfp4"):
            out = self.folder / name
            self.ok("convert", GOLDEN / name, out, "--dequantize")
            self.assertEqual(tensors_of(out), EXPECTED[name])
            self.assertNotIn("quantization", config_of(out))

    def test_cannot_be_fused(self):
        self.fails("convert", GOLDEN / "awq", self.folder / "more", "--adapter", ROOT / "tests/golden/adapters/mlx_lora", "--fuse",
                   says="is in another program's format")

    def test_refuses_other_variants(self):
        for name, section, says in (
            ("awq", {"quant_method": "bitsandbytes"}, "'bitsandbytes', expected MLX's quantization or none, or in a model's folder awq"),
            ("awq", {"bits": 8}, "bits' is 8 with awq, expected 4"),
            ("awq", {"version": "gemv"}, "'gemv' with awq, expected gemm"),
            ("packed", {"format": "sparse-24"}, "'sparse-24' with compressed-tensors, expected"),
            ("modelopt", {"quant_algo": "W4A8_AWQ"}, "'W4A8_AWQ' with modelopt, expected FP8 or NVFP4"),
            ("fp8", {"weight_block_size": [0, 128]}, "weight_block_size"),
            ("fp8", {"weight_block_size": [16, 16]}, "or blocks [4, 6] for weights [64, 96]"),
        ):
            with self.subTest(name, section=section):
                folder = self.broken(name, **section)
                for command in (("convert", folder, self.folder / "out"), ("generate", folder, *IDS)):
                    self.fails(*command, says=says)
                self.assertIn(says.split(" ")[0], self.json("inspect", folder, "--json")["reason"])

    def test_refuses_broken_tensors(self):
        for name, tensors, says in (
            ("awq", {"scales": {"leaf": "scale"}}, f"'{LAYER}scales' is missing"),
            ("awq", {"scales": {"shape": [4, 32]}}, f"'{LAYER}scales' is F16 [4, 32], expected 64 columns"),
            ("awq", {"scales": {"shape": [1, 128]}}, "expected 64 columns"),
            ("awq", {"qzeros": {"shape": [1, 16]}}, f"'{LAYER}qzeros' is I32 [1, 16], expected [2, 8]"),
            ("awq", {"qzeros": {"dtype": "F32"}}, "is F32 [2, 8], expected I32 or U32"),
            ("awq", {"qweight": {"shape": [512]}}, "is I32 [512], expected a matrix"),
            ("gptq", {"qzeros": {"shape": [1, 16]}}, "expected [2, 8]"),
            ("gptq", {"g_idx": {"put": struct.pack("<2i", 0, 1)}}, f"'{LAYER}g_idx' puts input 1 into group 1, expected 0"),
            ("awq", {"scales": {"put": b"\x00\x7c"}}, f"'{LAYER[:-1]}': a scale or its zero point times it is inf in F16"),
            ("packed", {"weight_shape": {"put": struct.pack("<2q", 32, 64)}}, "expected [64, 64] in it"),
            ("nvfp4", {"weight_global_scale": {"put": bytes(4)}}, "is 0, expected a number above 0"),
            ("gptq", {"g_idx": {"shape": [8, 8]}}, "is I32 [8, 8], expected [64]"),
            ("packed", {"weight_scale": {"shape": [32, 4]}}, "expected 64 rows"),
            ("packed", {"weight_shape": {"leaf": "other"}, "weight_scale": {"shape": [64, 1, 2]}}, "expected a matrix"),
            ("mxfp4", {"weight_scale": {"shape": [2, 64]}}, "expected [64, 2]"),
            ("nvfp4", {"weight_global_scale": {"leaf": "other"}}, "'" + LAYER + "weight_global_scale' is missing"),
            ("int8", {"weight_scale": {"dtype": "I8", "shape": [2]}}, "is I8 [2], expected [1] or 64 rows"),
            ("int8", {"weight_scale": {"put": b"\x80\x7f"}}, "a scale or its zero point times it is inf in BF16"),
            ("bitnet", {"weight_scale": {"put": bytes(2)}}, "a scale or its zero point times it is inf in F32"),
            ("bitnet", {"weight_scale": {"leaf": "other"}}, "'" + LAYER + "weight_scale' is missing"),
            ("bitnet", {"weight": {"shape": [1024]}}, "is U8 [1024], expected a matrix"),
            ("modelopt", {"weight_scale_2": {"put": bytes(4)}}, "is 0, expected a number above 0"),
            ("modelopt", {"weight_scale_2": {"dtype": "I32"}}, "is I32 [], expected F32"),
            ("modelopt", {"weight": {"shape": [128, 16]}}, "expected [128, 2]"),
            ("fp8", {"weight_scale_inv": {"leaf": "other"}}, "'" + LAYER + "weight_scale' is missing"),
        ):
            with self.subTest(name, tensors=tensors):
                folder = self.broken(name, tensors)
                for command in (("convert", folder, self.folder / "out"), ("generate", folder, *IDS)):
                    self.fails(*command, says=says)
                self.assertFalse((self.folder / "out").exists())


if __name__ == "__main__":
    unittest.main()
