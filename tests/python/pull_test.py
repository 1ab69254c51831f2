# SPDX-License-Identifier: Apache-2.0
"""Models that the package fetches from a hub: the local one of the end-to-end tests."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

import saker
from demo import DEMO, ROOT, make_adapter

sys.path.append(str(ROOT / "tests" / "e2e"))  # Last: names there are also ours.

from hub_server import Hub  # noqa: E402

FILES = {path.name: path.read_bytes() for path in DEMO.iterdir() if path.suffix in {".json", ".jinja", ".safetensors"}}
REPO = "org/model"


class Pull(unittest.TestCase):
    def setUp(self):
        self.hub = Hub()
        self.addCleanup(self.hub.close)
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        kept = dict(os.environ)
        self.addCleanup(lambda: (os.environ.clear(), os.environ.update(kept)))
        for name in [name for name in os.environ if name.startswith("HF_")]:
            del os.environ[name]
        os.environ.update(HF_HOME=str(self.folder), HF_ENDPOINT=self.hub.address, no_proxy="*")

    def test_fetches_a_model(self):
        commit = self.hub.add(REPO, {**FILES, "notes.txt": b"x"})
        seen = []
        report = saker.pull(REPO, include=["*.txt"], on_progress=lambda done, total: seen.append((done, total)))
        self.assertEqual((report.repo, report.revision, report.commit), (REPO, "main", commit))
        self.assertEqual(report.files, sorted([*FILES, "notes.txt"]))
        self.assertEqual(report.bytes, sum(map(len, FILES.values())) + 1)
        self.assertEqual(report.received, report.bytes)
        self.assertEqual(seen[-1], (report.bytes, report.bytes))
        path = pathlib.Path(report.path)
        self.assertEqual({name: (path / name).read_bytes() for name in FILES}, FILES)
        again = saker.pull(REPO)
        self.assertEqual((again.received, again.path), (0, report.path))
        with saker.load(REPO) as model:
            self.assertEqual((model.facts.requested, model.facts.path, model.path), (REPO, report.path, report.path))

    def test_load_fetches_what_is_missing(self):
        adapter = make_adapter(self.folder / "adapter")
        self.hub.add(REPO, FILES)
        self.hub.add("org/adapter", {path.name: path.read_bytes() for path in adapter.iterdir()})
        for arguments in ({"path": REPO}, {"path": DEMO, "adapter": "org/adapter"}, {"path": DEMO, "draft": "org/adapter"}):
            with self.assertRaisesRegex(saker.NotFoundError, r"saker\.pull\('org/\w+'\) fetches it.*load\(\.\.\., pull=True\)") as raised:
                saker.load(**arguments)
            self.assertNotIn("--", str(raised.exception))
        with saker.load(DEMO) as local, saker.load(REPO, adapter="org/adapter", pull=True) as model:
            self.assertEqual(model.base().logprob_of("2 + 2 =", " 4"), local.logprob_of("2 + 2 =", " 4"))
            self.assertNotEqual(model.ft().logprob_of("2 + 2 =", " 4"), local.logprob_of("2 + 2 =", " 4"))
        asked = len(self.hub.requests)
        saker.load(REPO, adapter={"a": "org/adapter"}, pull=True).close()
        saker.load(DEMO, pull=True).close()
        saker.load(pull=True).close()
        self.assertEqual(len(self.hub.requests), asked)

    def test_one_gguf_file(self):
        self.hub.add(REPO, {"x-Q4_0.gguf": b"GGUF", "x-Q8_0.gguf": b"x"})
        report = saker.pull(f"{REPO}:q8_0")
        self.assertEqual((report.files, pathlib.Path(report.path).name), (["x-Q8_0.gguf"], "x-Q8_0.gguf"))
        self.assertEqual(saker.pull(f"https://huggingface.co/{REPO}/blob/main/x-Q8_0.gguf").received, 0)
        with self.assertRaisesRegex(saker.NotFoundError, ":Q4_0, :Q8_0"):
            saker.pull(f"{REPO}:Q6_K")

    def test_named_models_are_not_missing(self):
        made = self.folder / "named" / "mine"
        shutil.copytree(DEMO, made)
        os.environ["SAKER_MODELS"] = str(made.parent)
        for pull in (False, True):
            saker.load("mine", pull=pull).close()
        self.assertEqual(self.hub.requests, [])

    def test_errors(self):
        with self.assertRaises(saker.NotFoundError):
            saker.pull("org/none")
        with self.assertRaises(saker.NotFoundError):
            saker.load("org/none", pull=True)
        for name in ("", "a b", "../x", "org/model/more", "x\ud800"):
            with self.assertRaises(saker.InvalidArgumentError, msg=name):
                saker.pull(name)
        with self.assertRaises(saker.InvalidArgumentError):
            saker.pull(REPO, parallel=0)
        os.environ["HF_HUB_OFFLINE"] = "1"
        with self.assertRaisesRegex(saker.UnsupportedError, "HF_HUB_OFFLINE"):
            saker.pull(REPO)

    def test_what_progress_raises_ends_the_pull(self):
        self.hub.add(REPO, FILES)

        def fail(done, total):
            raise RuntimeError("enough")

        with self.assertRaisesRegex(RuntimeError, "enough"):
            saker.pull(REPO, on_progress=fail)
        self.assertEqual(len(saker.pull(REPO).files), len(FILES))

    def test_others_run_meanwhile(self):
        self.hub.add(REPO, FILES)
        self.hub.faults["model.safetensors"] = [{"piece": 1 << 18, "pause": 0.05}]
        reports = []
        thread = threading.Thread(target=lambda: reports.append(saker.pull(REPO)))
        thread.start()
        with saker.load(DEMO) as model:
            self.assertEqual(len(model.generate("Once", max_tokens=3).tokens), 3)
        thread.join()
        self.assertEqual(reports[0].received, reports[0].bytes)

    def test_ctrl_c_ends_a_pull(self):
        self.hub.add(REPO, FILES)
        # Neither the hub's first answer nor a file comes in time.
        for slow, fault in (("api", {"wait": 60}), ("model.safetensors", {"piece": 1 << 10, "pause": 0.05})):
            self.hub.faults[slow] = [fault]
            script = "import saker\nprint('ready', flush=True)\nsaker.pull('org/model')"
            process = subprocess.Popen(
                [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
            self.assertEqual(process.stdout.readline(), "ready\n")
            with self.assertRaises(subprocess.TimeoutExpired):
                process.wait(timeout=0.7)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=20)
            self.assertIn("KeyboardInterrupt", errors)
            self.hub.faults.clear()
        self.assertEqual(len(saker.pull(REPO).files), len(FILES))


if __name__ == "__main__":
    unittest.main()
