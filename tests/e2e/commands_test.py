# SPDX-License-Identifier: Apache-2.0
"""Every command once, with the JSON that scripts depend on."""
import csv
import fcntl
import json
import math
import os
import unittest
import xml.etree.ElementTree

from saker import DEMO, ROOT, SakerTest, run

COMMANDS = ["run", "generate", "score", "bench", "tokenize", "detokenize", "template", "inspect", "cache"]


class Help(SakerTest):
    def test_help_names_every_command(self):
        text = self.ok("--help").decode()
        for command in COMMANDS:
            self.assertIn(command, text)
            self.assertIn("Usage", self.ok(command, "--help").decode())

    def test_help_on_what_is_no_command(self):
        for typed in (("help", "runn"), ("runn", "--help"), ("cache", "inform", "--help")):
            wrong = typed[0] if typed[0] == "runn" else typed[1]
            self.fails(*typed, says=f"error: '{wrong}' is no command", code=2)
        self.assertIn("Usage: saker run", self.ok("help", "run").decode())

    def test_version(self):
        self.assertRegex(self.ok("--version").decode(), r"^saker \d+\.\d+\.\d+\n$")

    def test_wrong_usage(self):
        bare = run()
        self.assertEqual(bare.returncode, 2)
        self.assertIn(b"Usage: saker COMMAND", bare.stderr)
        self.fails("generate", says="", code=2)
        self.fails("generate", "-p", "a", "--tokens", "1", says="", code=2)
        self.fails("generate", "-p", "a", "--temp", "warm", says="--temp", code=2)
        self.fails("generate", "-p", "a", "--threads", "0", says="--threads", code=2)
        self.fails("dance", says="", code=2)
        for flag, wrong in (("--kv-bits", "3"), ("--max-kv-size", "-1"), ("--draft-depth", "100"), ("--logprobs", "-2")):
            self.fails("generate", "-p", "a", flag, wrong, says=f"error: {flag}: got {wrong}, expected", code=2)
        self.fails("run", "-p", "a", "--verbose", says="/set verbose", code=2)


class Forms(SakerTest):
    """How people of other programs type."""

    def test_a_text_behind_the_model(self):
        whole = self.ok("generate", DEMO, "-p", "Hello there", "--max-tokens", "4")
        for form in ([DEMO, "Hello there", "-n", "4"], ["-m", DEMO, "--prompt", "Hello there", "--num-predict", "4"],
                     ["Hello there", "--max_tokens=4", "--model", DEMO]):
            self.assertEqual(self.ok("generate", *form), whole)
        self.assertEqual(self.ok("run", DEMO, "Hello", "-n", "4"), self.ok("run", DEMO, "-p", "Hello", "--max-tokens", "4"))
        ids = self.ok("tokenize", DEMO, "Hello there").decode().strip()
        self.assertEqual(self.ok("detokenize", DEMO, ids), b"Hello there\n")

    def test_other_names_of_commands(self):
        self.assertEqual(self.ok("show", DEMO), self.ok("inspect", DEMO))
        self.assertEqual(self.ok("help", "run"), self.ok("run", "--help"))
        self.assertEqual(self.ok("version"), self.ok("--version"))
        self.assertEqual(self.ok("ls", env={"HF_HUB_CACHE": str(self.folder)}), self.ok("list", env={"HF_HUB_CACHE": str(self.folder)}))

    def test_flags_of_mlx_lm(self):
        one, two = self.folder / "one", self.folder / "two"
        source = ROOT / "tests" / "golden" / "llama"
        self.ok("convert", "--hf-path", source, "--mlx-path", one, "-q", "--q-group-size", "32")
        self.ok("convert", source, two, "--bits", "4", "--group-size", "32")
        self.assertEqual((one / "model.safetensors").read_bytes(), (two / "model.safetensors").read_bytes())

    def test_the_nearest_name(self):
        self.fails("runn", says="the nearest is run", code=2)
        self.fails("run", DEMO, "--tmep", "1", says="the nearest is --temp", code=2)

    def test_a_forgotten_model_is_said(self):
        self.assertIn(b"no MODEL is given", run("tokenize", "-t", "hi").stderr)
        self.assertEqual(run("tokenize", DEMO, "-t", "hi").stderr, b"")
        self.assertEqual(run("tokenize", "-t", "hi", "--log-level", "error").stderr, b"")


class Defaults(SakerTest):
    def test_of_the_file_and_the_environment(self):
        (self.folder / "saker").mkdir()
        config = self.write("saker/config.toml", "")
        home = {"SAKER_CONFIG": str(config)}
        ask = ["generate", "-p", "Hello", "--json"]

        def count(*more, **env):
            return self.json(*ask, *more, env={**home, **env})["stats"]["generation_tokens"]

        config.write_text(f'model = "{DEMO}"\nmax-tokens = 3\nignore_eos = true\n[run]\nmax-tokens = 9\n')
        self.assertEqual(count(), 3)
        self.assertEqual(count(SAKER_MAX_TOKENS="4"), 4)
        self.assertEqual(count("-n", "5", SAKER_MAX_TOKENS="4"), 5)
        self.assertEqual(run(*ask, env=home).stderr, b"")
        self.fails(*ask, env={"SAKER_TEMP": "hot"}, says="--temp: got 'hot', expected a number (SAKER_TEMP)", code=2)
        config.write_text("tmep = 1\n")
        self.fails(*ask, env={"SAKER_CONFIG": str(config)}, says="'tmep' is no option that has a default; the nearest is temp")
        config.write_text("temp = \n")
        self.fails(*ask, env={"SAKER_CONFIG": str(config)}, says="config.toml':1:")
        for path in (config.parent, config.parent / "absent.toml"):
            self.fails(*ask, env={"SAKER_CONFIG": str(path)}, says=f"SAKER_CONFIG: '{path}' is no file")
        with config.open("wb") as file:
            file.truncate(1 << 30)  # Without a byte on the disk.
        self.fails(*ask, env={"SAKER_CONFIG": str(config)}, says="larger than the 1048576 bytes")


class Bench(SakerTest):
    SHORT = ["-p", "8", "-n", "2", "-r", "1"]

    def test_formats(self):
        rows = list(csv.DictReader(self.ok("bench", DEMO, DEMO, *self.SHORT, "--format", "csv").decode().splitlines()))
        self.assertEqual([row["path"] for row in rows], [str(DEMO)] * 2)
        self.assertTrue(all(float(row["prompt_tps_median"]) > 0 for row in rows))
        table = self.ok("bench", DEMO, *self.SHORT, "--format", "md").decode().splitlines()
        self.assertEqual(len(table), 3)
        self.assertTrue(all(line.count("|") == table[0].count("|") for line in table))
        objects = [json.loads(line) for line in self.ok("bench", DEMO, DEMO, *self.SHORT, "--json").splitlines()]
        self.assertEqual([got["model"]["path"] for got in objects], [str(DEMO)] * 2)

    def test_plot(self):
        picture = self.folder / "bench.svg"
        self.ok("bench", DEMO, *self.SHORT, "--plot", picture)
        self.assertEqual(len(xml.etree.ElementTree.parse(picture).findall(".//{*}rect")), 3)


class Tokens(SakerTest):
    def test_round_trip(self):
        text = "Hello, what is Saker? \u00e9\u4e16\U0001f600\n"
        got = self.json("tokenize", DEMO, "-t", text, "--json")
        self.assertEqual(sorted(got), ["pieces", "tokens"])
        self.assertEqual(len(got["pieces"]), len(got["tokens"]))
        ids = ",".join(map(str, got["tokens"]))
        self.assertEqual(self.json("detokenize", DEMO, "--tokens", ids, "--json"), {"text": text})
        self.assertEqual(self.ok("detokenize", DEMO, "--tokens", ids).decode(), text + "\n")

    def test_needs_only_the_tokenizer(self):
        only = self.folder / "tokenizer"
        only.mkdir()
        (only / "tokenizer.json").write_bytes((DEMO / "tokenizer.json").read_bytes())
        self.assertTrue(self.json("tokenize", only, "-t", "hi", "--json")["tokens"])

    def test_file_is_taken_byte_for_byte(self):
        path = self.write("text", b"a\r\n b\n")
        got = self.json("tokenize", DEMO, "-f", path, "--json")["tokens"]
        ids = ",".join(map(str, got))
        self.assertEqual(self.json("detokenize", DEMO, "--tokens", ids, "--json")["text"], "a\r\n b\n")

    def test_template(self):
        messages = self.write("m.json", json.dumps([{"role": "user", "content": "hi"}]))
        text = self.ok("template", DEMO, "--messages", messages).decode()
        self.assertIn("<|im_start|>user\nhi<|im_end|>", text)
        self.assertTrue(text.endswith("<|im_start|>assistant\n"))
        bare = self.ok("template", DEMO, "--messages", messages, "--no-generation-prompt").decode()
        self.assertFalse(bare.endswith("assistant\n"))


class Inspect(SakerTest):
    def test_demo_runs(self):
        got = self.json("inspect", DEMO, "--json")
        self.assertTrue(got["runnable"])
        self.assertEqual(got["model"]["model_type"], "qwen3")
        self.assertIn("qwen3", self.ok("inspect", DEMO).decode())

    def test_unknown_architecture_is_described(self):
        got = self.json("inspect", self.demo_copy(model_type="mamba9"), "--json")
        self.assertFalse(got["runnable"])
        self.assertIn("mamba9", got["reason"])

    def test_yes_is_only_for_what_loads(self):
        model = self.demo_copy()
        weights = model / "model.safetensors"
        data = weights.read_bytes()
        size = int.from_bytes(data[:8], "little")
        header = json.loads(data[8:8 + size])
        for name in [name for name in header if "layers.0." in name or "norm" in name][:6]:
            with self.subTest(name):
                renamed = {"left.out" if key == name else key: value for key, value in header.items()}
                packed = json.dumps(renamed).encode()
                weights.write_bytes(len(packed).to_bytes(8, "little") + packed + data[8 + size:])
                got = self.json("inspect", model, "--json")
                loads = run("generate", model, "--tokens", "1", "-n", "1").returncode == 0
                self.assertEqual(got["runnable"], loads, got.get("reason"))

    def test_memory(self):
        got = self.json("inspect", DEMO, "--json")
        self.assertTrue(got["memory"]["fits"])
        self.assertIn("fits          yes", self.ok("inspect", DEMO).decode())

    def test_file(self):
        got = self.json("inspect", DEMO / "model.safetensors", "--json")
        self.assertTrue(got["tensors"])


class Score(SakerTest):
    def test_tokens(self):
        got = self.json("score", DEMO, "--tokens", "5,6,7,8", "--json", "--top-k", "3")
        self.assertEqual(got["tokens"], [5, 6, 7, 8])
        view = got["views"]["base"]
        self.assertIsNone(view["logprobs"][0])
        self.assertAlmostEqual(view["sum"], sum(view["logprobs"][1:]), places=9)
        self.assertAlmostEqual(view["mean"], view["sum"] / 3, places=9)
        following = view["next"]
        self.assertEqual(len(following["token_ids"]), 3)
        mass = sum(map(math.exp, following["logprobs"])) + math.exp(following["tail_logprob"])
        self.assertAlmostEqual(mass, 1.0, places=5)

    def test_prompt_tokens_are_seen_and_not_scored(self):
        whole = self.json("score", DEMO, "--tokens", "5,6,7,8", "--json")["views"]["base"]
        part = self.json("score", DEMO, "--tokens", "7,8", "--prompt-tokens", "5,6", "--json")
        self.assertEqual(part["views"]["base"]["logprobs"][:2], [None, None])
        self.assertEqual(part["views"]["base"]["logprobs"][-2:], whole["logprobs"][-2:])

    def test_completion(self):
        got = self.json("score", DEMO, "--prompt", "Saker is", "--completion", " a runtime", "--json")
        view = got["views"]["base"]
        scored = [x for x in view["logprobs"] if x is not None]
        self.assertAlmostEqual(view["sum"], sum(scored), places=9)

    def test_records(self):
        lines = [{"id": "a", "text": "hello there"}, {"id": 2, "tokens": [5, 6, 7]},
                 {"id": 3, "prompt": "Saker is", "completion": " a runtime"}]
        path = self.write("r.jsonl", "\n".join(map(json.dumps, lines)))
        got = [json.loads(line) for line in self.ok("score", DEMO, "-f", path).splitlines()]
        self.assertEqual([g["id"] for g in got], ["a", 2, 3])
        alone = self.json("score", DEMO, "--tokens", "5,6,7", "--json")
        self.assertEqual(got[1]["views"], alone["views"])

    def test_a_file_without_records_is_said(self):
        for text in ("", "\n \t\n\r\n"):
            path = self.write("empty.jsonl", text)
            for command in ("generate", "score"):
                with self.subTest((command, text)):
                    done = run(command, DEMO, "-f", path)
                    self.assertEqual((done.returncode, done.stdout), (0, b""))
                    said = done.stderr.decode()
                    self.assertEqual(said.count("\n"), 1)
                    self.assertRegex(said, f"^warning: {path}: holds no record")
        one = self.write("one.jsonl", '\n{"tokens": [5, 6]}\n')
        for command in (("generate", "--max-tokens", "1"), ("score",)):
            self.assertEqual(run(*command, DEMO, "-f", one).stderr, b"")

    def test_a_broken_record_stops_no_other(self):
        path = self.write("r.jsonl", '{"id": 1, "tokens": [5, 6, 7]}\n\n{"id": 2, "tok\n{"id": 3, "text": 7}\n{"tokens": [5, 6]}\n')
        done = run("score", DEMO, "-f", path)
        self.assertEqual(done.returncode, 1)
        self.assertIn("2 records failed", done.stderr.decode())
        got = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([g.get("id") for g in got], [1, None, 3, None])
        self.assertEqual([g["error"]["line"] if "error" in g else None for g in got], [None, 3, 4, None])
        self.assertIn("r.jsonl:3", got[1]["error"]["message"])

    def test_a_batch_gives_the_bits_of_single_records(self):
        lines = [{"id": i, "text": "Saker is a runtime. " * (i % 3 + 1) + str(i)} for i in range(20)]
        path = self.write("r.jsonl", "\n".join(map(json.dumps, lines)))
        self.assertEqual(self.ok("score", DEMO, "-f", path), self.ok("score", DEMO, "-f", path, "--batch", "1"))

    def test_resume_answers_each_record_once(self):
        lines = [{"id": i, "tokens": [5, 6, i]} for i in range(20)]
        path = self.write("r.jsonl", "\n".join(map(json.dumps, lines)))
        whole = self.ok("score", DEMO, "-f", path)
        output = self.folder / "out.jsonl"
        self.assertEqual(self.ok("score", DEMO, "-f", path, "-o", output), b"")
        self.assertEqual(output.read_bytes(), whole)
        for cut in (0, 1, len(whole) // 2, len(whole) - 1, len(whole)):
            output.write_bytes(whole[:cut])
            self.ok("score", DEMO, "-f", path, "-o", output, "--resume", "--batch", "3")
            self.assertEqual(output.read_bytes(), whole)
        output.unlink()
        self.ok("score", DEMO, "-f", path, "-o", output, "--resume")
        self.assertEqual(output.read_bytes(), whole)

    def test_resume_counts_the_failures_before_it(self):
        lines = [{"id": {"error": {"code": "x"}}, "tokens": [5, 6]}, {"id": {"views": {}}, "tokens": [-1]}, {"id": 3, "text": "hello"}]
        path = self.write("r.jsonl", "\n".join(map(json.dumps, lines)))
        output = self.folder / "out.jsonl"
        run = ["score", DEMO, "-f", path, "-o", output]
        self.fails(*run, says="1 records failed")
        whole = output.read_bytes()
        kept = whole.splitlines(keepends=True)
        for count in range(4):
            output.write_bytes(b"".join(kept[:count]))
            self.fails(*run, "--resume", says="1 records failed")
            self.assertEqual(output.read_bytes(), whole)

    def test_two_runs_on_one_output(self):
        path = self.write("r.jsonl", '{"id": 1, "tokens": [5, 6]}\n')
        output = self.write("out.jsonl", "")
        run = ["score", DEMO, "-f", path, "-o", output]
        with open(output, "rb+") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            for options in ([], ["--resume"]):
                held.write(b"x")
                held.flush()
                self.fails(*run, *options, says="another run writes it")
            self.assertEqual(output.read_bytes(), b"xx")
        self.ok(*run)
        self.assertEqual(output.read_bytes().count(b"\n"), 1)
        with open("/dev/null", "wb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            self.ok("score", DEMO, "-f", path, "-o", "/dev/null")

    def test_resume_refuses_the_output_of_other_input(self):
        path = self.write("r.jsonl", '{"id": 1, "tokens": [5, 6]}\n')
        output = self.write("out.jsonl", '{"id": 2}\n')
        self.fails("score", DEMO, "-f", path, "-o", output, "--resume", says="other input")
        self.assertEqual(output.read_bytes(), b'{"id": 2}\n')
        output.write_text('{"id": 1}\n{"id": 2}\n')
        self.fails("score", DEMO, "-f", path, "-o", output, "--resume", says="other input")
        # Without ids, and with the same ones, the tokens and what of them is scored tell.
        for ours, other in (
            ({"tokens": [5, 6]}, {"tokens": [5, 7]}),
            ({"id": 1, "text": "hello you"}, {"id": 1, "text": "hello all"}),
            ({"text": "hello you all"}, {"prompt": "hello you", "completion": " all"}),
            ({"tokens": [5, 6]}, {"tokens": [-1]}),
        ):
            path.write_text(f"{json.dumps(ours)}\n" + '{"tokens": [8, 9]}\n')
            lines = run("score", DEMO, "-f", path).stdout.splitlines(keepends=True)
            path.write_text(f"{json.dumps(other)}\n" + '{"tokens": [8, 9]}\n')
            for kept in (lines[0], lines[0] + lines[1]):
                output.write_bytes(kept)
                self.fails("score", DEMO, "-f", path, "-o", output, "--resume", says="other input")
                self.assertEqual(output.read_bytes(), kept)
        output.write_text('{"tokens": [5, 6], "views": {}}\n')
        path.write_text('{"tokens": [5, 6]}\n')
        self.fails("score", DEMO, "-f", path, "-o", output, "--resume", says="other input")
        output.write_text("scored\n")
        self.fails("score", DEMO, "-f", path, "-o", output, "--resume", says="out.jsonl:1")
        self.fails("score", DEMO, "-f", path, "-o", path, says="input and output")
        self.fails("score", DEMO, "-f", path, "--resume", says="--output", code=2)

    def test_texts_with_nothing_to_score(self):
        empty = self.json("score", DEMO, "--text", "", "--json")
        self.assertEqual(empty["tokens"], [])
        self.assertEqual(empty["views"]["base"]["logprobs"], [])
        self.assertEqual(empty["views"]["base"]["sum"], 0)
        one = self.json("score", DEMO, "--tokens", "5", "--json")["views"]["base"]
        self.assertEqual((one["logprobs"], one["sum"]), ([None], 0))
        self.fails("score", DEMO, "--prompt", "Saker", "--completion", "", says="adds no token")

    def test_an_empty_prompt_scores_from_the_second_token(self):
        view = self.json("score", DEMO, "--prompt", "", "--completion", "hello you", "--json")["views"]["base"]
        self.assertTrue(view["first_token_unscored"])
        self.assertEqual([x is None for x in view["logprobs"]], [True, False])

    def test_a_prompt_alone_is_for_its_next_token(self):
        view = self.json("score", DEMO, "--prompt", "Saker is", "--top-k", "5", "--json")["views"]["base"]
        self.assertEqual(set(view["logprobs"]), {None})
        self.assertEqual(len(view["next"]["token_ids"]), 5)
        self.fails("score", DEMO, "--prompt", "Saker is", "--top-k", "0", says="top_k")
        self.fails("score", DEMO, says="one of", code=2)

    def test_a_table_of_the_next_token(self):
        prompt = ["score", DEMO, "--prompt", "Saker is", "--top-k"]
        found = self.json(*prompt, "3", "--json")["views"]["base"]["next"]
        lines = self.ok(*prompt, "3").decode().splitlines()
        self.assertEqual([int(line.split()[1]) for line in lines[:3]], found["token_ids"])
        self.assertEqual([line.split()[0] for line in lines[:3]], [f"{x:.4f}" for x in found["logprobs"]])
        self.assertEqual(lines[3].split(), [f"{found['tail_logprob']:.4f}", "all", "others"])
        self.assertEqual(len(lines), 4)
        self.assertNotIn("others", self.ok(*prompt, "100000").decode())
        least = self.ok("score", DEMO, "--prompt", "Once upon a", "--top-k", "2047").decode()
        self.assertIn("all others: at most 1e-12", least.splitlines()[-1])

    def test_a_table_says_what_is_special_about_the_border(self):
        text = self.ok("score", DEMO, "--prompt", "", "--completion", "hello you").decode()
        self.assertIn("nothing before the first token", text)
        text = self.ok("score", DEMO, "--prompt", "Once upon a ti", "--completion", "me there was").decode()
        self.assertIn("a token spans the border", text)
        self.assertEqual(len(self.ok("score", DEMO, "--text", "hello you").decode().splitlines()), 3)

    def test_longer_than_the_context(self):
        model = self.demo_copy(max_position_embeddings=16)
        ids = ",".join(["5", "6", "7"] * 10)
        self.fails("score", model, "--tokens", ids, says="30 tokens, expected at most 16")
        self.fails("score", model, "--tokens", ids, "--top-k", "0", says="30 tokens, expected at most 17")
        got = self.json("score", model, "--tokens", ids, "--stride", "8", "--json")["views"]["base"]
        self.assertEqual(sum(x is not None for x in got["logprobs"]), 29)

    def test_greedy_answer_is_greedy(self):
        made = self.json("generate", DEMO, "--tokens", "5,6,7", "--max-tokens", "8", "--ignore-eos", "--json")
        ids = ",".join(map(str, made["tokens"]))
        got = self.json("score", DEMO, "--prompt-tokens", "5,6,7", "--tokens", ids, "--json")
        self.assertTrue(got["views"]["base"]["is_greedy"])


class Bench(SakerTest):
    def test_json(self):
        got = self.json("bench", DEMO, "-p", "32", "-n", "8", "-r", "2", "-b", "2", "--json")
        for key in ("prompt_tps", "generation_tps"):
            self.assertLessEqual(got[key]["min"], got[key]["median"])
            self.assertLessEqual(got[key]["median"], got[key]["max"])
            self.assertGreater(got[key]["min"], 0)
        self.assertGreater(got["limits"]["read_gbps"], 0)
        self.assertGreater(got["model"]["weight_bytes"], 0)
        self.assertGreater(got["model"]["cache_bytes"], 0)
        self.assertGreater(got["peak_memory_bytes"], 0)
        self.assertGreaterEqual(got["cold_faults"], 0)

    def test_table(self):
        self.assertIn("tokens/s", self.ok("bench", DEMO, "-p", "8", "-n", "4", "-r", "1").decode())


class Anywhere(SakerTest):
    def test_no_model_is_the_bundled_one(self):
        text = self.ok("generate", "-p", "hi", "--chat", "--max-tokens", "4", "--seed", "1")
        self.assertEqual(
            text, self.ok("generate", DEMO, "-p", "hi", "--chat", "--max-tokens", "4", "--seed", "1")
        )

    def test_repo_id_in_the_hub_cache(self):
        snapshot = self.folder / "models--org--name" / "snapshots" / "abc"
        snapshot.mkdir(parents=True)
        for file in DEMO.iterdir():
            (snapshot / file.name).symlink_to(file)
        refs = self.folder / "models--org--name" / "refs"
        refs.mkdir()
        (refs / "main").write_text("abc")
        env = {"HF_HUB_CACHE": str(self.folder)}
        got = self.json("inspect", "org/name", "--json", env=env)
        self.assertTrue(got["runnable"])
        self.fails("inspect", "org/other", env=env, says="org/other")


if __name__ == "__main__":
    unittest.main()
