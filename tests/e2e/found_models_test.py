# SPDX-License-Identifier: Apache-2.0
"""Models of ollama and LM Studio: by name, and offered by `saker run` on a terminal."""
import hashlib
import json
import os
import pathlib
import shutil
import unittest

from pseudo_terminal import Terminal, plain
from saker import DEMO, SakerTest

MODEL = "application/vnd.ollama.image.model"


class FoundModels(SakerTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        one = cls("make_gguf")
        one.setUp()
        cls.addClassCleanup(one.doCleanups)
        cls.gguf = one.folder / "demo.gguf"
        one.ok("convert", DEMO, cls.gguf)

    def make_gguf(self):
        pass

    def setUp(self):
        super().setUp()
        self.ollama = self.folder / ".ollama" / "models"
        self.environment = {"HOME": str(self.folder), "HF_HUB_CACHE": str(self.folder / "hub"), "SAKER_MODELS": str(self.folder / "named"),
                            "OLLAMA_MODELS": "", "SAKER_CONFIG": "", "HF_HUB_OFFLINE": "0"}

    def manifest(self, name, content):
        path = self.ollama / "manifests" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def blob(self, source):
        digest = hashlib.sha256(source.read_bytes()).hexdigest()
        path = self.ollama / "blobs" / f"sha256-{digest}"
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, path)
        return {"mediaType": MODEL, "digest": f"sha256:{digest}", "size": source.stat().st_size}

    def of_ollama(self, name="registry.ollama.ai/library/tiny/1b"):
        layers = [self.blob(self.gguf), {"mediaType": "application/vnd.ollama.image.params", "digest": "sha256:" + "0" * 64}]
        return self.manifest(name, {"schemaVersion": 2, "layers": layers})

    def run_refused(self, name, says):
        self.fails("run", name, "-p", "hi", env=self.environment, says=says)

    def test_ollamas_models_run_by_name(self):
        self.of_ollama()
        self.of_ollama("registry.ollama.ai/me/mine/latest")
        self.of_ollama("hf.co/org/repo-GGUF/Q4_K_M")
        for name in ("ollama:tiny:1b", "ollama:library/tiny:1b", "ollama:me/mine", "ollama:hf.co/org/repo-GGUF:Q4_K_M"):
            got = self.json("generate", name, "-p", "Once", "--max-tokens", "3", "--json", env=self.environment)
            self.assertEqual(len(got["tokens"]), 3)
        self.assertIn("runs", self.ok("inspect", "ollama:tiny:1b", env=self.environment).decode())
        blob = next((self.ollama / "blobs").iterdir())
        self.assertTrue(self.json("generate", blob, "-p", "Once", "--max-tokens", "3", "--json")["tokens"])

    def test_names_that_are_not_there(self):
        self.run_refused("ollama:tiny", "there is no folder of ollama")
        self.of_ollama()
        self.run_refused("ollama:tiny", "'ollama pull tiny' fetches it")
        for name in ("ollama:", "ollama:../../x", "ollama:a/b/c/d/e", "ollama:a b", "ollama:/etc/passwd", "ollama:tiny:", "ollama:.hidden"):
            self.run_refused(name, "is no name of an ollama model")
        self.run_refused("tiny:1b", "ollama:tiny:1b")

    def test_hostile_manifests(self):
        name = "registry.ollama.ai/library/bad/latest"
        good = {"mediaType": MODEL, "digest": "sha256:" + "1" * 64}
        cases = (
            ("", "bad/latest"), ("[]", "is no manifest"), ("{}", "is no manifest"), ('{"layers": 3}', "is no manifest"), ("[" * 10000, "bad/latest"),
            ('{"layers": [3]}', "a layer is no object"), ({"layers": []}, "are no GGUF file"), ({"layers": [{"mediaType": 3}]}, "mediaType"),
            ({"layers": [good]}, "are missing"), ({"layers": [good, good]}, "several layers"),
            ({"layers": [{**good, "digest": "sha256:../../../etc/passwd"}]}, "64 hexadecimal digits"), ({"layers": [{**good, "digest": 3}]}, "digest"),
            ({"layers": [{"mediaType": "application/vnd.ollama.image.tensor"}]}, "are no GGUF file"), (" " * (2 << 20), "bad/latest"),
        )
        for content, says in cases:
            self.manifest(name, content)
            self.run_refused("ollama:bad", says)
            self.assertNotIn("bad", self.offer("\x04"))
        text = self.write("text", "no weights")
        self.manifest(name, {"layers": [self.blob(text)]})
        self.run_refused("ollama:bad", "are no GGUF file")
        os.remove(self.ollama / "manifests" / name)
        os.mkfifo(self.ollama / "manifests" / name)
        self.run_refused("ollama:bad", "has no model")
        self.offer("\x04")

    def offer(self, typed, until="leaves", **environment):
        """What `saker run` shows on a terminal until it waits."""
        terminal = Terminal("run", "--max-tokens", "4", state=self.folder, columns=120, env={**self.environment, **environment})
        self.addCleanup(terminal.close)
        shown = plain(terminal.expect("a toy]: "))
        terminal.type(typed)
        if typed == "\x04":
            terminal.process.wait(timeout=60)
            self.assertEqual(terminal.process.returncode, 1)
            return shown
        return shown + plain(terminal.expect(until))

    def test_a_chat_begins_with_a_choice(self):
        self.of_ollama()
        repo = self.folder / ".lmstudio" / "models" / "owner" / "repo"
        repo.mkdir(parents=True)
        shutil.copyfile(self.gguf, repo / "model-Q8_0.gguf")
        (repo / "mmproj-model.gguf").write_text("x")
        shutil.copytree(DEMO, self.folder / ".lmstudio" / "models" / "owner" / "folder")
        shown = self.offer("\r")
        self.assertIn("the bundled demo model", shown)
        self.assertRegex(shown, r"1  ollama:tiny:1b +[\d.]+ MB  ollama\n")
        self.assertRegex(shown, r"2  \S*/owner/folder +[\d.]+ MB  LM Studio\n")
        self.assertRegex(shown, r"3  \S*/owner/repo/model-Q8_0.gguf +[\d.]+ MB  LM Studio\n")
        self.assertNotIn("mmproj", shown)
        self.assertRegex(shown, r"To fetch, with room in the memory of [\d.]+ GB:\n +4  \S+/\S+ ")
        self.assertIn("ollama:tiny:1b", self.offer("1\r").split("a toy]: ")[1])
        self.assertIn("model-Q8_0.gguf", self.offer(" 3 \r").split("a toy]: ")[1])
        self.assertIn("99 is none of them", self.offer("99\r", until="them"))
        self.assertIn("error: '/nowhere/nothing'", self.offer("/nowhere/nothing\r", until="does not exist"))
        self.assertNotIn("To fetch", self.offer("\x04", HF_HUB_OFFLINE="1"))

    def test_no_terminal_no_choice(self):
        answer = self.ok("run", "--max-tokens", "4", stdin=b"hello", env=self.environment)
        self.assertTrue(answer.strip())

    def test_the_program_alone_chats(self):
        terminal = Terminal(state=self.folder, columns=100, env={**self.environment, "HF_HUB_OFFLINE": "1"})
        self.addCleanup(terminal.close)
        terminal.expect("a toy]: ")
        terminal.type("\r")
        self.assertIn("the bundled demo model", plain(terminal.expect("leaves")))

    def test_a_default_is_a_choice(self):
        terminal = Terminal("run", state=self.folder, columns=100, env={**self.environment, "SAKER_MODEL": str(DEMO)})
        self.addCleanup(terminal.close)
        self.assertNotIn("a toy", plain(terminal.expect("leaves")))


if __name__ == "__main__":
    unittest.main()
