# SPDX-License-Identifier: Apache-2.0
"""GGUF models of a repository: pulled, run, listed, verified and removed one by one; and addresses as names."""
import os
import pathlib
import shutil

from gguf_test import contents, gguf
from hub_test import FILES, REPO, HubTest

PROMPT = ("-p", "ab c", "--max-tokens", "3", "--json")
SPLIT = tuple(f"big/x-BF16-{part:05}-of-00002.gguf" for part in (1, 2))


class Gguf(HubTest):
    def setUp(self):
        super().setUp()
        keys, tensors = contents()
        self.small = gguf({**keys, "general.name": "small"}, tensors)
        self.large = gguf({**keys, "general.name": "larger"}, tensors)
        names = list(tensors)
        parts = []
        for number, own in enumerate((names[:3], names[3:])):
            split = {"split.no": number, "split.count": 2, "split.tensors.count": len(names)}
            parts.append(gguf({**(keys if number == 0 else {"general.architecture": "llama"}), **split},
                              {name: tensors[name] for name in own}))
        self.parts = dict(zip(SPLIT, parts))
        self.files = {"README.md": b"x", "config.json": b'{"model_type": "llama"}', "x-Q4_K_M.gguf": self.small, "x-Q8_0.gguf": self.large,
                      "mmproj-x-F16.gguf": b"y", **self.parts}
        self.hub.add(REPO, self.files)

    def rows(self):
        return [line.split()[0] for line in self.ok("list", env=self.env()).decode().splitlines()[1:]]

    def test_one_file(self):
        report = self.pull(REPO + ":q8_0")
        self.assertEqual(report["files"], ["x-Q8_0.gguf"])
        self.assertEqual((report["bytes"], report["received"]), (len(self.large), len(self.large)))
        path = pathlib.Path(report["path"])
        self.assertEqual((path.name, path.read_bytes()), ("x-Q8_0.gguf", self.large))
        self.assertEqual(self.ok("pull", REPO + ":x-Q8_0.gguf", env=self.env()).decode(), f"{path}\n")
        answer = self.json("generate", path, *PROMPT)["tokens"]
        for name in (REPO + ":Q8_0", REPO + ":x-Q8_0.gguf@main", REPO, f"https://huggingface.co/{REPO}/blob/main/x-Q8_0.gguf"):
            self.assertEqual(self.json("generate", name, *PROMPT, env=self.env(HF_HUB_OFFLINE="1"))["tokens"], answer)
        self.refused("generate", REPO + ":Q4_K_M", *PROMPT, says=f"saker pull {REPO}:Q4_K_M")

    def test_unasked_the_usual_quantization_comes(self):
        self.assertEqual(self.pull(REPO)["files"], ["x-Q4_K_M.gguf"])
        self.assertEqual(self.pull(REPO, "--include", "*Q8_0*")["files"], ["config.json", "x-Q8_0.gguf"])
        message = self.refused("pull", REPO + ":Q6_K", says="no GGUF model is called so; there are")
        for label in (":Q4_K_M", ":Q8_0", ":BF16"):
            self.assertIn(label, message)
        self.assertNotIn("mmproj", message)
        self.hub.add("org/odd", {"a-IQ1_S.gguf": b"x", "b-IQ1_S.gguf": b"y"})
        self.refused("pull", "org/odd", says="say which one; there are :a-IQ1_S.gguf, :b-IQ1_S.gguf")
        self.refused("pull", "org/odd:IQ1_S", says="several GGUF models are called so")
        self.hub.add("org/both", {**FILES, "x-Q8_0.gguf": self.large})
        self.assertEqual(self.pull("org/both")["files"], sorted(FILES))

    def test_parts_come_together(self):
        report = self.pull(REPO + ":BF16")
        self.assertEqual(report["files"], list(SPLIT))
        self.assertEqual(pathlib.Path(report["path"]).name, pathlib.Path(SPLIT[0]).name)
        self.assertEqual(self.json("generate", REPO + ":bf16", *PROMPT, env=self.env())["tokens"],
                         self.json("generate", self.write("whole.gguf", self.small), *PROMPT)["tokens"])
        (pathlib.Path(report["path"]).with_name(pathlib.Path(SPLIT[1]).name)).unlink()
        self.refused("generate", REPO + ":bf16", *PROMPT, says=f"saker pull {REPO}:bf16")

    def test_listed_verified_and_removed(self):
        self.hub.add("org/both", {**FILES, "x-Q8_0.gguf": self.large})
        for name in (REPO + ":Q4_K_M", REPO + ":Q8_0", REPO + ":BF16", "org/both", "org/both:Q8_0"):
            self.pull(name)
        self.assertEqual(self.rows(), ["org/both:Q8_0", "org/both", REPO + ":BF16", REPO + ":Q4_K_M", REPO + ":Q8_0"])
        listed = {model["repo"]: model for model in self.json("list", "--json", env=self.env())["models"]}
        (revision,) = listed[REPO]["revisions"]
        self.assertEqual(revision["gguf"][2], {"label": "Q8_0", "files": ["x-Q8_0.gguf"], "bytes": len(self.large)})
        blob = pathlib.Path(os.path.realpath(pathlib.Path(revision["path"]) / "x-Q8_0.gguf"))
        blob.write_bytes(b"?" + self.large[1:])
        self.assertEqual(self.json("verify", REPO + ":BF16", "--json", env=self.env())["files"], 2)
        self.refused("verify", REPO + ":Q8_0", says="1 of 1 files damaged: 'x-Q8_0.gguf'")
        self.refused("verify", REPO + ":Q6_K", says="no GGUF model is called so")
        self.refused("rm", REPO + ":Q6_K", "--yes", says="no GGUF model is called so")
        removed = self.json("rm", REPO + ":Q8_0", "--yes", "--json", env=self.env())
        self.assertEqual(removed["bytes"], len(self.large))
        self.assertFalse(blob.exists())
        self.assertEqual(self.rows(), ["org/both:Q8_0", "org/both", REPO + ":BF16", REPO + ":Q4_K_M"])
        self.assertIn("big/x-BF16-00001-of-00002.gguf", self.ok("rm", REPO + ":BF16", "--yes", env=self.env()).decode())
        self.ok("rm", REPO + ":Q4_K_M", "org/both:Q8_0", "--yes", env=self.env())
        self.assertFalse(self.model().exists())
        self.same(self.pull("org/both"), FILES)
        self.assertEqual(self.rows(), ["org/both"])

    def test_files_that_revisions_share_stay(self):
        old = self.hub.models[REPO]["refs"]["main"]
        self.pull(f"{REPO}:Q8_0@{old}")
        self.hub.add(REPO, {**self.files, "README.md": b"newer"})
        self.pull(REPO + ":Q8_0")
        self.assertEqual(self.json("rm", f"{REPO}:Q8_0@main", "--yes", "--json", env=self.env())["bytes"], 0)
        self.json("generate", f"{REPO}:Q8_0@{old}", *PROMPT, env=self.env())

    def test_names_that_lie(self):
        entry = {"type": "file", "path": "../x-Q8_0.gguf", "oid": "a" * 40, "size": 1}
        self.hub.change_entries = lambda entries: [*entries, entry]
        self.refused("pull", REPO + ":Q8_0", says="expected a path inside the model")
        for name in ("qwen3:0.6b", REPO + ":../x", REPO + ":", "https://example.com/org/model", "hf.co/models"):
            self.refused("pull", name, says="is no name of a model")

    def test_addresses(self):
        for name in (f"hf.co/{REPO}:Q8_0", f"https://hf.co/{REPO}/resolve/main/x-Q8_0.gguf?download=true", f"{self.hub.address}/{REPO}:Q8_0"):
            shutil.rmtree(self.home, ignore_errors=True)
            self.assertEqual(self.pull(name)["files"], ["x-Q8_0.gguf"])
        self.assertEqual(self.json("verify", f"huggingface.co/{REPO}", "--json", env=self.env())["files"], 1)
        self.ok("rm", f"https://huggingface.co/{REPO}/tree/main", "--yes", env=self.env())
        self.assertEqual(self.rows(), [])
