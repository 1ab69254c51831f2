# SPDX-License-Identifier: Apache-2.0
"""Files that others share: names, permissions, limits, processes in containers."""
import concurrent.futures
import os
import random
import resource
import signal
import stat
import subprocess
import tempfile
import time
import unittest

from hub_server import Hub
from saker import DEMO, PROGRAM, ROOT, SakerTest, run

GGUF = ROOT / "tests/fuzz/corpus/gguf/llama.gguf"
MESSAGES = '[{"role": "user", "content": "hi"}]'


def in_container(*args):
    """The arguments of a process whose id is 1, as in a container of its own."""
    return ["unshare", "-pf", "--mount-proc", "sh", "-c", 'exec "$@"', "sh", *map(str, args)]


def has_containers():
    try:
        return subprocess.run(in_container("true"), capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


class FilesTest(SakerTest):
    def names(self, folder=None):
        return sorted(path.name for path in (folder or self.folder).iterdir())

    def permissions(self, path):
        return stat.S_IMODE(path.stat().st_mode)


class LargestFile(FilesTest):
    """The system's limit of a file's size is an error, not the end by a signal."""

    def limited(self, *args, largest):
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))

        return subprocess.run([PROGRAM, *map(str, args)], capture_output=True, preexec_fn=limit, timeout=120, cwd=self.folder)

    def test_is_one_line_and_leaves_nothing(self):
        commands = [
            ("cache", "save", DEMO, "-p", "Once", "-o", "out"),
            ("generate", DEMO, "-p", "Once", "--max-tokens", "2", "--cache-out", "out"),
            ("convert", DEMO, "out", "--dequantize"),
            ("score", DEMO, "--text", "Once upon a time", "--logits", "out.safetensors"),
        ]
        for command in commands:
            for largest in (0, 1, 4096):
                with self.subTest(f"{command[0]} {largest}"):
                    done = self.limited(*command, largest=largest)
                    lines = done.stderr.decode().splitlines()
                    self.assertEqual((done.returncode, len(lines)), (1, 1), lines)
                    self.assertTrue(lines[0].startswith("error: ") and "internal" not in lines[0], lines)
                    self.assertEqual(self.names(), [])

    def test_standard_output(self):
        with (self.folder / "out").open("wb") as file:
            done = subprocess.run([PROGRAM, "tokenize", DEMO, "-t", "hi"], stdout=file, stderr=subprocess.PIPE,
                                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)


def on_disk(options, folder, *args):
    """The arguments of a process in a folder that is a file system of its own; what it leaves is listed on stdout."""
    script = 'mount -t tmpfs -o "$1" tmpfs "$2" && cd "$2" && shift 2 && "$@" >/dev/null; code=$?; ls -A; exit $code'
    return ["unshare", "-m", "sh", "-c", script, "sh", options, str(folder), *map(str, args)]


def has_disks():
    with tempfile.TemporaryDirectory() as folder:
        try:
            return subprocess.run(on_disk("size=64k", folder, "true"), capture_output=True, check=False).returncode == 0
        except FileNotFoundError:
            return False


@unittest.skipUnless(has_disks(), "no file systems of our own here")
class Disks(FilesTest):
    """Full, read-only and without room for one more name: one line, and nothing is left."""

    def test_each_is_one_line_and_leaves_nothing(self):
        records = self.write("r.jsonl", '{"id": 1, "prompt": "Once upon", "completion": " a time"}\n')
        commands = [
            ("cache", "save", DEMO, "-p", "Once", "-o", "out"),
            ("generate", DEMO, "-p", "Once", "--max-tokens", "2", "--cache-out", "out"),
            ("convert", DEMO, "out", "--dequantize"),
            ("score", DEMO, "--text", "Once upon a time", "--logits", "out.safetensors"),
            ("score", DEMO, "-f", records, "-o", "out"),
        ]
        disk = self.folder / "disk"
        disk.mkdir()
        for options in ("size=4k", "ro", "nr_inodes=1"):
            for command in commands:
                with self.subTest(f"{options} {command[0]}"):
                    done = subprocess.run(on_disk(options, disk, PROGRAM, *command), capture_output=True, timeout=120)
                    lines = done.stderr.decode().splitlines()
                    if command[-2] == "-o" and command[0] == "score" and options == "size=4k":
                        continue  # Its few bytes fit.
                    self.assertEqual((done.returncode, len(lines), done.stdout), (1, 1, b""), lines)
                    self.assertTrue(lines[0].startswith("error: ") and "internal" not in lines[0], lines)

    def test_prefix_caches_and_pulls(self):
        disk = self.folder / "disk"
        disk.mkdir()
        hub = Hub()
        self.addCleanup(hub.close)
        hub.add("org/model", {"config.json": b"{}", "model.safetensors": (DEMO / "model.safetensors").read_bytes()})
        environment = {**os.environ, "HF_HOME": str(disk / "home"), "HF_ENDPOINT": hub.address, "no_proxy": "*"}
        for options in ("size=64k", "ro", "nr_inodes=1"):
            with self.subTest(options):
                done = subprocess.run(on_disk(options, disk, PROGRAM, "pull", "org/model"), env=environment, capture_output=True, timeout=120)
                lines = [line for line in done.stderr.decode().splitlines() if line.startswith("error: ")]
                self.assertEqual((done.returncode, len(lines)), (1, 1), done.stderr)
                self.assertNotIn("internal", lines[0])
        command = (PROGRAM, "generate", DEMO, "-p", "Once upon a time", "--max-tokens", "2", "--prefix-cache-dir", "prefixes")
        full = subprocess.run(on_disk("size=8k", disk, *command), capture_output=True, timeout=120)
        self.assertEqual((full.returncode, full.stdout), (0, b"prefixes\n"), full.stderr)
        for options in ("ro", "nr_inodes=1"):
            done = subprocess.run(on_disk(options, disk, *command), capture_output=True, timeout=120)
            self.assertEqual((done.returncode, len(done.stderr.splitlines())), (1, 1), done.stderr)


class Temporary(FilesTest):
    """Nothing is written where others may write."""

    def test_gguf_needs_no_temporary_folder(self):
        messages = self.write("m.json", MESSAGES)
        nowhere = {"TMPDIR": str(self.folder / "missing")}
        for command in (("inspect", GGUF), ("tokenize", GGUF, "-t", "a"), ("detokenize", GGUF, "--tokens", "1,2")):
            with self.subTest(command[0]):
                self.assertEqual(self.ok(*command, env=nowhere), self.ok(*command))
        usual, missing = (run("template", GGUF, "--messages", messages, env=env) for env in ({}, nowhere))
        self.assertEqual((usual.returncode, usual.stdout, usual.stderr), (missing.returncode, missing.stdout, missing.stderr))

    def test_nothing_is_looked_for_in_the_temporary_folder(self):
        shared = self.folder / "shared"
        shared.mkdir()
        self.ok("tokenize", GGUF, "-t", "a", env={"TMPDIR": str(shared)})
        (shared / "saker-model").mkdir()
        (shared / "saker-model/x").touch()
        self.ok("tokenize", GGUF, "-t", "a", env={"TMPDIR": str(shared)})
        self.assertEqual(self.names(shared), ["saker-model"])

    def test_a_folder_that_another_left_is_not_taken(self):
        """A process of the same id was killed, or somebody guessed the name."""
        for number in range(1, 5):
            left = self.folder / f".out.1-{number}.tmp"
            left.mkdir()
            (left / "chat_template.jinja").write_text("another's")
            (left / "model-00009-of-00009.safetensors").write_bytes(b"another's")
        convert = (PROGRAM, "convert", DEMO, self.folder / "out", "--dequantize")
        process = subprocess.run(in_container(*convert) if has_containers() else convert, capture_output=True)
        self.assertEqual(process.returncode, 0, process.stderr)
        self.assertNotIn("model-00009-of-00009.safetensors", self.names(self.folder / "out"))
        self.assertNotIn("chat_template.jinja", self.names(self.folder / "out"))


class Private(FilesTest):
    """What holds people's prompts is for them alone."""

    def setUp(self):
        super().setUp()
        before = os.umask(0o022)
        self.addCleanup(os.umask, before)

    def test_prompt_caches(self):
        one, other = self.folder / "one", self.folder / "other"
        self.ok("cache", "save", DEMO, "-p", "Once", "-o", one)
        self.ok("generate", DEMO, "-p", "Once", "--max-tokens", "2", "--cache-out", other)
        self.assertEqual([self.permissions(path) for path in (one, other)], [0o600, 0o600])
        copy = self.folder / "copy"
        self.ok("cache", "convert", one, copy)
        self.assertEqual(self.permissions(copy), 0o600)
        one.chmod(0o644)
        self.ok("cache", "save", DEMO, "-p", "Once", "-o", one)
        self.assertEqual(self.permissions(one), 0o600)

    def test_prefix_caches(self):
        folder = self.folder / "above" / "prefixes"
        self.ok("generate", DEMO, "-p", "Once upon a time", "--max-tokens", "2", "--prefix-cache-dir", folder)
        self.assertEqual(self.permissions(folder), 0o700)
        files = list(folder.iterdir())
        self.assertTrue(files)
        self.assertEqual({self.permissions(path) for path in files}, {0o600})

    def test_a_file_that_is_replaced_stays_as_private(self):
        page = self.write("page.safetensors", "before")
        page.chmod(0o600)
        self.ok("score", DEMO, "--text", "Once upon a time", "--logits", page)
        self.assertEqual(self.permissions(page), 0o600)


@unittest.skipUnless(has_containers(), "no process ids of their own here")
class Containers(FilesTest):
    """Processes that all have the id 1 share folders."""

    def test_pulls_into_one_cache(self):
        pulls = int(os.environ.get("SAKER_PULLS", "16"))
        hub = Hub()
        self.addCleanup(hub.close)
        texts = {f"part{i}.json": b'{"part": %d}' % i for i in range(20)}
        hub.add("org/model", {"config.json": b"{}", "model.safetensors": (DEMO / "model.safetensors").read_bytes(), **texts})
        environment = {**os.environ, "HF_HOME": str(self.folder / "home"), "HF_ENDPOINT": hub.address, "no_proxy": "*"}
        pull = in_container(PROGRAM, "pull", "org/model", "--json")
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            done = list(pool.map(lambda _: subprocess.run(pull, env=environment, capture_output=True, timeout=300), range(pulls)))
        self.assertEqual([process.stderr for process in done if process.returncode != 0], [])
        blobs = self.folder / "home/hub/models--org--model/blobs"
        self.assertEqual([name for name in self.names(blobs) if name.startswith(".")], [])

    def test_kills_and_starts_again(self):
        """Of converts, caches and prefix caches under one process id."""
        kills = int(os.environ.get("SAKER_KILLS", "12"))
        seconds = random.Random(7)
        jobs = [
            lambda out: ("convert", DEMO, out, "--dequantize"),
            lambda out: ("cache", "save", DEMO, "-p", "Once upon a time", "-o", out),
            lambda out: ("generate", DEMO, "-p", "Once upon a time", "--max-tokens", "2", "--prefix-cache-dir", out),
        ]
        for kill in range(kills):
            out = self.folder / f"out{kill % len(jobs)}"
            command = in_container(PROGRAM, *jobs[kill % len(jobs)](out))
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
            time.sleep(seconds.uniform(0.0, 0.4))
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            subprocess.run(["rm", "-rf", str(out)], check=True)
            done = subprocess.run(command, capture_output=True, timeout=120)
            self.assertEqual(done.returncode, 0, done.stderr)
        reference = self.folder / "reference"
        self.ok("convert", DEMO, reference, "--dequantize")
        self.ok("convert", DEMO, self.folder / "last", "--dequantize")
        self.assertEqual(self.names(self.folder / "last"), self.names(reference))


if __name__ == "__main__":
    unittest.main()
