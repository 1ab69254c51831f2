# SPDX-License-Identifier: Apache-2.0
"""Each allocation, open, write, flush, rename and mapping of twelve commands fails once, by a library that is loaded
before the others (tests/faults). Then a command either does its work as if nothing had been, or says in one line what
failed, and what it was to write is there whole or not at all.

    SAKER_FAULTS=all        every one of them; else a sample of so many calls of a kind, and places of allocations, a command
    SAKER_FAULT_DEPTH=N     callers that tell places apart; with more there are more places
"""
import concurrent.futures
import ctypes
import errno
import hashlib
import json
import os
import re
import shutil
import subprocess
import unittest

from hub_server import Hub
from saker import DEMO, PROGRAM, ROOT, SakerTest

LIBRARY = os.environ.get("SAKER_FAULTS_LIBRARY", "")
SAMPLE = os.environ.get("SAKER_FAULTS", "8")
DEPTH = os.environ.get("SAKER_FAULT_DEPTH", "3")
GGUF = ROOT / "tests/fuzz/corpus/gguf/llama.gguf"
CALLS = {"open": errno.EMFILE, "write": errno.ENOSPC, "sync": errno.EIO, "rename": errno.EACCES, "map": errno.ENOMEM, "folder": errno.ENOSPC}
SAME_ADDRESSES = 0x0040000  # ADDR_NO_RANDOMIZE


def same_addresses():
    ctypes.CDLL(None).personality(SAME_ADDRESSES)


TEMPORARY = re.compile(r"(^|/)[.][^/]+[.][0-9a-f]{16}[.]tmp(/|$)")
# glibc itself ends a process that has no memory for the end of a thread-local object, such as MLX's.
GLIBC_ENDS = b"Fatal glibc error: failed to register TLS destructor: out of memory"


@unittest.skipUnless(LIBRARY, "needs the library of faults, which builds with sanitizers have not")
class Faults(SakerTest):
    maxDiff = None

    def setUp(self):
        super().setUp()
        self.messages = self.write("m.json", '[{"role": "user", "content": "hi"}]')
        self.records = self.write("r.jsonl", json.dumps({"id": 1, "prompt": "Once upon", "completion": " a time"}) + "\n")
        self.text = self.write("t.txt", "Once upon a time there was a cat.")
        self.modelfile = self.write("Modelfile", f"FROM {DEMO}\nSYSTEM You are a cat.\n")
        self.cache = self.folder / "cache.safetensors"
        self.ok("cache", "save", DEMO, "-p", "Once", "-o", self.cache)
        self.environment = {}

    def commands(self):
        """What is run in a folder of its own; "out" there is what it writes."""
        return {
            "inspect": ("inspect", DEMO),
            "inspect a file of GGUF": ("inspect", GGUF),
            "template": ("template", DEMO, "--messages", self.messages),
            "tokenize": ("tokenize", DEMO, "-t", "Once upon a time"),
            "generate": ("generate", DEMO, "-p", "Once", "--max-tokens", "3", "--cache-in", self.cache, "--cache-out", "out"),
            "generate with a prefix cache": ("generate", DEMO, "-p", "Once upon a time", "--max-tokens", "2", "--prefix-cache-dir", "prefix"),
            "run": ("run", DEMO, "-p", "Once", "--max-tokens", "3"),
            "score": ("score", DEMO, "--text", "Once upon a time", "--logits", "out.safetensors"),
            "score records": ("score", DEMO, "-f", self.records),
            "perplexity": ("perplexity", DEMO, "-f", self.text, "--threads", "6"),
            "cache save": ("cache", "save", DEMO, "-p", "Once", "-o", "out"),
            "convert": ("convert", DEMO, "out", "--dequantize"),
            "create": ("create", "cat", "-f", self.modelfile),
        }

    def run_with(self, name, command, call, at=0):
        """The finished process, and what it has left in its folder: digests by name."""
        folder = self.folder / f"{name.replace(' ', '_')}-{call}-{at}"
        folder.mkdir()
        environment = {
            **os.environ, **self.environment, "SAKER_MODELS": str(folder / "out"), "HF_HOME": str(folder / "out"), "LD_PRELOAD": LIBRARY,
            "SAKER_FAULT_CALL": call, "SAKER_FAULT_AT": str(at), "SAKER_FAULT_ERROR": str(CALLS.get(call, errno.ENOMEM)),
            "SAKER_FAULT_DEPTH": DEPTH,
        }
        if at == 0:
            environment["SAKER_FAULT_LIST"] = str(self.folder / "list")
        done = subprocess.run([PROGRAM, *map(str, command)], capture_output=True, cwd=folder, env=environment, timeout=120,
                              preexec_fn=same_addresses)
        left = {}
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.name.endswith(".lock"):
                left[str(path.relative_to(folder))] = hashlib.sha256(path.read_bytes()).hexdigest()
        shutil.rmtree(folder)
        return done, left

    def places(self, name, command, call):
        """Which calls can be let fail, and what the command gives when none fails."""
        whole = self.run_with(name, command, call)
        self.assertEqual(whole[0].returncode, 0, whole[0].stderr)
        numbers = sorted(int(line) for line in (self.folder / "list").read_text().split())
        if call != "allocate":
            numbers = list(range(1, numbers[0] + 1))
        return whole, numbers if SAMPLE == "all" else numbers[:: max(1, len(numbers) // int(SAMPLE))]

    def judge(self, whole, done, left):
        """What is wrong with a run; empty: nothing."""
        lines = done.stderr.decode(errors="replace").splitlines()
        if GLIBC_ENDS in done.stderr:
            return ""
        if done.returncode not in (0, 1):
            return f"ends by {done.returncode}: {lines[-3:]}"
        if done.returncode == 1 and (len([line for line in lines if line.startswith("error: ")]) != 1 or "internal" in lines[-1]):
            return f"says {lines[-3:]}"
        if done.returncode == 0 and not lines and done.stdout != whole[0].stdout and not self.changes:
            return f"gives {done.stdout[:200]}"
        strange = {path for path, digest in left.items() if whole[1].get(path) != digest and not path.startswith("prefix/")}
        if b"error: " in done.stderr:
            # Where memory runs out in a thread, the process ends at once: what has no name yet stays, as after a kill.
            strange = {path for path in strange if not TEMPORARY.search(path)}
        return f"leaves {strange}" if strange and not self.changes else ""

    def check(self, name, calls):
        command = self.commands()[name]
        self.changes = name in ("create", "perplexity") or name.startswith("inspect")  # The last says what it found.
        wrong = []
        for call in calls:
            whole, places = self.places(name, command, call)
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                runs = pool.map(lambda at, call=call: (at, self.run_with(name, command, call, at)), places)
                for at, (done, left) in runs:
                    if problem := self.judge(whole, done, left):
                        wrong.append(f"{name}: {call} {at}: {problem}")
        self.assertEqual(wrong, [])

    def check_all(self, calls):
        for name in self.commands():
            with self.subTest(name):
                self.check(name, calls)

    def test_files(self):
        self.check_all(CALLS)

    def test_allocations(self):
        self.check_all(["allocate"])


if __name__ == "__main__":
    unittest.main()
