# SPDX-License-Identifier: Apache-2.0
"""Output that goes nowhere: a full disk is one clear line, a reader that went away ends the program quietly."""
import os
import pty
import signal
import subprocess
import tempfile
import unittest

from saker import DEMO, PROGRAM, SakerTest, run

HAS_FULL = os.path.exists("/dev/full")
LONG = ["--tokens", "5,6", "--max-tokens", "300", "--ignore-eos"]


class Output(SakerTest):
    def commands(self):
        """Every command that prints, in each of its ways."""
        messages = self.write("m.json", '[{"role": "user", "content": "hi"}]')
        asked = self.write("r.jsonl", '{"tokens": [5, 6], "max_tokens": 300, "ignore_eos": true}\n' * 40)
        scored = self.write("s.jsonl", '{"tokens": [5, 6, 7]}\n' * 2000)
        return [
            ["--help"], ["--version"], ["generate", "--help"],
            ["generate", DEMO, *LONG], ["generate", DEMO, *LONG, "--json"], ["generate", DEMO, "-f", asked],
            ["run", DEMO, "-p", "hello"], ["tokenize", DEMO, "-t", "hi"], ["detokenize", DEMO, "--tokens", "5"],
            ["template", DEMO, "--messages", messages],
            ["bench", DEMO, "-p", "4", "-n", "4", "-r", "1"], ["bench", DEMO, "-p", "4", "-n", "4", "-r", "1", "--json"],
            ["score", DEMO, "--text", "hello you"], ["score", DEMO, "--text", "hello", "--json"],
            ["score", DEMO, "-f", scored], ["inspect", DEMO], ["inspect", DEMO, "--json"],
        ]

    def finish(self, args, **streams):
        """Exit code and standard error of a run with these streams."""
        streams = {"stdin": subprocess.DEVNULL, "stderr": subprocess.PIPE, **streams}
        done = subprocess.run([PROGRAM, *map(str, args)], timeout=120, cwd=tempfile.gettempdir(), **streams)
        return done.returncode, (done.stderr or b"").decode()

    def test_messages_come_as_asked_for(self):
        args = ("generate", DEMO, "-p", "hello", "--chat", "--max-tokens", "4")
        expected = self.ok(*args)
        for level, seen in (("trace", ("trace: prompt: ", "trace: pass: ", "trace: cache: ", "debug: request", "info: loaded")),
                            ("debug", ("debug: request", "info: loaded")), ("info", ("info: loaded",)), ("warn", ("warning: the answer was cut after 4 tokens",)), ("off", ())):
            for options, env in ((("--log-level", level), {}), ((), {"SAKER_LOG": level})):
                with self.subTest(level=level, env=env):
                    done = run(*args, *options, env=env)
                    self.assertEqual((done.returncode, done.stdout), (0, expected))
                    log = done.stderr.decode()
                    for text in seen:
                        self.assertIn(text, log)
                    self.assertEqual(bool(log), bool(seen))
        self.assertIn(b"loaded", run("--log-level", "info", *args, env={"SAKER_LOG": "off"}).stderr)
        self.fails(*args, "--log-level", "loud", says="loud", code=2)
        self.assertIn(b"SAKER_LOG", run(*args, env={"SAKER_LOG": "loud"}).stderr)

    @unittest.skipUnless(HAS_FULL, "no /dev/full")
    def test_full_disk(self):
        for args in self.commands():
            with self.subTest(args), open("/dev/full", "wb") as full:
                code, message = self.finish(args, stdout=full)
                self.assertEqual(code, 1, message)
                self.assertEqual(message, "error: standard output takes no more: No space left on device\n")

    def test_reader_that_went_away(self):
        for args in self.commands():
            for restored in (True, False):  # Whatever the parent does with the signal.
                with self.subTest(args, restored=restored):
                    reader, writer = os.pipe()
                    os.close(reader)
                    try:
                        got = self.finish(args, stdout=writer, restore_signals=restored)
                    finally:
                        os.close(writer)
                    self.assertEqual(got, (-signal.SIGPIPE, ""))

    def test_reader_that_takes_one_line(self):
        path = self.write("r.jsonl", '{"tokens": [5], "max_tokens": 400, "ignore_eos": true}\n' * 200)
        with subprocess.Popen([PROGRAM, "generate", DEMO, "-f", path], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            self.assertTrue(process.stdout.readline().startswith(b'{"prompt_tokens":[5]'))
            process.stdout.close()
            self.assertEqual(process.wait(timeout=60), -signal.SIGPIPE)
            self.assertEqual(process.stderr.read(), b"")

    def test_closed_output(self):
        for args in self.commands():
            with self.subTest(args):
                code, message = self.finish(args, preexec_fn=lambda: os.close(1))
                self.assertEqual((code, len(message.splitlines())), (1, 1), message)
                self.assertTrue(message.startswith("error: standard output takes no more"), message)

    @unittest.skipUnless(HAS_FULL, "no /dev/full")
    def test_errors_that_nobody_can_see(self):
        with open("/dev/full", "wb") as full:
            both = {"stdout": full, "stderr": full}
            self.assertEqual(self.finish(["generate", DEMO, "-v", *LONG], **both)[0], 1)
            self.assertEqual(self.finish(["inspect", "/nonexistent"], **both)[0], 1)
            self.assertEqual(self.finish(["dance"], **both)[0], 2)
            self.assertEqual(
                self.finish(["generate", DEMO, "-v", *LONG], stdout=subprocess.DEVNULL, stderr=full)[0], 0
            )

    @unittest.skipUnless(HAS_FULL, "no /dev/full")
    def test_chat_with_a_full_disk(self):
        master, slave = pty.openpty()
        try:
            with open("/dev/full", "wb") as full:
                code, message = self.finish(["run", DEMO], stdin=slave, stdout=full)
        finally:
            os.close(master)
            os.close(slave)
        self.assertEqual(code, 1)
        self.assertIn("standard output takes no more", message)


if __name__ == "__main__":
    unittest.main()
