# SPDX-License-Identifier: Apache-2.0
"""Coding agents, run against the server with a scripted model: each writes a file by a tool call (aider: by a block of text), sees the
result, and says a last word. SAKER_AGENTS names the folder with their programs."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "server"))
from fake import Server  # noqa: E402

PROGRAMS = pathlib.Path(os.environ["SAKER_AGENTS"])
AIDER = os.environ.get("SAKER_AIDER", "aider")
QUESTION = "Please write the greeting."
LAST = "The greeting is written."
TEXT = "hello from saker\n"
COMMAND = "printf 'hello from saker\\n' > greeting.txt && echo it is done"
AIDER_EDIT = "greeting.txt\n```\n<<<<<<< SEARCH\n=======\n" + TEXT + ">>>>>>> REPLACE\n```\n"
CONTINUE = """name: saker
version: 1.0.0
schema: v1
models:
  - name: fake
    provider: openai
    model: fake
    apiBase: ADDRESS/v1
    apiKey: none
    capabilities: [tool_use]
    roles: [chat]
"""


def calls(name, arguments):
    return [{"call": {"id": "call_1", "name": name, "arguments": json.dumps(arguments)}}]


class Agents(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="saker-agents-"))
        self.work = self.folder / "work"
        self.work.mkdir()
        subprocess.run(["git", "init", "-q", self.work], check=True)
        self.home = self.folder / "home"
        self.home.mkdir()

    def ask(self, command, events, environment, result, files=None):
        """Runs the agent; `result` is in what its tool answers. ADDRESS is the server's, in `files` (by their paths), too."""
        script = {"context": 200_000, "answers": [
            {"when": QUESTION, "events": events}, {"when": result, "events": [{"content": LAST}]},
            {"events": [{"content": "ok"}]}]}
        server = Server(script)
        self.addCleanup(server.stop)
        for path, text in (files or {}).items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.replace("ADDRESS", server.address))
        environment = {name: value.replace("ADDRESS", server.address) for name, value in environment.items()}
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        start = time.monotonic()
        done = subprocess.run([str(word).replace("ADDRESS", server.address) for word in command], cwd=self.work, text=True, timeout=300,
                              env={**kept, "HOME": str(self.home), "TERM": "dumb", "CI": "1", **environment}, stdin=subprocess.DEVNULL,
                              capture_output=True)
        said = done.stdout + done.stderr
        self.assertEqual(done.returncode, 0, said[-3000:])
        self.assertTrue((self.work / "greeting.txt").exists(), said[-3000:])
        self.assertEqual((self.work / "greeting.txt").read_text().strip(), TEXT.strip())
        print(f"{pathlib.Path(str(command[0])).name}: {time.monotonic() - start:.1f} s", file=sys.stderr)
        return said

    def test_codex(self):
        settings = {"model": "fake", "model_provider": "saker", "model_providers.saker.name": "Saker",
                    "model_providers.saker.base_url": "ADDRESS/v1", "model_providers.saker.wire_api": "responses"}
        words = [word for key, value in settings.items() for word in ("-c", f"{key}={json.dumps(value)}")]
        said = self.ask([PROGRAMS / "codex", "exec", *words, "--dangerously-bypass-approvals-and-sandbox", QUESTION],
                        calls("exec_command", {"cmd": COMMAND}), {}, result="it is done")
        self.assertIn(LAST, said)

    def test_claude(self):
        models = {f"ANTHROPIC_{kind}MODEL": "fake" for kind in ("", "DEFAULT_HAIKU_", "DEFAULT_SONNET_", "DEFAULT_OPUS_")}
        said = self.ask([PROGRAMS / "claude", "-p", QUESTION, "--allowedTools", "Write"],
                        calls("Write", {"file_path": str(self.work / "greeting.txt"), "content": TEXT}),
                        {"ANTHROPIC_BASE_URL": "ADDRESS", "ANTHROPIC_AUTH_TOKEN": "none", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", **models},
                        result="greeting.txt")
        self.assertIn(LAST, said)

    def test_opencode(self):
        config = {"provider": {"saker": {"npm": "@ai-sdk/openai-compatible", "name": "Saker", "options": {"baseURL": "ADDRESS/v1", "apiKey": "none"},
                                         "models": {"fake": {"limit": {"context": 200_000, "output": 10_000}}}}}}
        said = self.ask([PROGRAMS / "opencode", "run", "-m", "saker/fake", QUESTION],
                        calls("write", {"filePath": str(self.work / "greeting.txt"), "content": TEXT}),
                        {"OPENCODE_CONFIG_CONTENT": json.dumps(config), "OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"},
                        result="rote file")
        self.assertIn(LAST, said)

    def test_qwen(self):
        said = self.ask([PROGRAMS / "qwen", "--auth-type", "openai", "--approval-mode", "yolo", "-p", QUESTION],
                        calls("write_file", {"file_path": str(self.work / "greeting.txt"), "content": TEXT}),
                        {"OPENAI_BASE_URL": "ADDRESS/v1", "OPENAI_API_KEY": "none", "OPENAI_MODEL": "fake"}, result="greeting.txt")
        self.assertIn(LAST, said)

    def test_continue(self):
        config = self.folder / "config.yaml"
        said = self.ask([PROGRAMS / "cn", "--config", config, "--allow", "Write", "-p", QUESTION],
                        calls("Write", {"filepath": str(self.work / "greeting.txt"), "content": TEXT}),
                        {"CONTINUE_TELEMETRY_ENABLED": "0", "CONTINUE_CLI_ENABLE_TELEMETRY": "0"}, result="uccess", files={config: CONTINUE})
        self.assertIn(LAST, said)

    def test_pi(self):
        home = self.folder / "pi"
        provider = {"baseUrl": "ADDRESS/v1", "api": "openai-completions", "apiKey": "none", "models": [{"id": "fake"}]}
        said = self.ask([PROGRAMS / "pi", "--provider", "saker", "--model", "fake", "-p", QUESTION],
                        calls("write", {"path": "greeting.txt", "content": TEXT}), {"PI_CODING_AGENT_DIR": str(home), "PI_OFFLINE": "1"},
                        result="rote", files={home / "models.json": json.dumps({"providers": {"saker": provider}})})
        self.assertIn(LAST, said)

    def test_aider(self):
        (self.work / "greeting.txt").write_text("")
        self.ask([AIDER, "--model", "openai/fake", "--no-show-model-warnings", "--no-analytics", "--no-check-update", "--yes", "--no-git",
                  "--edit-format", "diff", "--no-stream", "--message", QUESTION, "greeting.txt"],
                 [{"content": AIDER_EDIT}], {"OPENAI_API_BASE": "ADDRESS/v1", "OPENAI_API_KEY": "none", "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
                 result="no tool")


if __name__ == "__main__":
    unittest.main()
