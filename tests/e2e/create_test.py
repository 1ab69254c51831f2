# SPDX-License-Identifier: Apache-2.0
"""`saker create`: named models from Modelfiles, run, listed, replaced, removed."""
import json
import os
import pathlib
import shutil
import unittest

from saker import DEMO, SakerTest, run


class Create(SakerTest):
    def setUp(self):
        super().setUp()
        self.store = self.folder / "store"
        self.env = {"SAKER_MODELS": str(self.store), "HF_HUB_CACHE": str(self.folder / "hub")}

    def create(self, name, text, *options):
        file = self.write("Modelfile", text)
        return self.ok("create", name, "-f", file, *options, env=self.env)

    def test_a_named_model_runs_as_the_original(self):
        self.create("demo", f"FROM {DEMO}\n")
        expected = self.json("generate", DEMO, "-p", "Once", "--max-tokens", "8", "--json")
        got = self.json("generate", "demo", "-p", "Once", "--max-tokens", "8", "--json", env=self.env)
        self.assertEqual(got["tokens"], expected["tokens"])
        self.assertTrue(self.ok("run", "demo:latest", "-p", "hello", env=self.env).strip())
        self.assertTrue(self.ok("tokenize", "demo", "-t", "hello", env=self.env).strip())
        self.assertIn("runs", self.ok("inspect", self.store / "demo", env=self.env).decode())

    def test_options_apply_below_flags_and_records(self):
        self.create("demo", f"FROM {DEMO}\nPARAMETER num_predict 3\nPARAMETER ignore_eos true\n")
        count = lambda *args: len(self.json("generate", "demo", "-p", "Once", *args, "--json", env=self.env)["tokens"])
        self.assertEqual(count(), 3)
        self.assertEqual(count("--max-tokens", "5"), 5)
        records = self.write("r.jsonl", '{"prompt": "Once"}\n{"prompt": "Once", "max_tokens": 2}\n')
        lines = self.ok("generate", "demo", "-f", records, env=self.env).decode().splitlines()
        self.assertEqual([len(json.loads(line)["tokens"]) for line in lines], [3, 2])

    def test_a_seed_of_the_model_counts(self):
        self.create("demo", f"FROM {DEMO}\nPARAMETER seed 7\nPARAMETER temperature 1\nPARAMETER num_predict 20\n")
        answers = {self.ok("generate", "demo", "-p", "Once", env=self.env) for _ in range(2)}
        self.assertEqual(len(answers), 1)

    def test_chats_begin_as_the_file_says(self):
        template = "{% for m in messages %}[{{ m.role }}={{ m.content }}]{% endfor %}"
        self.create("demo", f'FROM {DEMO}\nTEMPLATE """{template}"""\nSYSTEM """Be\nbrief."""\n'
                            "MESSAGE user one\nMESSAGE assistant two\n")
        def prompt(*args):
            tokens = self.json("generate", "demo", "--chat", "-p", "three", "--max-tokens", "1", "--json", *args, env=self.env)["prompt_tokens"]
            return self.ok("detokenize", DEMO, "--tokens", ",".join(map(str, tokens))).decode().strip()
        self.assertEqual(prompt(), "[system=Be\nbrief.][user=one][assistant=two][user=three]")
        self.assertEqual(prompt("--system", "Be long."), "[system=Be long.][user=one][assistant=two][user=three]")

    def test_go_templates_leave_the_models_own(self):
        file = self.write("Modelfile", f"FROM {DEMO}\nTEMPLATE {{{{ .Prompt }}}}\n")
        done = run("create", "demo", "-f", file, env=self.env)
        self.assertEqual(done.returncode, 0)
        self.assertIn("Go's templates", done.stderr.decode())
        messages = self.write("m.json", '[{"role": "user", "content": "hi"}]')
        self.assertEqual(self.ok("template", "demo", "--messages", messages, env=self.env),
                         self.ok("template", DEMO, "--messages", messages))

    def test_quantized_and_with_a_draft(self):
        self.ok("convert", DEMO, self.folder / "float", "--dequantize")
        self.create("small", "FROM float\nDRAFT float\n", "--bits", "4", "--group-size", "32", "--draft-bits", "8")
        config = json.loads((self.store / "small" / "config.json").read_text())
        self.assertEqual(config["quantization"]["bits"], 4)
        draft = json.loads((self.store / "small" / "draft" / "config.json").read_text())
        self.assertEqual(draft["quantization"]["bits"], 8)
        stats = self.json("generate", "small", "-p", "Once", "--json", env=self.env)["stats"]
        self.assertEqual(stats["drafter"], "draft")

    def test_one_model_from_another(self):
        self.create("a", f"FROM {DEMO}\nPARAMETER num_predict 3\nSYSTEM first\n")
        self.create("b", "FROM a\nPARAMETER top_k 5\n")
        settings = json.loads((self.store / "b" / "saker.json").read_text())
        self.assertEqual(settings["options"], {"max_tokens": 3, "top_k": 5})
        self.assertEqual(settings["system"], "first")

    def test_a_model_of_an_older_version_has_former_names(self):
        self.create("a", f"FROM {DEMO}\nPARAMETER temperature 2\nPARAMETER max_tokens 8\nPARAMETER seed 7\n")
        path = self.store / "a" / "saker.json"
        settings = json.loads(path.read_text())
        hot = self.json("generate", "a", "-p", "x", "--json", env=self.env)["tokens"]
        settings["options"]["temp"] = settings["options"].pop("temperature")
        path.write_text(json.dumps(settings))
        self.assertEqual(self.json("generate", "a", "-p", "x", "--json", env=self.env)["tokens"], hot)
        self.create("b", "FROM a\nPARAMETER temperature 0\n")
        greedy = self.json("generate", "a", "-p", "x", "--temperature", "0", "--json", env=self.env)["tokens"]
        self.assertEqual(self.json("generate", "b", "-p", "x", "--json", env=self.env)["tokens"], greedy)

    def test_it_outlives_the_original(self):
        copy = self.demo_copy()
        self.create("demo", "FROM model\n")
        shutil.rmtree(copy)
        self.ok("generate", "demo", "-p", "Once", "--max-tokens", "2", env=self.env)

    def test_list_and_rm(self):
        self.create("demo", f"FROM {DEMO}\nLICENSE mine\n")
        self.assertEqual((self.store / "demo" / "LICENSE").read_text(), "mine\n")
        listed = self.json("list", "--json", env=self.env)["named"]
        self.assertEqual([model["name"] for model in listed], ["demo"])
        self.assertIn("demo", self.ok("list", env=self.env).decode())
        removed = self.json("rm", "demo", "--yes", "--json", env=self.env)
        self.assertEqual(removed["removed"][0]["name"], "demo")
        self.assertEqual(self.json("list", "--json", env=self.env)["named"], [])
        self.assertEqual(sorted(os.listdir(self.store)), [".lock"])

    def test_what_fails_leaves_nothing(self):
        self.create("demo", f"FROM {DEMO}\n")
        for text, says in (("FROM nowhere/at/all\n", "nowhere/at/all"), (f"FROM {DEMO}\nPARAMETER top_p 7\n", "top_p"),
                           (f"FROM {DEMO}\nADAPTER .\n", "adapter"), (f"FROM {DEMO}\nTEMPLATE {{% if %}}\n", "TEMPLATE"),
                           (f"FROM {DEMO}\nNONSENSE\n", "line 2"), ("FROM .\n", "config.json")):
            with self.subTest(text):
                self.fails("create", "demo", "-f", self.write("Modelfile", text), says=says, env=self.env)
        self.assertEqual(sorted(os.listdir(self.store)), [".lock", "demo"])
        self.ok("generate", "demo", "-p", "Once", "--max-tokens", "2", env=self.env)

    def test_hostile_names_are_refused(self):
        file = self.write("Modelfile", f"FROM {DEMO}\n")
        for name in ("../up", "a/b", ".", "..", ".lock", "-x", "a b", "a:b:c", "é", "x" * 300, "a\n"):
            with self.subTest(name):
                done = run("create", "-f", file, "--", name, env=self.env)
                self.assertNotEqual(done.returncode, 0)
        self.assertFalse(self.store.exists() and any(pathlib.Path(self.store).glob("[!.]*")))

    def test_templates_do_not_write_through_links(self):
        copy = self.demo_copy()
        (copy / "chat_template.jinja").write_text("{{ messages[0].content }} old")
        self.create("demo", "FROM model\nTEMPLATE {{ messages[0].content }} new\n")
        self.assertEqual((copy / "chat_template.jinja").read_text(), "{{ messages[0].content }} old")
        self.assertEqual((self.store / "demo" / "chat_template.jinja").read_text(), "{{ messages[0].content }} new")


if __name__ == "__main__":
    unittest.main()
