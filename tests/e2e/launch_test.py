# SPDX-License-Identifier: Apache-2.0
"""`saker launch` with a stand-in for each agent, which writes down how it was called and asks the server once."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse

from saker import DEMO, PROGRAM, SakerTest, run

STAND_IN = """#!%s
import json, os, pathlib, re, sys, time, urllib.request
folder = pathlib.Path(__file__).parent
text = json.dumps(dict(os.environ)) + " ".join(sys.argv)
files = {path: pathlib.Path(path).read_text() for path in re.findall(r"/[^ \\"]*models[.]json", " ".join(sys.argv))}
if "PI_CODING_AGENT_DIR" in os.environ:
    files["pi"] = (pathlib.Path(os.environ["PI_CODING_AGENT_DIR"]) / "models.json").read_text()
address = re.search(r"http://127[.]0[.]0[.]1:[0-9]+", text + json.dumps(files))[0]
body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 3}
request = urllib.request.Request(address + "/v1/chat/completions", json.dumps(body).encode(), {"Authorization": "Bearer secret"})
with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as response:
    model = json.load(response)["model"]
(folder / "seen.json").write_text(json.dumps(
    {"args": sys.argv[1:], "environment": dict(os.environ), "address": address, "model": model, "files": files}))
if "wait" in sys.argv:
    time.sleep(60)
sys.exit(7)
""" % sys.executable


class Launch(SakerTest):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "tiny"
        shutil.copytree(DEMO, self.model)
        self.programs = self.folder / "bin"
        self.programs.mkdir()
        self.home = self.folder / "home"
        self.home.mkdir()
        self.temporary = self.folder / "tmp"
        self.temporary.mkdir()
        self.environment = {"PATH": str(self.programs), "HOME": str(self.home), "TMPDIR": str(self.temporary), "ANTHROPIC_API_KEY": "mine"}

    def install(self, agent):
        program = self.programs / agent
        program.write_text(STAND_IN)
        program.chmod(0o755)

    def launch(self, *args):
        """What the agent saw, and what was said of it."""
        done = run("launch", *args, env=self.environment)
        said = done.stderr.decode()
        self.assertEqual(done.returncode, 7, said)
        return json.loads((self.programs / "seen.json").read_text()), said

    def is_open(self, address):
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", urllib.parse.urlsplit(address).port)) == 0

    def test_each_agent(self):
        for agent in ("aider", "claude", "codex", "opencode", "pi", "qwen"):
            self.install(agent)
            seen, said = self.launch(agent, self.model, "--", "--say", "hello you")
            environment, args, address = seen["environment"], seen["args"], seen["address"]
            self.assertEqual((seen["model"], args[-2:]), ("tiny", ["--say", "hello you"]))
            if agent == "claude":
                self.assertEqual(environment["ANTHROPIC_BASE_URL"], address)
                self.assertEqual({environment[f"ANTHROPIC_{kind}MODEL"] for kind in ("", "DEFAULT_HAIKU_", "DEFAULT_OPUS_")}, {"tiny"})
                self.assertNotIn("ANTHROPIC_API_KEY", environment)
                self.assertIn("unsets ANTHROPIC_API_KEY", said)
            elif agent == "codex":
                self.assertIn(f'model_providers.saker.base_url="{address}/v1"', args)
                self.assertIn('model="tiny"', args)
            elif agent == "opencode":
                config = json.loads(environment["OPENCODE_CONFIG_CONTENT"])
                self.assertEqual(config["model"], "saker/tiny")
                self.assertEqual(config["provider"]["saker"]["models"]["tiny"]["limit"]["context"], 2048)
            elif agent == "pi":
                self.assertEqual(json.loads(seen["files"]["pi"])["providers"]["saker"]["models"][0]["id"], "tiny")
            else:
                self.assertIn(f"{address}/v1", (environment.get("OPENAI_BASE_URL"), environment.get("OPENAI_API_BASE")))
                self.assertEqual(environment["OPENAI_API_KEY"], "none")
            self.assertIn("runs " + str(self.programs / agent), said)
            self.assertFalse(self.is_open(address), "the server still runs")
            self.assertEqual(list(self.temporary.iterdir()), [])
            self.assertEqual(list(self.home.iterdir()), [])

    def test_a_server_that_runs(self):
        server = subprocess.Popen([PROGRAM, "serve", str(self.model), "--port", "0", "--api-key", "secret"], stderr=subprocess.PIPE, text=True,
                                  env={**os.environ, "SAKER_CONFIG": ""}, cwd=tempfile.gettempdir())
        self.addCleanup(server.stderr.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        address = next(found[0] for line in server.stderr if (found := re.search(r"http://127.0.0.1:\d+", line)))
        self.install("codex")
        for model in ((), ("tiny",), (self.model,), ("-m", "tiny")):
            seen, said = self.launch("codex", *model, "--server", address, "--api-key", "secret")
            self.assertEqual(seen["address"], address)
            self.assertEqual(seen["environment"]["SAKER_API_KEY"], "secret")
            self.assertNotIn("secret", said)
        self.assertTrue(self.is_open(address))
        seen, _ = self.launch("codex", "--server", address, "--api-key", "secret", "--", "exec", "--json", "", "a b", "--", "-m", "other")
        self.assertEqual((seen["model"], seen["args"][-7:]), ("tiny", ["exec", "--json", "", "a b", "--", "-m", "other"]))
        self.fails("launch", "codex", "no/model", "--server", address, "--api-key", "secret", env=self.environment, says="does not have the model 'no/model'")
        self.fails("launch", "codex", DEMO, "--server", address, "--api-key", "secret", env=self.environment, says="does not have the model")
        self.fails("launch", "codex", "--server", address, env=self.environment, says="no server of models answers")

    def test_what_is_refused(self):
        self.fails("launch", "claude", self.model, env=self.environment, says="claude is not installed: npm install -g @anthropic-ai/claude-code")
        self.install("claude")
        self.fails("launch", "claude", DEMO, env=self.environment, says="the demo model is too small for claude")
        self.fails("launch", "claude", "/no/such/model", env=self.environment, says="/no/such/model")
        self.fails("launch", "claude", "no/model", env={**self.environment, "HF_HUB_OFFLINE": "1"}, says="'saker pull no/model' fetches it")
        self.fails("launch", "claude", self.model, "extra", env=self.environment, says="extra", code=2)
        self.fails("launch", "claude", self.model, "--server", "http://127.0.0.1:1", env=self.environment, says="http://127.0.0.1:1")
        self.fails("launch", "clod", self.model, says="clod", code=2)
        (self.model / "config.json").write_text("{}")
        done = run("launch", "claude", self.model, env=self.environment)
        self.assertEqual(done.returncode, 1)
        self.assertIn("error: the server did not start: error: ", done.stderr.decode())
        self.assertEqual(list(self.temporary.iterdir()), [])

    def test_signals_end_all(self):
        self.install("claude")
        for number in (signal.SIGTERM, signal.SIGHUP):
            seen = self.programs / "seen.json"
            seen.unlink(missing_ok=True)
            process = subprocess.Popen([PROGRAM, "launch", "claude", str(self.model), "--", "wait"], stderr=subprocess.DEVNULL,
                                       env={**os.environ, "SAKER_CONFIG": "", **self.environment})
            end = time.monotonic() + 100
            while not (seen.exists() and seen.read_text()) and time.monotonic() < end:
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)  # The agent's business.
            time.sleep(0.2)
            self.assertIsNone(process.poll())
            process.send_signal(number)
            self.assertEqual(process.wait(30), -number)
            address = json.loads(seen.read_text())["address"]
            while self.is_open(address) and time.monotonic() < end:
                time.sleep(0.05)
            self.assertFalse(self.is_open(address))
            self.assertEqual(list(self.temporary.iterdir()), [])


if __name__ == "__main__":
    unittest.main()
