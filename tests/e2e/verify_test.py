# SPDX-License-Identifier: Apache-2.0
"""`verify`: models in the hub cache are read again; and what a pull says while it waits for another one."""
import fcntl
import os
import pathlib
import subprocess
import time

from hub_test import FILES, REPO, WEIGHTS, HubTest
from saker import PROGRAM, run


class Verify(HubTest):
    def setUp(self):
        super().setUp()
        self.commit = self.hub.add(REPO, FILES)
        self.pull(REPO)
        self.blob = self.model() / "blobs" / self.etag(WEIGHTS)

    def damage(self):
        with self.blob.open("r+b") as file:
            file.seek(len(FILES[WEIGHTS]) // 2)
            byte = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte[0] ^ 1]))

    def verified(self, *args):
        return self.json("verify", REPO, *args, "--json", env=self.env())

    def test_whole(self):
        text = self.ok("verify", REPO, env=self.env()).decode()
        self.assertIn(f"{REPO}: {len(FILES)} files", text)
        self.assertEqual(self.verified(), {"repo": REPO, "commits": [self.commit], "files": len(FILES),
                                           "bytes": sum(map(len, FILES.values())), "damaged": [], "unknown": []})
        self.refused("verify", "org/none", says="'org/none' is not in the hub cache")
        self.refused("verify", REPO + "@none", says="is not in the hub cache")
        self.refused("verify", "/tmp", says="is no name of a model")
        self.assertNotIn(b"--pull ", self.ok("verify", "--help"))

    def test_damaged(self):
        self.damage()
        self.assertEqual(self.pull(REPO)["received"], 0)  # A pull looks at the size alone.
        self.refused("verify", REPO, says=f"{REPO}: 1 of {len(FILES)} files damaged: '{WEIGHTS}' its SHA-256 is")
        done = run("verify", f"{REPO}@main", "--json", env=self.env())
        self.assertEqual(done.returncode, 1)
        self.assertIn(str(self.blob).encode(), done.stdout)
        self.assertEqual(len(done.stdout.splitlines()), 1)
        self.refused("verify", REPO, "--remove", says="were taken away, the next pull fetches them")
        self.assertFalse(self.blob.exists())
        self.refused("verify", REPO, says=f"'{WEIGHTS}' is missing")
        self.assertEqual(self.pull(REPO)["received"], len(FILES[WEIGHTS]))
        self.assertEqual(self.verified()["damaged"], [])

    def test_a_pull_says_what_it_waits_for(self):
        self.blob.unlink()
        lock = self.cache / ".locks/models--org--model" / (self.etag(WEIGHTS) + ".lock")
        with lock.open("rb") as held:  # Whoever can read it can hold it.
            fcntl.flock(held, fcntl.LOCK_EX)
            process = subprocess.Popen([PROGRAM, "pull", REPO], env={**os.environ, **self.env()}, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            begin = time.monotonic()
            line = process.stderr.readline()
            waited = time.monotonic() - begin
            self.assertIn(b"warning: org/model: another process fetches 1 of its files; waiting for it", line)
            self.assertGreater(waited, 1)
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, err), (0, b""))
        self.assertEqual((pathlib.Path(out.decode().strip()) / WEIGHTS).read_bytes(), FILES[WEIGHTS])
