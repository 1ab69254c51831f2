# SPDX-License-Identifier: Apache-2.0
"""tools/check_all.sh goes on after a check that failed, and says at the end which did."""

import os
import pathlib
import subprocess
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
MAKEFILE = """
good:
\t@echo first
bad:
\t@echo second; exit 3
last:
\t@echo third
missing-tool:
\t@no-such-program
"""


class CheckAll(unittest.TestCase):
    def run_checks(self, *checks: str) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
        return subprocess.run([TOP / "tools/check_all.sh", *checks], cwd=self.folder, env=environment, capture_output=True,
                              text=True, timeout=60, check=False)

    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        (self.folder / "Makefile").write_text(MAKEFILE)

    def test_goes_on(self) -> None:
        done = self.run_checks("bad", "good", "missing-tool", "last")
        self.assertEqual(done.returncode, 1)
        for text in ("first", "second", "third"):
            self.assertIn(text, done.stdout)
        lines = done.stdout.splitlines()
        self.assertEqual(lines[-1], "failed: bad missing-tool (see build/checks)")
        self.assertRegex(lines[-5], "^bad +FAILED, [0-9]+ s$")
        self.assertRegex(lines[-4], "^good +passed, [0-9]+ s$")
        self.assertIn("third", (self.folder / "build/checks/last.log").read_text())

    def test_all_good(self) -> None:
        done = self.run_checks("good", "last")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertNotIn("failed", done.stdout)


if __name__ == "__main__":
    unittest.main()
