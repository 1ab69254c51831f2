# SPDX-License-Identifier: Apache-2.0
"""Prompt-cache files: `saker cache`, --cache-in, --cache-out; files of mlx-lm and others from tests/golden/caches."""
import json
import os
import pathlib
import random
import signal
import struct
import subprocess
import time
import unittest

from saker import DEMO, PROGRAM, ROOT, SakerTest, run

GOLDEN = ROOT / "tests" / "golden"
CACHES = GOLDEN / "caches"
PREFIX = 7


def header_of(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8 : 8 + size]), data[8 + size :]


def write_file(path, header, data):
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)
    return path


def golden(model, name):
    """An integer tensor of a model's golden file."""
    header, data = header_of(GOLDEN / model / "golden.safetensors")
    begin, end = header[name]["data_offsets"]
    return list(struct.unpack(f"<{(end - begin) // 4}i", data[begin:end]))


def ids(tokens):
    return ",".join(map(str, tokens))


class CacheTest(SakerTest):
    def answer(self, model, tokens, count, *more):
        got = self.json("generate", model, "--tokens", ids(tokens), "--max-tokens", count, "--ignore-eos",
                        "--logprobs", 1, "--json", *more)
        return {key: got[key] for key in ("tokens", "logprobs")}


class Foreign(CacheTest):
    def test_mlx_lm_and_swift_files_continue(self):
        for model in ("llama", "deepseek_v3", "gemma3", "gemma4_small"):
            tokens = golden(model, "ids")
            greedy = golden(model, "greedy")
            for dialect in ("safetensors", "classic", "swift"):
                got = self.answer(GOLDEN / model, tokens[PREFIX : PREFIX + 1], len(greedy),
                                  "--cache-in", CACHES / f"{model}.{dialect}")
                self.assertEqual(got["tokens"], greedy, (model, dialect))

    def test_another_model_of_the_same_shape_only_warns(self):
        done = run("generate", GOLDEN / "llama", "--tokens", "5", "--max-tokens", "1", "--json",
                   "--cache-in", CACHES / "llama.safetensors")
        self.assertEqual(done.returncode, 0)
        self.assertIn("made with model 'golden'", done.stderr.decode())

    def test_files_that_do_not_fit_are_refused(self):
        def refused(model, name, says):
            self.fails("generate", model, "--tokens", "5", "--json", "--cache-in", CACHES / name, says=says)

        refused(DEMO, "llama.safetensors", "a cache of 2 layers, expected 6")
        refused(GOLDEN / "llama", "kinds.safetensors", "a cache of 13 layers, expected 2")
        refused(GOLDEN / "llama", "gemma3.safetensors", "expected")
        refused(GOLDEN / "llama_bias", "llama.safetensors", "keys have shape (1, 2, 7, 8), expected (1, 1, n, 10)")


class Own(CacheTest):
    def test_a_saved_prefix_gives_the_same_bits(self):
        for model in ("llama", "gemma3", "gemma4", "gemma4_small", "qwen3_bf16", "qwen3_5"):
            tokens = golden(model, "ids")
            cold = self.answer(GOLDEN / model, tokens, 8)
            for cut in (1, 6, 13, 19):
                file = self.folder / f"{model}.{cut}"
                self.json("cache", "save", GOLDEN / model, "--tokens", ids(tokens[:cut]), "-o", file, "--json")
                warm = self.answer(GOLDEN / model, tokens[cut:], 8, "--cache-in", file)
                self.assertEqual(warm, cold, (model, cut))

    def test_converted_files_give_the_same_bits(self):
        tokens = golden("gemma3", "ids")
        for dialect in ("safetensors", "classic", "swift"):
            file = CACHES / f"gemma3.{dialect}"
            converted = self.folder / dialect
            self.ok("cache", "convert", file, converted)
            direct = self.answer(GOLDEN / "gemma3", tokens[PREFIX:9], 6, "--cache-in", file)
            self.assertEqual(self.answer(GOLDEN / "gemma3", tokens[PREFIX:9], 6, "--cache-in", converted), direct)
            again = self.folder / "again"
            self.ok("cache", "convert", converted, again)
            self.assertEqual(again.read_bytes(), converted.read_bytes())

    def test_an_answer_goes_on_where_its_cache_ended(self):
        tokens = golden("llama", "ids")
        model = GOLDEN / "llama"
        cold = self.answer(model, tokens, 12, "--repetition-penalty", "1.3", "--temp", "0.8", "--seed", "5")
        first = self.answer(model, tokens, 5, "--repetition-penalty", "1.3", "--temp", "0.8", "--seed", "5",
                            "--cache-out", self.folder / "c")
        self.assertEqual(first["tokens"], cold["tokens"][:5])
        rest = self.answer(model, first["tokens"][-1:], 7, "--repetition-penalty", "1.3", "--temp", "0.8", "--seed", "5",
                           "--cache-in", self.folder / "c", "--cache-out", self.folder / "c")
        self.assertEqual(rest["tokens"], cold["tokens"][5:])
        info = self.json("cache", "info", self.folder / "c", "--json")
        self.assertEqual(info["rows"], len(tokens) + 11)
        own = json.loads(info["metadata"]["saker"])
        self.assertEqual(own["tokens"], tokens + cold["tokens"][:11])

    def test_text_continues_without_special_tokens(self):
        self.ok("cache", "save", DEMO, "-p", "Saker is", "-o", self.folder / "c")
        got = self.json("generate", DEMO, "-p", " a", "--max-tokens", "1", "--json", "--cache-in", self.folder / "c")
        self.assertEqual(got["prompt_tokens"], self.json("tokenize", DEMO, "-t", " a", "--no-special", "--json")["tokens"])

    def test_bounded_caches(self):
        tokens = golden("llama", "ids") * 3
        save = ("cache", "save", GOLDEN / "llama", "--tokens", ids(tokens[:41]), "-o", self.folder / "c")
        self.ok(*save, "--max-kv-size", 16)
        got = self.answer(GOLDEN / "llama", tokens[41:], 6, "--max-kv-size", 16, "--cache-in", self.folder / "c")
        self.assertEqual(got, self.answer(GOLDEN / "llama", tokens, 6, "--max-kv-size", 16))
        self.fails("generate", GOLDEN / "llama", "--tokens", "5", "--json", "--cache-in", self.folder / "c",
                   says="got a RotatingKVCache (4, 16, 41, 16), expected a KVCache")

    def test_quantized_caches(self):
        tokens = [(7 * i * i + 3 * i) % 2000 for i in range(150)]
        for bits in (8, 4):
            for bound in ((), ("--max-kv-size", 70)):
                use = ("--kv-bits", bits, *bound)
                cold = self.answer(DEMO, tokens, 6, *use)
                for cut in (1, 64, 149):
                    file = self.folder / "c"
                    self.ok("cache", "save", DEMO, "--tokens", ids(tokens[:cut]), "-o", file, *use)
                    warm = self.answer(DEMO, tokens[cut:], 6, "--cache-in", file, *use)
                    self.assertEqual(warm, cold, (bits, bound, cut))
                kinds = {layer["kind"] for layer in self.json("cache", "info", file, "--json")["layers"]}
                self.assertEqual(kinds, {"QuantizedRotatingKVCache" if bound else "QuantizedKVCache"})
                go_on = ("generate", DEMO, "--tokens", "5", "--json", *bound, "--cache-in", file)
                self.fails(*go_on, says=f"rows of {bits} bits in groups of 64, expected rows of 16 bits")
                self.fails(*go_on, "--kv-bits", 12 - bits, says=f"expected rows of {12 - bits} bits in groups of 64")
                again = self.folder / "again"
                self.ok("cache", "convert", file, again)
                self.assertEqual(self.answer(DEMO, tokens[149:], 6, "--cache-in", again, *use), cold)
        # Rows of 16 bits are quantized when they are read; mlx-lm's groups are 64 wide where the heads are.
        self.ok("cache", "save", DEMO, "--tokens", ids(tokens), "-o", self.folder / "full")
        self.answer(DEMO, [5], 4, "--cache-in", self.folder / "full", "--kv-bits", 8)
        self.fails("generate", GOLDEN / "llama", "--tokens", "5,6", "--json", "--kv-bits", 8, "--cache-out", self.folder / "o",
                   says="rows of 8 and 8 elements are not groups of codes")

    def test_another_models_file_is_refused(self):
        self.ok("cache", "save", GOLDEN / "qwen3", "--tokens", "1,2,3", "-o", self.folder / "c")
        self.fails("generate", GOLDEN / "llama", "--tokens", "5", "--json", "--cache-in", self.folder / "c",
                   says="holds rows of another model")
        copy = self.demo_copy()
        self.ok("cache", "save", DEMO, "--tokens", "1,2,3", "-o", self.folder / "d")
        self.ok("generate", copy, "--tokens", "5", "--json", "--cache-in", self.folder / "d")
        weights = copy / "model.safetensors"
        data = bytearray(weights.read_bytes())
        data[-64:] = bytes(64)
        weights.unlink()
        weights.write_bytes(data)
        self.fails("generate", copy, "--tokens", "5", "--json", "--cache-in", self.folder / "d",
                   says="holds rows of another model")


class BadFiles(CacheTest):
    def use(self, file, says):
        before = file.read_bytes()
        self.fails("generate", GOLDEN / "llama", "--tokens", "5", "--max-tokens", "2", "--json", "--cache-in", file,
                   "--cache-out", self.folder / "out", says=says)
        self.assertFalse((self.folder / "out").exists())
        self.assertEqual(file.read_bytes(), before)

    def test_files_that_lie(self):
        header, data = header_of(CACHES / "llama.safetensors")

        def change(says, edit, **tensors):
            copy = json.loads(json.dumps(header))
            edit(copy)
            changed = bytearray(data)
            for name, number in tensors.items():
                begin = header[name.replace("_", ".")[1:]]["data_offsets"][0]
                changed[begin : begin + 4] = struct.pack("<i", number)
            self.use(write_file(self.folder / "f", copy, bytes(changed)), says)

        same = lambda h: None
        change("300 rows are used of a buffer of 256", same, _0_2=300)
        change("-1 rows are used of a buffer of 256", same, _1_2=-1)
        change("layer 1 is at offset 6, layer 0 at 7", same, _1_2=6)
        change("expected one integer", lambda h: h["0.2"].update(dtype="F32"))
        change("rows of dtype I32", lambda h: h["0.0"].update(dtype="I32"))
        change("cache kind 'Dict' is not known", lambda h: h["__metadata__"].update({"1.0": "Dict"}))
        change("layer 1", lambda h: h["__metadata__"].update({"1.1": "ArraysCache"}))
        change("stands for 'float'", lambda h: h["__metadata__"].update({"2.1.1": "float"}))
        change("2.'1.0' for '0.2'", lambda h: h["__metadata__"].pop("2.1.1"))
        change("is no prompt cache", lambda h: h["__metadata__"].pop("2.0"))
        change("of which 1 are there", lambda h: h["__metadata__"].update({"2.1.0": "0.9"}))
        change("is beyond the 1 layers", lambda h: h["__metadata__"].pop("1.1"))

    def test_no_regular_file(self):
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        for path in (fifo, self.folder, self.folder / "missing", pathlib.Path("/dev/zero")):
            self.fails("cache", "info", path, says=str(path))
        self.fails("cache", "convert", CACHES / "llama.safetensors", fifo, says="is not a regular file")
        self.fails("generate", GOLDEN / "llama", "--tokens", "5", "--json", "--cache-out", self.folder / "no" / "f",
                   says="cannot be written")
        large = self.folder / "large"
        with large.open("wb") as file:
            file.truncate((8 << 30) + 1)
        self.fails("cache", "info", large, says="expected at most 8589934592")

    def test_records_take_no_cache(self):
        records = self.write("r.jsonl", '{"prompt": "hi"}\n')
        self.fails("generate", DEMO, "-f", records, "--cache-in", CACHES / "llama.safetensors", says="one prompt")


class PowerLoss(CacheTest):
    """kill -9 while a file is written; SAKER_KILLS sets how often."""

    def test_an_answer_that_fails_leaves_the_file(self):
        file = self.folder / "rows.safetensors"
        self.ok("generate", DEMO, "-p", "Once upon a time", "--max-tokens", "5", "--cache-out", file)
        rows = file.read_bytes()
        with open("/dev/full", "wb") as full:
            done = subprocess.run([PROGRAM, "generate", DEMO, "-p", "A fox", "--max-tokens", "500", "--ignore-eos", "--cache-out", file],
                                  stdout=full, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(file.read_bytes(), rows)

    def test_a_file_is_whole_or_absent(self):
        kills = int(os.environ.get("SAKER_KILLS", "40"))
        tokens = ids(i % 90 for i in range(400))
        source = self.folder / "source"
        self.ok("cache", "save", GOLDEN / "llama", "--tokens", tokens, "-o", source)
        begin = time.monotonic()
        self.ok("cache", "convert", source, self.folder / "timed")
        usual = time.monotonic() - begin
        draw = random.Random(1)
        target = self.folder / "target"
        seen = set()
        for _ in range(kills):
            before = target.read_bytes() if target.exists() else None
            process = subprocess.Popen([PROGRAM, "cache", "convert", source, target], stderr=subprocess.DEVNULL)
            time.sleep(draw.uniform(0, usual))
            process.send_signal(signal.SIGKILL)
            process.wait()
            if target.exists():
                self.assertEqual(target.read_bytes(), (self.folder / "timed").read_bytes())
            else:
                self.assertIsNone(before)
            seen.add(target.exists())
            if target.exists() and draw.random() < 0.5:
                target.unlink()
        self.ok("cache", "convert", source, target)  # What was left behind is in nobody's way.
        self.assertEqual(target.read_bytes(), (self.folder / "timed").read_bytes())


if __name__ == "__main__":
    unittest.main()
