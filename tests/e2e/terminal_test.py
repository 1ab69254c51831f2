# SPDX-License-Identifier: Apache-2.0
"""What models, templates and names give to a terminal: text, and no orders."""
import os
import pathlib
import pty
import subprocess
import unicodedata

from saker import DEMO, PROGRAM, SakerTest, run

ESCAPE, CSI = 218, (129, 252)  # Tokens of the bundled model: the byte 1b; the two bytes of U+009B.
HOSTILE = "\x1b]0;title\x07\x1b]52;c;eA==\x07\u009b31m\u0085\x7f"
TURNED = "a\u202etxt.exe"


def on_terminal(*args, env=None):
    """Exit code and what came to stdout and stderr, each a terminal of its own."""
    ends = [pty.openpty(), pty.openpty()]
    process = subprocess.Popen([PROGRAM, *map(str, args)], stdin=subprocess.DEVNULL, stdout=ends[0][1], stderr=ends[1][1],
                               env={**os.environ, "NO_COLOR": "1", **(env or {})})
    for _, slave in ends:
        os.close(slave)
    seen = []
    for master, _ in ends:
        text = b""
        try:
            while chunk := os.read(master, 65536):
                text += chunk
        except OSError:  # Its last writer is gone.
            pass
        os.close(master)
        seen.append(text.decode().replace("\r\n", "\n"))
    return process.wait(), *seen


class Terminal(SakerTest):
    def harmless(self, text):
        """No control characters but line breaks and tabs."""
        bad = {f"{ord(c):04x}" for c in text if unicodedata.category(c) == "Cc" and c not in "\n\t"}
        self.assertEqual(bad, set(), repr(text[:400]))

    def test_answers(self):
        for tokens, raw, shown in (((ESCAPE,), "\x1b", "\\x1b"), (CSI, "\u009b", "\\xc2\\x9b")):
            ids = ",".join(map(str, tokens))
            self.assertEqual(self.ok("detokenize", DEMO, "--tokens", ids).decode(), raw + "\n")
            code, out, _ = on_terminal("detokenize", DEMO, "--tokens", ids)
            self.assertEqual((code, out), (0, shown + "\n"))
        bias = ("--logit-bias", '{"%d": 1000}' % ESCAPE, "--max-tokens", "4", "--temp", "0")
        for command in (("generate", DEMO, "-p", "hello"), ("run", DEMO, "-p", "hello")):
            with self.subTest(command):
                self.assertEqual(self.ok(*command, *bias).decode(), "\x1b" * 4 + "\n")
                code, out, _ = on_terminal(*command, *bias)
                self.assertEqual((code, out), (0, "\\x1b" * 4 + "\n"))

    def test_templates(self):
        model = self.demo_copy()
        (model / "chat_template.jinja").write_text(HOSTILE + "{{ messages[0].content }}")
        messages = self.write("m.json", '[{"role": "user", "content": "\\u001b[2J\\tan\\r\\nd"}]')
        self.assertIn("\x1b[2J", self.ok("template", model, "--messages", messages).decode())
        code, out, _ = on_terminal("template", model, "--messages", messages)
        self.assertEqual(code, 0)
        self.harmless(out)
        self.assertIn("\\x1b[2J\tan\nd", out)

    def test_names(self):
        for name in (HOSTILE, TURNED, "n" * 200):
            missing = self.folder / name / name
            for command in (("inspect", missing), ("generate", missing, "-p", "x"), ("score", "-f", missing), ("template", "--messages", missing),
                            ("convert", missing, missing), ("cache", "info", missing), ("create", "x", "-f", missing), (missing,),
                            ("generate", "-p", "x", "--adapter", missing), ("generate", "-p", "x", "--temp", missing)):
                with self.subTest(command=command):
                    done = run(*command)
                    self.assertIn(done.returncode, (1, 2))
                    self.harmless(done.stderr.decode())
                    self.assertNotIn("\u202e", done.stderr.decode())
                    self.assertLess(len(done.stderr), 10_000)

    def test_long_names(self):
        for command, env in ((("inspect", "x" * 100_000), {}), (("generate", "-p", "x", "--max-tokens", "1"), {"SAKER_CPU": "y" * 60_000}),
                             (("generate", "-p", "x", "--top-k", "z" * 100_000), {})):
            with self.subTest(command[0], env=bool(env)):
                done = run(*command, env=env)
                self.assertIn(done.returncode, (1, 2))
                self.assertLess(max(map(len, done.stderr.splitlines())), 4200)

    def test_listed_names(self):
        model = self.folder / "hub/models--org--name"
        snapshot = model / "snapshots" / ("a" * 40)
        snapshot.mkdir(parents=True)
        (snapshot / "config.json").write_text("{}")
        (model / "refs").mkdir()
        (model / "refs" / TURNED).write_text("a" * 40)
        env = {"HF_HUB_CACHE": str(self.folder / "hub"), "SAKER_MODELS": str(self.folder / "none")}
        self.assertIn(TURNED, self.ok("list", env=env).decode())
        code, out, _ = on_terminal("list", env=env)
        self.assertEqual(code, 0)
        self.harmless(out)
        self.assertIn("a\\xe2\\x80\\xaetxt.exe", out)

    def test_tensors(self):
        name = (HOSTILE + TURNED).encode("unicode_escape").decode().replace("\\x", "\\u00")
        header = ('{"%s":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}' % name).encode()
        path = self.write("x.safetensors", len(header).to_bytes(8, "little") + header + b"\0" * 4)
        code, out, err = on_terminal("inspect", path)
        self.harmless(out + err)
        self.assertNotIn("\u202e", out + err)
        self.assertTrue(pathlib.Path(path).exists())
        self.assertIn(code, (0, 1))
