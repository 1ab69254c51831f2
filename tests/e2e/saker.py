# SPDX-License-Identifier: Apache-2.0
"""Runs the program under test; models made from the bundled one."""
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ["SAKER_PROGRAM"]
DEMO = ROOT / "models" / "demo"


def run(*args, stdin=b"", timeout=120, env=None, largest_file=None, addresses=None):
    """The finished process; stdin is closed when empty. `largest_file`: bytes after which writing to a file fails, as on a full disk;
    `addresses`: bytes that it can have in memory or map."""

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        for kind, most in ((resource.RLIMIT_FSIZE, largest_file), (resource.RLIMIT_AS, addresses)):
            if most is not None:
                resource.setrlimit(kind, (most, most))

    return subprocess.run(
        [PROGRAM, *map(str, args)],
        input=stdin,
        capture_output=True,
        timeout=timeout,
        env={**os.environ, "SAKER_CONFIG": "", **(env or {})},
        cwd=tempfile.gettempdir(),
        preexec_fn=limit if largest_file or addresses else None,
    )


class SakerTest(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def ok(self, *args, **options):
        """stdout of a run that must succeed."""
        done = run(*args, **options)
        self.assertEqual(done.returncode, 0, done.stderr.decode(errors="replace"))
        return done.stdout

    def json(self, *args, **options):
        """The one JSON object a run prints."""
        lines = self.ok(*args, **options).decode().splitlines()
        self.assertEqual(len(lines), 1)
        return json.loads(lines[0])

    def fails(self, *args, says, code=1, **options):
        """A run that must fail with one line on stderr that holds `says`."""
        done = run(*args, **options)
        message = done.stderr.decode()
        self.assertEqual(done.returncode, code, message)
        self.assertEqual(len(message.splitlines()), 1, message)
        self.assertTrue(message.startswith("error: "), message)
        self.assertIn(says, message)
        return message

    def write(self, name, content):
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def demo_copy(self, **config):
        """A copy of the bundled model with changed members of config.json; None removes one."""
        copy = self.folder / "model"
        shutil.copytree(DEMO, copy, ignore=shutil.ignore_patterns("draft"))
        values = json.loads((copy / "config.json").read_text())
        for key, value in config.items():
            values[key] = value
            if value is None:
                del values[key]
        (copy / "config.json").write_text(json.dumps(values))
        return copy
