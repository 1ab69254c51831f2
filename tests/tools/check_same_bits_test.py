# SPDX-License-Identifier: Apache-2.0
"""tools/check_same_bits.py tells apart what differs in one bit or fails. SAKER_PROGRAM is the program."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = os.environ["SAKER_PROGRAM"]


class SameBits(unittest.TestCase):
    def compared_with(self, script):
        with tempfile.TemporaryDirectory() as folder:
            other = Path(folder) / "saker"
            other.write_text(f'#!/bin/sh\n{script}\n')
            other.chmod(0o755)
            command = [sys.executable, ROOT / "tools" / "check_same_bits.py", PROGRAM, other, "--only", "qwen3_q8 score"]
            return subprocess.run(command, capture_output=True, text=True, check=False)

    def test_the_same_program(self):
        done = self.compared_with(f'exec "{PROGRAM}" "$@"')
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_another_last_digit(self):
        done = self.compared_with(f'"{PROGRAM}" "$@" | sed "s/[0-8],/9,/"; exit 0')
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("differs: portable: qwen3_q8 score", done.stdout)

    def test_one_that_fails(self):
        done = self.compared_with('echo "error: [cpu] this processor can run portable" >&2; exit 1')
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
