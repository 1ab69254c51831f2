# SPDX-License-Identifier: Apache-2.0
"""Whatever comes in, a failure is one clear line and exit code 1."""
import json
import struct
import unittest

from saker import DEMO, SakerTest, run


class Prompts(SakerTest):
    def test_empty(self):
        self.fails("generate", DEMO, "-p", "", says="empty")
        self.fails("run", DEMO, "-p", "", says="empty")
        self.fails("run", DEMO, says="empty")
        self.fails("run", "/no/such/model", says="/no/such/model")

    def test_not_utf8(self):
        self.fails("generate", DEMO, "-f", self.write("p.txt", b"abc\xff\xfe"), says="UTF-8")
        self.fails("run", DEMO, stdin=b"\xc3\x28\n", says="UTF-8")
        self.fails("tokenize", DEMO, "-t", b"\xed\xa0\x80".decode("utf-8", "surrogateescape"), says="UTF-8")

    def test_too_long(self):
        context = json.loads((DEMO / "config.json").read_text())["max_position_embeddings"]
        ids = ",".join(["5"] * (context + 1))
        message = self.fails("generate", DEMO, "--tokens", ids, says=str(context))
        self.assertIn(str(context + 1), message)
        self.fails("score", DEMO, "--tokens", ids, says=str(context))

    def test_ids_out_of_range(self):
        vocabulary = json.loads((DEMO / "config.json").read_text())["vocab_size"]
        self.fails("generate", DEMO, "--tokens", str(vocabulary), says=str(vocabulary))
        self.fails("generate", DEMO, "--tokens", "1,-5", says="-5")
        self.fails("score", DEMO, "--tokens", f"1,{vocabulary}", says=str(vocabulary))
        self.fails("detokenize", DEMO, "--tokens", "99999999", says="99999999")

    def test_token_lists(self):
        for text in ("1,,2", "1,", "a", "1 2", "99999999999999999999"):
            self.fails("generate", DEMO, "--tokens", text, says="--tokens")

    def test_options_out_of_range(self):
        for flag, value in [("--temp", "-1"), ("--temp", "nan"), ("--top-p", "2"), ("--min-p", "-0.1"), ("--top-k", "-1"),
                            ("--repetition-penalty", "-1"), ("--max-tokens", "0"), ("--max-tokens", "-2"), ("--logprobs", "-1"), ("--xtc-probability", "2"),
                            ("--typical-p", "2"), ("--top-n-sigma", "-1"), ("--dry-base", "0.5"), ("--min-tokens", "-1")]:
            with self.subTest(flag):
                self.fails("generate", DEMO, "-p", "hi", flag, value, says=f"error: {flag}: got", code=2)
        # What only the model can say.
        for flag, value in [("--logprobs", "100000000"), ("--logit-bias", '{"99999999": 1}')]:
            with self.subTest(flag):
                self.fails("generate", DEMO, "-p", "hi", flag, value, says="")

    def test_whole_numbers(self):
        for flag, value in [("--seed", "99999999999999999999999"), ("--seed", "0x10"), ("--max-tokens", "5x"), ("--top-k", ""),
                            ("--draft-depth", "1.5")]:
            with self.subTest(f"{flag} {value}"):
                self.fails("generate", DEMO, "-p", "hi", flag, value, says=f"{flag}: got '{value}'", code=2)
        self.fails("generate", DEMO, "-p", "hi", "--top-k", "99999999999", says="--top-k: 99999999999 is out of range", code=2)
        self.assertEqual(self.json("generate", DEMO, "-p", "hi", "--ignore-eos", "--max-tokens", "010", "--json")["stats"]["generation_tokens"], 10)

    def test_empty_names(self):
        for command in (("generate", DEMO, "-p", "hi", "--cache-out", ""), ("cache", "save", DEMO, "-p", "hi", "-o", ""),
                        ("tokenize", DEMO, "-f", ""), ("convert", DEMO, ""), ("score", DEMO, "--text", "hi", "--trace", "")):
            with self.subTest(command):
                self.fails(*command, says="the name is empty", code=2)

    def test_commands(self):
        self.fails("generat", "-p", "hi", says="'generat' is no command", code=2)

    def test_missing_files(self):
        self.fails("generate", DEMO, "-f", "/nonexistent/p.txt", says="/nonexistent/p.txt")
        self.fails("generate", DEMO, "-f", "/nonexistent/p.jsonl", says="/nonexistent/p.jsonl")
        self.fails("generate", DEMO, "-f", self.folder, says="")


class Models(SakerTest):
    def test_missing(self):
        self.fails("generate", "/nonexistent/model", "-p", "hi", says="/nonexistent/model")
        self.fails("generate", self.folder, "-p", "hi", says="config.json")

    def test_weights_in_files_that_are_not_read(self):
        model = self.demo_copy()
        (model / "model.safetensors").rename(model / "pytorch_model.bin")
        self.fails("generate", model, "-p", "hi", says="save_pretrained writes safetensors")
        (model / "pytorch_model.bin").rename(model / "model.gguf")
        self.fails("generate", model, "-p", "hi", says="give this file itself")

    def test_unknown_architecture(self):
        message = self.fails("generate", self.demo_copy(model_type="mamba9"), "-p", "hi", says="mamba9")
        self.assertIn("qwen3", message)

    def test_configuration_fields(self):
        for field, value in [("hidden_size", -1), ("hidden_size", 1 << 62), ("num_hidden_layers", 10**9),
                             ("num_attention_heads", 0), ("vocab_size", "many"), ("num_key_value_heads", 3),
                             ("rms_norm_eps", "small"), ("hidden_size", None), ("rope_theta", -1.0),
                             ("rope_scaling", {"rope_type": "spiral", "factor": 2.0}), ("head_dim", 7),
                             ("hidden_act", "swish9"), ("max_position_embeddings", 0)]:
            with self.subTest(f"{field}={value}"):
                self.setUp()
                named = "rope_type" if field == "rope_scaling" else field
                self.fails("generate", self.demo_copy(**{field: value}), "-p", "hi", says=named)

    def test_not_json(self):
        model = self.demo_copy()
        (model / "config.json").write_text('{"model_type": "qwen3", "hidden_size": NaN}')
        self.fails("generate", model, "-p", "hi", says="'hidden_size' is NaN, expected an integer")
        (model / "config.json").write_bytes(b"\x00\xff")
        self.fails("generate", model, "-p", "hi", says="config.json")

    def test_truncated_weights(self):
        model = self.demo_copy()
        weights = (model / "model.safetensors").read_bytes()
        for size in (0, 4, 8, 100, len(weights) // 2, len(weights) - 1):
            (model / "model.safetensors").write_bytes(weights[:size])
            self.fails("generate", model, "-p", "hi", says="model.safetensors")

    def test_lying_header(self):
        model = self.demo_copy()
        header = json.dumps({"a": {"dtype": "F32", "shape": [1 << 60], "data_offsets": [0, 4]}}).encode()
        (model / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + b"\0" * 4)
        self.fails("generate", model, "-p", "hi", says="model.safetensors")

    def test_missing_weights(self):
        model = self.demo_copy()
        (model / "model.safetensors").unlink()
        self.fails("generate", model, "-p", "hi", says="safetensors")

    def test_missing_shard(self):
        model = self.demo_copy()
        (model / "model.safetensors").rename(model / "model-00001-of-00002.safetensors")
        (model / "model.safetensors.index.json").write_text(
            json.dumps({"weight_map": {"x": "model-00002-of-00002.safetensors"}})
        )
        self.fails("generate", model, "-p", "hi", says="model-00002-of-00002.safetensors")

    def test_broken_tokenizer(self):
        model = self.demo_copy()
        (model / "tokenizer.json").write_text("{}")
        self.fails("generate", model, "-p", "hi", says="tokenizer.json")
        (model / "tokenizer.json").unlink()
        self.fails("tokenize", model, "-t", "hi", says="tokenizer.json")

    def test_score_of_tokens_needs_no_texts(self):
        model = self.demo_copy()
        expected = self.json("score", model, "--tokens", "5,6,7", "--json")
        for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json", "chat_template.jinja"):
            (model / name).write_text("{")
        done = run("score", model, "--tokens", "5,6,7", "--json")
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertEqual(json.loads(done.stdout), expected)
        (model / "generation_config.json").unlink()
        self.fails("run", model, "-p", "hi", says="tokenizer")

    def test_a_broken_generation_config_is_a_warning(self):
        model = self.demo_copy()
        (model / "generation_config.json").unlink(missing_ok=True)
        expected = self.ok("generate", model, "-p", "hello", "--chat")
        for text in ("", "[]", '{"temperature": 0.15,}', '{"do_sample": true. "top_k": 1}', '{"do_sample": "yes"}',
                     '{"eos_token_id": "x"}', '{"top_p": 7}', '{"temperature": {}}', '{"suppress_tokens": {}}'):
            with self.subTest(text):
                (model / "generation_config.json").write_text(text)
                done = run("generate", model, "-p", "hello", "--chat")
                self.assertEqual(done.returncode, 0, done.stderr.decode())
                self.assertEqual(done.stdout, expected)
                self.assertIn("generation_config.json", done.stderr.decode())
                self.assertEqual(json.loads(self.ok("inspect", model, "--json"))["runnable"], True)


class Memory(SakerTest):
    def test_any_limit_is_a_clear_line(self):
        """From what the program needs to begin up to what it needs to answer, and beyond."""
        mega = 1 << 20
        starts = [size for size in range(40, 401, 20) if run("--version", addresses=size * mega).returncode == 0]
        if not starts:
            self.skipTest("sanitizers reserve addresses")
        codes = []
        for size in range(starts[0], 1000, 20):
            with self.subTest(size):
                done = run("generate", DEMO, "-p", "Once", "--max-tokens", "8", addresses=size * mega)
                codes.append(done.returncode)
                self.assertIn(done.returncode, (0, 1))
                message = done.stderr.decode()
                self.assertEqual(message.startswith("error: ") and len(message.splitlines()) == 1, done.returncode == 1, message)
                self.assertNotIn("internal", message)
        self.assertEqual((codes[0], codes[-1]), (1, 0))


class Templates(SakerTest):
    def render(self, source):
        """A model whose chat template is `source`, and messages."""
        model = self.demo_copy()
        (model / "chat_template.jinja").write_text(source)
        return model, self.write("m.json", '[{"role": "user", "content": "hi"}]')

    def test_raises(self):
        model, messages = self.render("{{ raise_exception('roles must alternate') }}")
        self.fails("template", model, "--messages", messages, says="roles must alternate")
        self.fails("generate", model, "-p", "hi", "--chat", says="roles must alternate")

    def test_loops(self):
        for source in ("{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}",
                       "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "{{ 'x' * 999999999 }}"):
            self.setUp()
            model, messages = self.render(source)
            self.fails("template", model, "--messages", messages, says="")

    def test_syntax(self):
        model, messages = self.render("{% if %}")
        self.fails("template", model, "--messages", messages, says="")

    def test_messages(self):
        for content in ("{", "5", '"text"', "[5]"):
            self.fails("template", DEMO, "--messages", self.write("m.json", content), says="")


if __name__ == "__main__":
    unittest.main()
