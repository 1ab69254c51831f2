# SPDX-License-Identifier: Apache-2.0
"""Models written by `convert`: the bits of mlx_lm.convert (golden/convert.json), and what goes wrong."""
import json
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import time
import unittest
import zlib

from saker import DEMO, PROGRAM, ROOT, SakerTest, run

GOLDEN = ROOT / "tests/golden"
NAMES = {"U32": "uint32", "U8": "uint8", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}
INDEX = "model.safetensors.index.json"


def tensors_of(folder):
    found = {}
    for file in sorted(pathlib.Path(folder).glob("model*.safetensors")):
        data = file.read_bytes()
        (size,) = struct.unpack("<Q", data[:8])
        for name, entry in json.loads(data[8 : 8 + size]).items():
            if name != "__metadata__":
                begin, end = (8 + size + offset for offset in entry["data_offsets"])
                found[name] = [NAMES[entry["dtype"]], entry["shape"], zlib.crc32(data[begin:end])]
    return found


def config_of(folder):
    return json.loads((pathlib.Path(folder) / "config.json").read_text())


class Convert(SakerTest):
    def floats(self):
        """The bundled model, which is quantized, as floats."""
        out = self.folder / "floats"
        self.ok("convert", DEMO, out, "--dequantize", "--dtype", "bfloat16")
        return out

    def convert(self, source, *flags):
        out = self.folder / f"out{len(list(self.folder.iterdir()))}"
        return out, self.json("convert", source, out, *flags, "--json")

    def test_bits_and_configuration_are_those_of_mlx_lm(self):
        for golden in json.loads((GOLDEN / "convert.json").read_text()):
            with self.subTest(golden["source"], flags=golden["flags"]):
                out, report = self.convert(GOLDEN / golden["source"], *golden["flags"])
                self.assertEqual(tensors_of(out), golden["tensors"])
                self.assertEqual(config_of(out), golden["config"])
                self.assertEqual(report["tensors"], len(golden["tensors"]))
                index = json.loads((out / INDEX).read_text())
                self.assertEqual(sorted(index["weight_map"]), sorted(golden["tensors"]))
                self.assertEqual(index["metadata"], {"total_size": report["bytes"], "total_parameters": report["parameters"]})

    def test_what_was_written_runs(self):
        prompt = ("-p", "Once upon a time", "--max-tokens", "8", "--json")
        floats = self.floats()
        wide, _ = self.convert(floats, "--dtype", "float32")
        self.assertEqual(self.json("generate", wide, *prompt)["tokens"], self.json("generate", floats, *prompt)["tokens"])
        for flags in (("--bits", "8"), ("--mode", "mxfp8"), ("--mode", "nvfp4"), ("--recipe", "mixed_4_6")):
            out, report = self.convert(floats, *flags)
            self.assertGreater(report["quantized"], 0)
            self.assertLess(report["bits_per_weight"], 12)
            self.assertEqual(len(self.json("generate", out, *prompt)["tokens"]), 8)
            self.assertTrue(self.json("inspect", out, "--json")["runnable"])

    def test_tokenizer_and_template_are_copied(self):
        out, report = self.convert(DEMO, "--dequantize")
        self.assertIn("tokenizer.json", report["copied"])
        for name in report["copied"]:
            self.assertEqual((out / name).read_bytes(), (DEMO / name).read_bytes())

    def test_rules(self):
        source = GOLDEN / "qwen3_bf16"
        out, _ = self.convert(source, "--bits", "4", "--group-size", "32", "--rule", "*.mlp.*=float", "--rule",
                              "model.layers.[01].self_attn.v_proj=8:32", "--rule", "lm_head=4:32:mxfp4")
        plain, _ = self.convert(source, "--bits", "4", "--group-size", "32")
        tensors, expected = tensors_of(out), tensors_of(plain)
        section = config_of(out)["quantization"]
        eight = {"group_size": 32, "bits": 8, "mode": "affine"}
        self.assertEqual(section, {"group_size": 32, "bits": 4, "mode": "affine",
                                   "lm_head": {"group_size": 32, "bits": 4, "mode": "mxfp4"},
                                   **{f"model.layers.{i}.self_attn.v_proj": eight for i in (0, 1)}})
        self.assertEqual(config_of(out)["quantization_config"], section)
        self.assertFalse([name for name in tensors if ".mlp." in name and not name.endswith(".weight")])
        self.assertEqual(tensors["model.layers.0.self_attn.v_proj.weight"][1], [16, 8])
        self.assertEqual(tensors["lm_head.scales"][0], "uint8")
        self.assertEqual(tensors["model.layers.2.self_attn.v_proj.weight"], expected["model.layers.2.self_attn.v_proj.weight"])
        self.json("generate", out, "--tokens", "1,2,3", "--max-tokens", "3", "--json")

    def test_dequantizing_gives_the_same_answer(self):
        ids = ("--tokens", "3,14,15,9", "--max-tokens", "12", "--ignore-eos", "--json")
        out, report = self.convert(GOLDEN / "qwen3_q8", "--dequantize", "--dtype", "float32")
        self.assertGreater(report["dequantized"], 0)
        self.assertNotIn("quantization", config_of(out))
        self.assertEqual(self.json("generate", out, *ids)["tokens"], self.json("generate", GOLDEN / "qwen3_q8", *ids)["tokens"])

    def test_refusals(self):
        out = self.folder / "out"
        llama, quantized = GOLDEN / "llama", GOLDEN / "qwen3_q4"
        for flags, says in (
            (("--bits", "7"), "7 bits with mode affine"),
            (("--bits", "3", "--mode", "mxfp4"), "3 bits with mode mxfp4, expected 4"),
            (("--group-size", "16"), "group size 16 with mode affine"),
            (("--recipe", "mixed_3_6", "--mode", "nvfp4"), "expected affine"),
            (("--rule", "x"), "PATTERN=BITS"),
            (("--rule", "x=y"), "'y' is no number"),
            (("--rule", "*=4:64:affine:1"), "more than three fields"),
            (("--rule", "*nothing*=8"), "matches none"),
            (("--rule", "*.o_proj=4:64"), "no multiple of the group size 64"),
            (("--dequantize",), "not quantized"),
        ):
            self.fails("convert", llama, out, *flags, says=says)
        self.fails("convert", quantized, out, "--bits", "4", says="quantized already")
        self.fails("convert", self.folder / "none", out, says="does not exist")
        self.fails("convert", self.folder, out, says="holds no config.json")
        self.fails("convert", llama, out, "--mode", "int4", says="int4", code=2)
        self.fails("convert", llama, out, "--dequantize", "--bits", "4", says="--dequantize", code=2)
        for flag in ("--bits", "--group-size", "--draft-bits", "--draft-group-size"):
            self.fails("convert", llama, out, flag, "0", says=flag, code=2)
        self.fails("convert", llama, out, "more", says="expected SRC and DST", code=2)
        adapter = GOLDEN / "adapters" / "peft_llama"
        self.fails("convert", "--adapter", adapter, adapter, says="peft_llama")
        half = self.folder / "half"
        self.ok("convert", llama, half, "--dtype", "float16")
        self.fails("convert", half, out, "--adapter", adapter, "--fuse", "--adapter-scale", "1e12", says="with strength")
        shutil.rmtree(half)
        self.fails("convert", llama, says="SRC", code=2)
        self.fails("convert", llama, out, "--adapter", GOLDEN / "adapters/peft_llama", says="adapter", code=2)
        self.fails("convert", llama, out, "--adapter", llama, "--bits", "4", says="--bits", code=2)
        self.assertEqual(list(self.folder.iterdir()), [])
        self.fails("convert", llama, GOLDEN / "qwen3", says="exists")

    def with_quantization(self, name, golden, change):
        folder = self.folder / name
        shutil.copytree(GOLDEN / golden, folder)
        config = config_of(folder)
        config["quantization"] = change(config["quantization"])
        (folder / "config.json").write_text(json.dumps(config))
        return folder

    def test_codes_are_what_their_shapes_say(self):
        for golden in ("qwen3_q4", "qwen3_mixed", "qwen3_moe_q4", "gemma4_small_q4"):
            expected, report = self.convert(GOLDEN / golden, "--dequantize")
            for number, change in enumerate((
                lambda own: {key: value for key, value in own.items() if not isinstance(value, dict)},
                lambda own: {"model.language_model.elsewhere": {"bits": 3, "group_size": 32}, "group_size": 128, "bits": 8},
                lambda own: None,
            )):
                with self.subTest(golden, number=number):
                    out, again = self.convert(self.with_quantization(f"{golden}{number}", golden, change), "--dequantize")
                    self.assertEqual(tensors_of(out), tensors_of(expected))
                    self.assertEqual({**again, "output": report["output"]}, report)

    def test_broken_codes_are_refused(self):
        broken = self.folder / "broken"
        shutil.copytree(GOLDEN / "qwen3_q4", broken)
        weights = broken / "model.safetensors"
        whole = weights.read_bytes()
        name = b"model.layers.0.mlp.up_proj."
        weights.write_bytes(whole.replace(name + b"biases", name + b"biasez"))
        self.fails("convert", broken, self.folder / "out", "--dequantize", says="and no biases")
        weights.write_bytes(whole.replace(name + b"scales", name + b"scalez"))
        self.fails("generate", broken, "--tokens", "1", says="up_proj")

    def extended(self, golden, names):
        """The golden model with more tensors, in a file of their own."""
        folder = self.folder / f"more_{golden}"
        shutil.copytree(GOLDEN / golden, folder)
        header, size = {}, 64 * 64 * 4
        for number, name in enumerate(names):
            header[name] = {"dtype": "F32", "shape": [64, 64], "data_offsets": [number * size, (number + 1) * size]}
        text = json.dumps(header).encode()
        (folder / "model-more.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + bytes(size * len(names)))
        return folder

    def test_what_no_layer_reads_is_left_out(self):
        for golden, images, other in (
            ("llama", ["vision_tower.a.weight", "model.visual.blocks.0.attn.qkv.weight"], ["v_head.summary.weight"]),
            ("qwen3_5_published", ["model.visual.blocks.0.attn.qkv.weight", "model.visual.merger.weight"], ["model.language_model.layers.9.mlp.up_proj.weight"]),
            ("gemma3_nested", ["multi_modal_projector.mm_input_projection_weight", "vision_tower.x.weight"], []),
        ):
            for flags in ((), ("--bits", "4", "--group-size", "32")):
                with self.subTest(golden, flags=flags):
                    expected, _ = self.convert(GOLDEN / golden, *flags)
                    folder = self.extended(golden, images + other)
                    out = self.folder / "left"
                    done = run("convert", folder, out, *flags)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertEqual(tensors_of(out), tensors_of(expected))
                    for name in other:
                        self.assertIn(f"left out: 1 tensor that the model does not read: '{name}'".replace("model.language_model.layers", "language_model.model.layers"), done.stderr.decode())
                    self.assertEqual(b"left out" in done.stderr, bool(other))
                    for path in (folder, out, expected):
                        shutil.rmtree(path)
        self.assertFalse((self.folder / "out").exists())

    def test_read_only_target(self):
        if os.geteuid() == 0:
            self.skipTest("root writes anywhere")
        locked = self.folder / "locked"
        locked.mkdir(mode=0o500)
        self.fails("convert", GOLDEN / "llama", locked / "out", says="cannot be written")

    def test_a_disk_that_fills_up_leaves_nothing(self):
        work = self.folder / "work"
        work.mkdir()
        for options in ((), ("--dequantize",), ("--draft", DEMO)):
            self.fails("convert", DEMO, work / "out", *options, largest_file=100_000, says="File too large")
            self.assertEqual(list(work.iterdir()), [])

    def test_an_interrupt_leaves_nothing(self):
        work = self.folder / "work"
        draw = random.Random(1)
        out = work / "out"
        for command, longest in ((("convert", DEMO, out, "--dequantize", "--dtype", "float32"), 0.1),
                                 (("convert", GOLDEN / "llama", out, "--adapter", GOLDEN / "adapters" / "peft_llama", "--fuse"), 0.04)):
            self.ok(*command)
            whole = tensors_of(out)
            shutil.rmtree(work)
            for signal_number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL) * 6:
                self.interrupt(command, signal_number, draw.uniform(0, longest), whole)

    def interrupt(self, command, signal_number, after, whole):
        """What is there afterwards is whole, else nothing, as far as the program could take it back."""
        work = command[2].parent
        work.mkdir()
        process = subprocess.Popen([PROGRAM, *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        time.sleep(after)
        process.send_signal(signal_number)
        _, message = process.communicate()
        if command[2].exists():
            self.assertEqual(tensors_of(command[2]), whole)
        elif signal_number != signal.SIGKILL:
            self.assertEqual(list(work.iterdir()), [])
            self.assertTrue(process.returncode == -signal_number or b"interrupted" in message, message)
        shutil.rmtree(work)

    def test_ignored_signals_stay_ignored(self):
        out = self.folder / "out"
        for signal_number in (signal.SIGINT, signal.SIGHUP):
            process = subprocess.Popen([PROGRAM, "convert", DEMO, out, "--dequantize", "--dtype", "float32"],
                                       stdout=subprocess.DEVNULL,
                                       preexec_fn=lambda ignored=signal_number: signal.signal(ignored, signal.SIG_IGN))
            while process.poll() is None:
                process.send_signal(signal_number)
                time.sleep(0.002)
            self.assertEqual(process.returncode, 0)
            shutil.rmtree(out)


if __name__ == "__main__":
    unittest.main()
