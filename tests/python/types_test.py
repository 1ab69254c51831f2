# SPDX-License-Identifier: Apache-2.0
"""The annotations of the package and the stub that nanobind makes pass mypy."""

import os
import pathlib
import subprocess
import sys
import sysconfig
import tempfile
import unittest

import saker

CONFIG = str(pathlib.Path(__file__).resolve().parents[2] / "python" / "pyproject.toml")
PACKAGES = pathlib.Path(saker.__file__).resolve().parent.parent
USE = """
import saker
model = saker.load("x", adapter="y")
text: str = model.generate("x", max_tokens=3).text
score: float = model.base().logprob_of("x", "y")
cache: saker.caches.Cache = saker.caches.load_prompt_cache("x")[0]
saker.caches.KVCache().to_quantised()  # type: ignore[attr-defined]
saker.cache  # type: ignore[attr-defined]
model.generate("x", max_token=3)  # type: ignore[call-arg]
model.generate("x", temp=0.5, think="auto", draft_depth="auto", adapter="y", stop="z", logit_bias={1: 0.5})
model.generate("x", temperature="hot")  # type: ignore[arg-type]
reveal_type(model.next_token_dist("x").logprobs)
"""


class Types(unittest.TestCase):
    def mypy(self, *arguments):
        # mypy finds what is installed by itself, and refuses to have it named.
        installed = PACKAGES == pathlib.Path(sysconfig.get_path("platlib")).resolve()
        path = {} if installed else {"MYPYPATH": str(PACKAGES)}
        with tempfile.TemporaryDirectory() as folder:
            return subprocess.run(
                [sys.executable, "-m", "mypy", "--config-file", CONFIG, "--cache-dir", folder, *arguments],
                capture_output=True,
                text=True,
                cwd=folder,
                env=os.environ | path,
            )

    def test_package(self):
        done = self.mypy("-p", "saker")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_examples(self):
        examples = sorted((pathlib.Path(__file__).resolve().parents[2] / "examples" / "python").glob("*.py"))
        self.assertTrue(examples)
        done = self.mypy(*map(str, examples))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_use(self):
        done = self.mypy("-c", USE)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("floating", done.stdout)


if __name__ == "__main__":
    unittest.main()
