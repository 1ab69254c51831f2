# SPDX-License-Identifier: Apache-2.0
"""A GGUF file as a model: every command gives what the folder that convert writes gives."""
import itertools
import json
import random
import shutil
import struct
import unittest

from saker import ROOT, SakerTest

PIECES = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "\u2581", "a", "b", "ab", "\u2581a", "\u2581ab", "c", "\u2581c"]
KINDS = [2, 3, 3] + [6] * 256 + [1] * 8
TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}"
ADAPTER = ROOT / "tests/golden/adapters/mlx_lora"
WIDTH, INNER, HEADS, KV_HEADS = 64, 96, 4, 2


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def value_of(value):
    if isinstance(value, list):
        kind, _ = value_of(value[0])
        return 9, struct.pack("<IQ", kind, len(value)) + b"".join(value_of(item)[1] for item in value)
    if isinstance(value, float):
        return 6, struct.pack("<f", value)
    return (8, text(value)) if isinstance(value, str) else (4, struct.pack("<I", value))


def gguf(keys, tensors):
    """Version 3; tensors by name, with shapes as rows of columns: numbers of float32, or a type and its bytes."""
    out = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    for key, value in keys.items():
        kind, data = value_of(value)
        out += text(key) + struct.pack("<I", kind) + data
    body = b""
    for name, (shape, values) in tensors.items():
        out += text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *reversed(shape)) + struct.pack("<IQ", values[0] if isinstance(values, tuple) else 0, len(body))
        body += values[1] if isinstance(values, tuple) else struct.pack(f"<{len(values)}f", *values)
        body += bytes(-len(body) % 32)
    return out + bytes(-len(out) % 32) + body


def contents():
    rng = random.Random(5)
    head = WIDTH // HEADS
    shapes = {"token_embd.weight": (len(PIECES), WIDTH), "output.weight": (len(PIECES), WIDTH), "output_norm.weight": (WIDTH,),
              "blk.0.attn_norm.weight": (WIDTH,), "blk.0.ffn_norm.weight": (WIDTH,), "blk.0.attn_q.weight": (WIDTH, WIDTH),
              "blk.0.attn_k.weight": (KV_HEADS * head, WIDTH), "blk.0.attn_v.weight": (KV_HEADS * head, WIDTH),
              "blk.0.attn_output.weight": (WIDTH, WIDTH), "blk.0.ffn_gate.weight": (INNER, WIDTH), "blk.0.ffn_up.weight": (INNER, WIDTH),
              "blk.0.ffn_down.weight": (WIDTH, INNER)}
    tensors = {}
    for name, shape in shapes.items():
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        tensors[name] = (shape, [1.0] * count if len(shape) == 1 else [rng.gauss(0, 0.3) for _ in range(count)])
    keys = {"general.architecture": "llama", "llama.block_count": 1, "llama.embedding_length": WIDTH, "llama.feed_forward_length": INNER,
            "llama.context_length": 256, "llama.attention.head_count": HEADS, "llama.attention.head_count_kv": KV_HEADS,
            "llama.attention.layer_norm_rms_epsilon": 1e-6, "llama.rope.freq_base": 10000.0, "llama.vocab_size": len(PIECES),
            "tokenizer.ggml.model": "llama", "tokenizer.ggml.tokens": PIECES, "tokenizer.ggml.token_type": KINDS,
            "tokenizer.ggml.scores": [-float(i) for i in range(len(PIECES))], "tokenizer.ggml.bos_token_id": 1,
            "tokenizer.ggml.eos_token_id": 2, "tokenizer.chat_template": TEMPLATE}
    return keys, tensors


def model():
    return gguf(*contents())


def model_of_blocks():
    """Matrices of Q8_0, IQ4_NL, Q4_0 and MXFP4 by turns: random codes after scales."""
    rng = random.Random(6)
    keys, tensors = contents()
    blocks = itertools.cycle(((8, b"\x00\x18", 32), (20, b"\x00\x18", 16), (2, b"\x00\x28", 16), (39, b"\x7c", 16)))
    for name, (shape, _) in tensors.items():
        if len(shape) == 2:
            kind, scale, size = next(blocks)
            tensors[name] = (shape, (kind, b"".join(scale + rng.randbytes(size) for _ in range(shape[0] * shape[1] // 32))))
    return gguf(keys, tensors)


def split(count):
    """The same model in so many files, as llama.cpp's tools split it: the first has the keys."""
    keys, tensors = contents()
    names, each = list(tensors), -(-len(tensors) // count)
    for number in range(count):
        own = {name: tensors[name] for name in names[number * each : (number + 1) * each]}
        place = {"split.no": number, "split.count": count, "split.tensors.count": len(tensors)}
        yield f"model-{number + 1:05}-of-{count:05}.gguf", gguf({**(keys if number == 0 else {}), **place}, own)


class Gguf(SakerTest):
    def setUp(self):
        super().setUp()
        self.file = self.write("model.gguf", model())
        self.converted = self.folder / "converted"
        self.ok("convert", self.file, self.converted)
        self.temporary = self.folder / "temporary"
        self.temporary.mkdir()

    def same(self, command, *flags, drop=()):
        answers = []
        for source in (self.file, self.converted):
            answer = self.json(command, source, *flags, "--json", env={"TMPDIR": str(self.temporary)})
            answers.append({key: value for key, value in answer.items() if key not in drop})
        self.assertEqual(*answers)
        return answers[0]

    def test_answers_are_those_of_the_folder(self):
        answer = self.same("generate", "-p", "ab c", "--max-tokens", "6", "--ignore-eos", "--logprobs", "2", drop=("stats",))
        self.assertEqual(len(answer["tokens"]), 6)
        self.same("generate", "--chat", "-p", "a b", "--max-tokens", "4", "--ignore-eos", drop=("stats",))
        lines = self.write("texts.jsonl", '{"text":"ab c ab c"}\n{"messages":[{"role":"user","content":"ab"}]}')
        self.same("perplexity", "-f", lines, "--context", "8", drop=("tokens_per_second", "peak_memory_bytes"))
        self.same("score", "-f", self.write("one.jsonl", '{"text":"ab c ab c"}'), drop=("stats",))
        self.same("tokenize", "-t", "ab c")
        messages = self.write("messages.json", '[{"role":"user","content":"ab"}]')
        rendered = {self.ok("template", source, "--messages", messages) for source in (self.file, self.converted)}
        self.assertEqual(rendered, {b"user: ab\nassistant: "})
        self.assertEqual(list(self.temporary.iterdir()), [])

    def test_prompt_caches_know_the_file(self):
        cache, more = self.folder / "cache.safetensors", ("--tokens", "7,8", "--max-tokens", "3", "--ignore-eos", "--json")
        self.json("cache", "save", self.file, "--tokens", "1,5,6", "-o", cache, "--json")
        whole = self.json("generate", self.file, "--tokens", "1,5,6,7,8", *more[2:])
        self.assertEqual(self.json("generate", self.file, *more, "--cache-in", cache)["tokens"], whole["tokens"])
        changed = bytearray(self.file.read_bytes())
        changed[-4000:] = bytes(4000)
        self.file.write_bytes(changed)
        self.fails("generate", self.file, *more, "--cache-in", cache, says="holds rows of another model")

    def test_inspect(self):
        found, folder = (self.json("inspect", source, "--json") for source in (self.file, self.converted))
        self.assertTrue(found["runnable"])
        for key in ("kind", "model", "parameters", "runnable"):
            self.assertEqual(found[key], folder[key], key)

    def test_blocks(self):
        self.file = self.write("blocks.gguf", model_of_blocks())
        self.converted = self.folder / "affine"
        self.ok("convert", self.file, self.converted)
        answer = self.same("generate", "-p", "ab c", "--max-tokens", "6", "--ignore-eos", "--logprobs", "2", drop=("stats",))
        self.assertEqual(len(answer["tokens"]), 6)
        self.same("score", "-f", self.write("one.jsonl", '{"text":"ab c ab c"}'), drop=("stats",))
        found = self.json("inspect", self.file, "--json")
        self.assertEqual(found["model"]["quantization"], "IQ4_NL (2), MXFP4 (2), Q4_0 (2), Q8_0 (3)")
        self.assertEqual(found["warnings"], [])
        self.assertEqual(sorted(found["dtypes"]), ["F32", "IQ4_NL", "MXFP4", "Q4_0", "Q8_0"])

    def test_parts_are_one_model(self):
        parts = [self.write(name, data) for name, data in split(3)]
        flags = ("--tokens", "1,5,6", "--max-tokens", "6", "--ignore-eos", "--json")
        whole = self.json("generate", self.file, *flags)["tokens"]
        for part in parts:
            self.assertEqual(self.json("generate", part, *flags)["tokens"], whole)
        found, one = (self.json("inspect", path, "--json") for path in (parts[1], self.file))
        self.assertEqual(found["file_bytes"], sum(part.stat().st_size for part in parts))
        self.assertIn(b"in 3 files", self.ok("inspect", parts[1]))
        self.assertEqual((found["parameters"], found["model"]), (one["parameters"], one["model"]))
        self.ok("convert", parts[2], self.folder / "joined")
        for name in ("model.safetensors", "config.json", "tokenizer.json"):
            self.assertEqual((self.folder / "joined" / name).read_bytes(), (self.converted / name).read_bytes(), name)
        cache = self.folder / "cache.safetensors"
        self.json("cache", "save", parts[0], "--tokens", "1,5", "-o", cache, "--json")
        self.json("generate", parts[1], "--tokens", "6", "--max-tokens", "1", "--cache-in", cache, "--json")
        parts[1].rename(self.folder / "elsewhere.gguf")
        self.fails("generate", parts[0], *flags, says="parts of the model are missing: model-00002-of-00003.gguf")
        self.fails("generate", self.folder / "elsewhere.gguf", *flags, says="expected the name NAME-00002-of-00003.gguf")
        shutil.copy(parts[0], parts[1])
        self.fails("generate", parts[2], *flags, says="its keys say part 1 of 3, expected part 2 of 3")
        self.fails("inspect", parts[1], says="its keys say part 1 of 3, expected the name")

    def test_drafts(self):
        flags = ("--tokens", "1,5,6", "--max-tokens", "8", "--ignore-eos", "--json")
        whole = self.json("generate", self.file, *flags)
        for target, draft in ((self.file, self.file), (self.converted, self.file), (self.file, self.converted)):
            drafted = self.json("generate", target, *flags, "--draft", draft, "--draft-depth", "3")
            self.assertEqual(drafted["tokens"], whole["tokens"])
            self.assertEqual(drafted["stats"]["drafter"], "draft")
            self.assertGreater(drafted["stats"]["accepted"], 3)
        self.ok("convert", self.file, self.folder / "pair", "--draft", self.file, "--draft-bits", "8", "--draft-group-size", "32")
        inside = json.loads((self.folder / "pair/draft/config.json").read_text())
        self.assertEqual(inside["quantization"]["bits"], 8)
        self.assertEqual(self.json("generate", self.folder / "pair", *flags, "--draft-depth", "3")["tokens"], whole["tokens"])
        self.write("Modelfile", "FROM model.gguf\nDRAFT model.gguf\n")
        self.ok("convert", "-f", self.folder / "Modelfile", self.folder / "same")
        self.assertTrue((self.folder / "same/draft/model.safetensors").exists())

    def test_refusals(self):
        self.fails("convert", self.file, self.folder / "out", "--adapter", ADAPTER, "--fuse", says="model.gguf': is in another program's format")
        self.fails("generate", self.write("cut.gguf", model()[:200]), "-p", "a", says="cut.gguf")
        self.fails("generate", self.write("other.bin", b"GGML"), "-p", "a", says="expected a model folder, a file in GGUF (.gguf)")
        self.fails("generate", self.write("wrong.gguf", b"{}"), "-p", "a", says="wrong.gguf")


if __name__ == "__main__":
    unittest.main()
