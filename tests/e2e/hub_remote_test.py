# SPDX-License-Identifier: Apache-2.0
"""Models that are not on this machine yet: the question on a terminal, a look at them by ranges, and a hub that is out of reach."""
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time

from gguf_test import contents, gguf
from hub_test import FILES, REPO, TIMEOUT, WEIGHTS, HubTest
from saker import DEMO, PROGRAM, ROOT, run

PROMPT = ("-p", "Once", "--max-tokens", "3", "--json")
QUESTION = "[Y/n] "


class Terminal:
    """The program with its input and messages on a terminal, and its answers in a pipe."""

    def __init__(self, *args, env):
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen([PROGRAM, *map(str, args)], stdin=slave, stdout=subprocess.PIPE, stderr=slave,
                                        env={**os.environ, **env, "NO_COLOR": "1"}, start_new_session=True)
        os.close(slave)
        self.seen = ""

    def read(self):
        try:
            chunk = os.read(self.master, 65536).decode(errors="replace")
        except OSError:  # Nobody writes any more.
            return False
        self.seen += chunk
        return bool(chunk)

    def wait_for(self, text, limit=60):
        deadline = time.monotonic() + limit
        while text not in self.seen:
            ready, _, _ = select.select([self.master], [], [], max(0, deadline - time.monotonic()))
            assert ready and self.read(), f"no {text!r} in {self.seen!r}"

    def type(self, text):
        os.write(self.master, text.encode())

    def end(self):
        """Exit code, standard output, and all that was seen."""
        while self.read():
            pass
        out = self.process.stdout.read()
        self.process.stdout.close()
        code = self.process.wait(60)
        os.close(self.master)
        return code, out, self.seen


class Question(HubTest):
    def setUp(self):
        super().setUp()
        self.hub.add(REPO, FILES)

    def start(self, *args, **more):
        return Terminal(*args, env=self.env(**more))

    def test_yes(self):
        for answer in ("\n", "y\n"):
            shutil.rmtree(self.home, ignore_errors=True)
            terminal = self.start("generate", REPO, *PROMPT)
            terminal.wait_for(QUESTION)
            self.assertIn(f"asking {self.hub.address[7:]} about {REPO}", terminal.seen)
            self.assertRegex(terminal.seen, rf"{REPO} is not on this machine: [0-9.]+ MB in {len(FILES)} files")
            self.assertFalse(self.model().exists())
            terminal.type(answer)
            code, out, _ = terminal.end()
            self.assertEqual(code, 0)
            self.assertEqual(json.loads(out)["tokens"], self.json("generate", *PROMPT)["tokens"])

    def question(self, *args):
        """What is asked, with the answer no."""
        terminal = self.start(*args)
        terminal.wait_for(QUESTION)
        terminal.type("n\n")
        return terminal.end()[2].split("not on this machine: ")[1].split(QUESTION)[0]

    def test_it_says_whether_the_model_runs_and_fits(self):
        self.assertRegex(self.question("generate", REPO, *PROMPT), r"^[0-9.]+ MB in \d+ files\. It runs here, with [0-9.]+ MB of the memory of [0-9.]+ .B\. Fetch it\? $")
        self.hub.add("org/other", {**FILES, "config.json": json.dumps({**json.loads(FILES["config.json"]), "model_type": "gemma3n"}).encode()})
        self.assertRegex(self.question("run", "org/other", "-p", "x"), r"files\. It does not run here: [^\n]*gemma3n[^\n]*\. Fetch it\? $")
        self.hub.add("org/draft", FILES)
        self.assertRegex(self.question("generate", "--draft", "org/draft", *PROMPT), r"files\. Fetch it\? $")

    def test_it_is_asked_where_that_is_not_known(self):
        self.hub.add("org/broken", {**FILES, WEIGHTS: b"\xff" * 20_000})
        self.assertRegex(self.question("generate", "org/broken", *PROMPT), r"files\. Fetch it\? $")

    def test_no(self):
        for answer in ("n\n", "what?\n", "\x04"):
            terminal = self.start("generate", REPO, *PROMPT)
            terminal.wait_for(QUESTION)
            terminal.type(answer)
            code, out, seen = terminal.end()
            self.assertEqual((code, out), (1, b""))
            self.assertIn(f"error: {REPO} was not fetched", seen)
            self.assertFalse(self.model().exists())

    def test_ctrl_c(self):
        terminal = self.start("generate", REPO, *PROMPT)
        terminal.wait_for(QUESTION)
        terminal.process.send_signal(signal.SIGINT)
        code, _, seen = terminal.end()
        self.assertEqual(code, 1)
        self.assertIn("error: interrupted", seen)
        self.assertFalse(self.model().exists())

    def test_pull_flag_asks_nothing(self):
        terminal = self.start("generate", REPO, *PROMPT, "--pull")
        code, _, seen = terminal.end()
        self.assertEqual(code, 0, seen)
        self.assertNotIn(QUESTION, seen)

    def test_which_gguf_model(self):
        self.hub.add("org/gguf", {"x-Q4_0.gguf": gguf(*contents()), "x-Q8_0.gguf": b"x"})
        terminal = self.start("generate", "org/gguf", *PROMPT)
        terminal.wait_for(QUESTION)
        self.assertRegex(terminal.seen, r"x-Q4_0.gguf, [0-9.]+ kB \(one of 2 GGUF models, org/gguf:NAME takes another\)")
        terminal.type("n\n")
        terminal.end()

    def test_nobody_is_asked(self):
        for args, more in (((REPO,), {"HF_HUB_OFFLINE": "1"}), (("model",), {})):
            code, _, seen = self.start("generate", *args, *PROMPT, **more).end()
            self.assertEqual(code, 1)
            self.assertIn("is neither a folder nor in the hub cache", seen)
        self.refused("generate", REPO, *PROMPT, says="--pull with this command")
        self.assertEqual(self.hub.requests, [])


class OutOfReach(HubTest):
    def closed_port(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            return f"http://127.0.0.1:{taken.getsockname()[1]}"

    def test_refused(self):
        begin = time.monotonic()
        for args in (("pull", REPO), ("generate", REPO, *PROMPT, "--pull"), ("inspect", REPO)):
            self.refused(*args, says="127.0.0.1 can't be reached", HF_ENDPOINT=self.closed_port())
        self.refused("pull", REPO, says="is this machine offline?", HF_ENDPOINT="http://hub.invalid")
        self.assertLess(time.monotonic() - begin, 40)  # Six attempts each would take a minute.

    def test_a_word_on_the_terminal(self):
        code, _, seen = Terminal("pull", REPO, env=self.env(HF_ENDPOINT=self.closed_port())).end()
        self.assertEqual(code, 1)
        self.assertRegex(seen, rf"asking 127.0.0.1:\d+ about {REPO}")
        self.assertIn("trying again", seen)

    def test_a_hub_that_has_answered_is_waited_for(self):
        self.hub.add(REPO, FILES)
        self.hub.faults[WEIGHTS] = [{"drop": True}] * 3
        self.same(self.pull(REPO), FILES)


class Look(HubTest):
    """`inspect` of what is not fetched."""

    def look(self, name=REPO, *args, **more):
        return self.json("inspect", name, *args, "--json", env=self.env(**more))

    def assert_like_the_folder(self, found, folder):
        local = self.json("inspect", folder, "--json")
        hub = found.pop("hub")
        for report in (found, local):
            del report["path"]
        self.assertEqual(found, local)
        return hub

    def test_as_if_it_were_here(self):
        temporary = self.folder / "temporary"
        temporary.mkdir()
        folder = ROOT / "tests/golden/qwen3_q4"
        files = {path.name: path.read_bytes() for path in folder.iterdir() if path.name in {"config.json", "tokenizer.json", WEIGHTS}}
        for source, contents_of in ((DEMO, FILES), (folder, files)):
            with self.subTest(source):
                self.hub.add(REPO, contents_of)
                commit = self.hub.models[REPO]["refs"]["main"]
                copy = self.folder / source.name
                copy.mkdir()
                for name, data in contents_of.items():
                    (copy / name).write_bytes(data)
                hub = self.assert_like_the_folder(self.look(TMPDIR=str(temporary)), copy)
                self.assertEqual((hub["commit"], hub["bytes"]), (commit, sum(map(len, contents_of.values()))))
        self.assertFalse(self.cache.exists())
        self.assertEqual(list(temporary.iterdir()), [])
        text = self.ok("inspect", REPO, env=self.env()).decode()
        self.assertIn(f"'{REPO}': qwen3 model", text)
        self.assertRegex(text, r"on the hub +[0-9.]+ [kM]B in \d+ files, not fetched, [0-9.]+ [MGTP]B are free here")

    def test_only_headers_come(self):
        weights = bytes(20_000_000)
        header = json.dumps({"model.embed_tokens.weight": {"dtype": "F32", "shape": [5_000_000, 1], "data_offsets": [0, 20_000_000]}}).encode()
        self.hub.add(REPO, {"config.json": FILES["config.json"], "tokenizer.json": b"x" * 3_000_000,
                            WEIGHTS: struct.pack("<Q", len(header)) + header + weights})
        found = self.look()
        self.assertEqual(found["tensors"][0]["shape"], [5_000_000, 1])
        self.assertLess(self.hub.sent, 200_000)
        # A server that knows no ranges is stopped.
        self.hub.faults[WEIGHTS] = [{"ignore_range": True}]
        self.assertEqual(self.look()["tensors"], found["tensors"])
        # A longer header than is asked for first.
        header = json.dumps({"__metadata__": {"x": "y" * 300_000}, "a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}).encode()
        self.hub.add(REPO, {"config.json": FILES["config.json"], WEIGHTS: struct.pack("<Q", len(header)) + header + b"x"})
        self.assertEqual(len(self.look()["tensors"]), 1)

    def test_gguf(self):
        keys, tensors = contents()
        model = gguf({**keys, "filler": "z" * 3_000_000}, tensors)
        self.hub.add(REPO, {"x-Q4_0.gguf": model, "x-Q8_0.gguf": b"x"})
        found = self.look(REPO + ":Q4_0")
        self.assertTrue(found["runnable"], found.get("reason"))
        self.assert_like_the_folder(found, self.write("x-Q4_0.gguf", model))
        self.assertFalse(self.cache.exists())

    def test_what_does_not_run(self):
        config = json.loads(FILES["config.json"])
        self.hub.add(REPO, {**FILES, "config.json": json.dumps({**config, "model_type": "gemma3n"}).encode()})
        found = self.look()
        self.assertFalse(found["runnable"])
        self.assertIn("gemma3n", found["reason"])
        self.assertNotIn(tempfile.gettempdir(), json.dumps(found))

    def test_lies(self):
        huge = struct.pack("<Q", 99_000_000)
        for files, says in (
            ({WEIGHTS: b"x" * 20_000}, "a header of"),
            ({WEIGHTS: b"short"}, "too short for a safetensors file"),
            ({WEIGHTS: huge + b"{" * 20_000}, "the file ends inside the header"),
            ({WEIGHTS: struct.pack("<Q", 5_000) + b"[" * 20_000}, "does not begin with '{'"),
            ({"config.json": b"{", WEIGHTS: FILES[WEIGHTS]}, "byte "),
            ({"x.gguf": b"x" * 20_000}, "does not begin with GGUF"),
            ({"x.gguf": b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 1 << 60) + bytes(20_000)}, "a key is ''"),
        ):
            with self.subTest(says):
                self.hub.add(REPO, {**({} if "x.gguf" in files else {"config.json": FILES["config.json"]}), **files})
                message = self.refused("inspect", REPO, says=says)
                self.assertNotIn(tempfile.gettempdir(), message)

    def test_sizes_that_lie(self):
        self.hub.add(REPO, FILES)
        self.hub.change_entries = lambda entries: [{**entry, "size": 1 << 49, "lfs": {**entry["lfs"], "size": 1 << 49}} if "lfs" in entry
                                                   else entry for entry in entries]
        self.refused("inspect", REPO, says="the hub's size is")
        self.hub.file_headers = {name: {"X_Linked_Size": str(1 << 49)} for name in FILES}
        done = run("inspect", REPO, env=self.env(), timeout=60)  # Bytes that are not there: an error, or a model that lacks them.
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.hub.change_entries = lambda entries: [entry if "lfs" in entry else {**entry, "size": 1 << 40} for entry in entries]
        self.refused("inspect", REPO, says="expected at most")

    def test_answers_that_lie(self):
        self.hub.add(REPO, FILES)
        self.hub.faults["config.json"] = [{"flip": 1}]
        self.refused("inspect", REPO, says="config.json: what came has the digest")
        self.hub.file_headers = {WEIGHTS: {"X_Linked_Etag": '"%s"' % ("0" * 64)}}
        self.refused("inspect", REPO, says="the hub's etag is")

    def test_slow_and_broken(self):
        self.hub.add(REPO, FILES)
        self.hub.faults[WEIGHTS] = [{"cut": 100}, {"drop": True}, {"status": 503}]
        self.assertTrue(self.look(**TIMEOUT)["runnable"])

    def test_tokens_stay_with_the_hub(self):
        self.hub.add(REPO, FILES)
        self.hub.tokens[REPO] = "hf_secret"
        self.refused("inspect", REPO, says="needs a token")
        self.look(HF_TOKEN="hf_secret")
        self.assertTrue(self.hub.asked("cdn"))
        for _, headers in self.hub.asked("cdn"):
            self.assertNotIn("Authorization", headers)

    def test_adapters(self):
        folder = ROOT / "tests/golden/adapters/mlx_lora_q4"
        self.hub.add("org/adapter", {path.name: path.read_bytes() for path in folder.iterdir()})
        found = self.look("org/adapter")
        self.assertEqual(found["kind"], "adapter")

    def test_names(self):
        for says in ("'org/none' is neither a folder nor in the hub cache", "there is no such model"):
            self.refused("inspect", "org/none", says=says)
            code, _, seen = Terminal("generate", "org/none", "-p", "x", env=self.env()).end()
            self.assertEqual(code, 1)
            self.assertIn(says, seen.replace("\r\n", ""))
        self.refused("generate", "qwen3:0.6b", "-p", "x", says="a model of ollama is ollama:qwen3:0.6b")
        self.refused("inspect", "model", says="is neither a folder nor in the hub cache")
        self.refused("inspect", REPO, says="HF_HUB_OFFLINE", HF_HUB_OFFLINE="1")
        self.assertIsNone(re.search("pull", self.refused("inspect", "/none", says="does not exist")))
