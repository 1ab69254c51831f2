# SPDX-License-Identifier: Apache-2.0
"""`saker run`: one answer for pipes, a conversation on a terminal."""
import os
import signal
import time
import unittest
from xml.etree import ElementTree

from pseudo_terminal import Terminal, plain
from saker import DEMO, ROOT, SakerTest


class OneAnswer(SakerTest):
    def test_pipe_prints_only_the_answer(self):
        by_pipe = self.ok("run", DEMO, "--temp", "0", stdin=b"what is saker?\n").decode()
        self.assertEqual(by_pipe, self.ok("run", DEMO, "--temp", "0", "-p", "what is saker?").decode())
        self.assertTrue(by_pipe.strip())
        self.assertTrue(by_pipe.endswith("\n"))

    def test_several_lines_are_one_question(self):
        self.assertTrue(self.ok("run", DEMO, stdin=b"hello\nwho are you?\n").strip())


class Repl(SakerTest):
    def terminal(self, *args):
        return self.started("run", DEMO, "--temp", "0", *args)

    def started(self, *args, term="xterm"):
        terminal = Terminal(*args, state=self.folder, term=term)
        self.addCleanup(terminal.close)
        terminal.expect("> ")
        return terminal

    def test_conversation(self):
        terminal = self.terminal()
        terminal.type("/help\r")
        terminal.expect("/clear")
        terminal.expect("> ")
        terminal.type("hello\r")
        terminal.expect("\n")
        terminal.expect("> ")
        terminal.type("/stats\r")
        self.assertIn("1 turn", terminal.expect("tokens/s"))
        terminal.expect("> ")
        terminal.type("tell me a story\r")
        terminal.expect("> ")
        terminal.type("/stats\r")
        seen = terminal.expect("cached")
        self.assertIn("2 turns", seen)
        self.assertNotIn("(0 cached", seen)  # The second turn continues the first one's rows.
        terminal.type("/reset\r")
        terminal.expect("forgotten")
        terminal.expect("> ")
        terminal.type("/stats\r")
        terminal.expect("no answer yet")
        terminal.type("/nonsense\r")
        self.assertIn("a space before", terminal.expect("as a question"))
        terminal.type("/quit\r")
        self.assertEqual(terminal.process.wait(timeout=30), 0)
        self.assertIn("tell me a story", (self.folder / "saker" / "history").read_text())

    def test_picture_shows_a_real_conversation(self):
        picture = ElementTree.parse(ROOT / "docs" / "terminal.svg").getroot()
        lines = ["".join(text.itertext()) for text in picture.findall("{http://www.w3.org/2000/svg}text")]
        shown = "\n".join(lines).split("\n> ")
        turns = [turn.split("\n", 1) for turn in shown[1:]]
        self.assertEqual(turns.pop(), ["/quit"])
        terminal = self.started("run", DEMO)
        for question, answer in turns:
            terminal.type(question + "\r")
            terminal.expect("\n")
            said = plain(terminal.expect("> "))
            self.assertEqual(said, " ".join(answer.split()) + "\n> ")

    def test_interrupt_stops_the_answer_and_not_the_program(self):
        endless = self.demo_copy(max_position_embeddings=1 << 20)  # However late the signal comes.
        terminal = self.started("run", endless, "--temp", "0", "--ignore-eos", "--max-tokens", "100000")
        terminal.type("hello\r")
        terminal.expect("\n")
        time.sleep(0.3)
        os.killpg(os.getpgid(terminal.process.pid), signal.SIGINT)
        terminal.expect("[stopped]")
        terminal.expect("> ")
        terminal.type("/quit\r")
        self.assertEqual(terminal.process.wait(timeout=30), 0)

    def test_end_of_input_leaves(self):
        terminal = self.terminal()
        terminal.type("\x04")
        self.assertEqual(terminal.process.wait(timeout=30), 0)

    def test_interrupt_at_the_prompt_clears_then_leaves(self):
        terminal = self.terminal()
        terminal.type("half a line\x03")
        terminal.expect("again")
        terminal.expect("> ")
        terminal.type("\x03")
        self.assertEqual(terminal.process.wait(timeout=30), 0)

    def test_interrupt_at_the_prompt_of_a_plain_terminal_leaves(self):
        terminal = self.started("run", DEMO, term="dumb")
        terminal.type("\x03")
        self.assertEqual(terminal.process.wait(timeout=30), -signal.SIGINT)

    def test_lines_typed_ahead_are_all_asked(self):
        for term in ("xterm", "dumb"):
            with self.subTest(term):
                terminal = self.started("run", DEMO, "--max-tokens", "4", term=term)
                terminal.type("hello\rwho are you?\rwhat does a fox eat?\r/stats\r")
                self.assertIn("3 turns", terminal.expect("tokens/s"))

    def test_lines_beyond_any_buffer_are_all_asked(self):
        terminal = self.terminal("--max-tokens", "1")
        lines = [f"question {i} of them all, what is it now?" for i in range(30)]
        terminal.type("\r".join(lines) + "\r/stats\r")
        self.assertIn("30 turns", terminal.expect("tokens/s"))
        terminal.type("/quit\r")
        terminal.process.wait(timeout=30)
        self.assertIn("question 29", (self.folder / "saker" / "history").read_text())

    def test_lines_typed_while_it_loads_are_asked(self):
        terminal = Terminal("run", DEMO, "--max-tokens", "4", state=self.folder)
        self.addCleanup(terminal.close)
        terminal.type("hello\nwho are you?\n/stats\n")
        self.assertIn("2 turns", terminal.expect("tokens/s"))

    def test_a_bracketed_paste_is_one_question(self):
        terminal = self.terminal("--max-tokens", "4")
        terminal.type("\x1b[200~hello\rwho are you?\rbye\x1b[201~\r/stats\r")
        self.assertIn("1 turn", terminal.expect("tokens/s"))
        terminal.type("/quit\r")
        terminal.process.wait(timeout=30)
        history = (self.folder / "saker" / "history").read_text()
        self.assertIn("who are you?", history)
        self.assertIn("bye", history)

    def test_questions_may_begin_with_a_slash(self):
        terminal = self.terminal("--max-tokens", "4")
        for question in ("/no_think hello", "/etc/hosts", "/quit is what I said", " /reset", "/no_think", "//", "/"):
            terminal.type(question + "\r")
        terminal.type("/stats \r")
        seen = terminal.expect("tokens/s")
        self.assertIn("7 turns", seen)
        self.assertNotIn("unknown", seen)

    def test_a_line_that_is_not_utf8_is_refused_alone(self):
        for term in ("xterm", "dumb"):
            with self.subTest(term):
                terminal = self.started("run", DEMO, "--temp", "0", term=term)
                terminal.type(b"caf\xe9\r")
                terminal.expect("error: the line is not UTF-8")
                terminal.expect("> ")
                terminal.type("/stats\r")
                terminal.expect("no answer yet")
                terminal.type("/quit\r")
                self.assertEqual(terminal.process.wait(timeout=30), 0)

    def test_an_answer_cut_where_the_context_ends(self):
        terminal = self.terminal("--ignore-eos", "--max-tokens", "100000")
        terminal.type("hello\r")
        terminal.expect("/clear begins anew", timeout=300)


if __name__ == "__main__":
    unittest.main()
