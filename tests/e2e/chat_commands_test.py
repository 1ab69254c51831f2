# SPDX-License-Identifier: Apache-2.0
"""Each command of the chat, and what a terminal does to it, on a pseudo-terminal."""
import json
import os
import re
import signal
import time
import unittest

from pseudo_terminal import Terminal
from saker import DEMO, PROGRAM, SakerTest, run

WHO = "Who are you?"
FOX = "What does a fox eat?"


class Chat(SakerTest):
    def started(self, *args, model=DEMO, **options):
        terminal = Terminal("run", model, "--temp", "0", *args, state=self.folder, **options)
        self.addCleanup(terminal.close)
        self.banner = terminal.prompt()
        return terminal

    def leave(self, terminal, command="/bye"):
        terminal.type(command + "\r")
        self.assertEqual(terminal.process.wait(timeout=30), 0)

    def saved(self, terminal, name="chat.json"):
        path = self.folder / name
        self.assertIn("saved", terminal.ask(f"/save {path}"))
        return json.loads(path.read_text())

    def thinking_model(self):
        """A model whose answer to WHO has markers instead of its first word and its first comma. Its template has a switch."""
        model = self.demo_copy()
        tokenizer = json.loads((model / "tokenizer.json").read_text())
        vocabulary, merges = tokenizer["model"]["vocab"], tokenizer["model"]["merges"]
        for piece, marker in (("I", "<think>"), (",", "</think>")):
            vocabulary[marker] = vocabulary.pop(piece)
            merges = [merge for merge in merges if piece not in (merge.split(" ") if isinstance(merge, str) else merge)]
        tokenizer["model"]["merges"] = merges
        (model / "tokenizer.json").write_text(json.dumps(tokenizer))
        config = json.loads((model / "tokenizer_config.json").read_text())
        source = (model / "chat_template.jinja").read_text() if (model / "chat_template.jinja").exists() else config.pop("chat_template")
        (model / "tokenizer_config.json").write_text(json.dumps(config))
        (model / "chat_template.jinja").write_text(source + "{% if enable_thinking is defined and not enable_thinking %}My name is Saker{% endif %}")
        return model


class Commands(Chat):
    def test_leave(self):
        for command in ("/bye", "/quit", "/exit", "/q"):
            with self.subTest(command):
                self.leave(self.started(), command)

    def test_help(self):
        terminal = self.started()
        for command in ("/?", "/help", "/help "):
            shown = terminal.ask(command, until="says more")
            for name in ("/set", "/system", "/think", "/model", "/show", "/stats", "/undo", "/regen", "/compact", "/clear", "/save", "/load", "/bye", "Alt-Enter"):
                self.assertIn(name, shown)
            terminal.prompt()

    def test_banner(self):
        self.started()
        for word in (DEMO.name, "qwen3", "8 bits", "parameters", " MB", "context 2048", "greedy", "draft: dflash"):
            self.assertIn(word, self.banner)
        self.started("--draft", "none")
        self.assertIn("draft: none", self.banner)

    def test_undo_and_regen(self):
        terminal = self.started()
        who = terminal.ask(WHO)
        fox = terminal.ask(FOX)
        self.assertNotEqual(who, fox)
        self.assertIn("greedy", again := terminal.ask("/regen"))
        self.assertTrue(again.endswith(fox), again)
        self.assertEqual(len(self.saved(terminal)), 4)
        self.assertIn("fox", terminal.ask("/undo"))
        self.assertEqual([m["content"] for m in self.saved(terminal)], [WHO, who.removesuffix("\n")])
        self.assertEqual(terminal.ask(FOX), fox)
        terminal.ask("/undo")
        terminal.ask("/undo")
        self.assertIn("error: there is no question", terminal.ask("/undo"))
        self.assertIn("error: there is no question", terminal.ask("/regen"))

    def test_regen_of_sampled_answers_differs_unless_a_seed_is_given(self):
        story = "Tell me a story."
        terminal = self.started()
        terminal.ask("/set temp 2.0")
        answers = {terminal.ask(story), *(terminal.ask("/regen") for _ in range(3))}
        self.assertGreater(len(answers), 1)
        terminal.ask("/set seed 7")
        answers = {terminal.ask("/regen") for _ in range(3)}
        self.assertEqual(len(answers), 1)

    def test_saved_conversations_go_on_as_if_nothing_was(self):
        terminal = self.started("--system", "Be brief.")
        terminal.ask(WHO)
        messages = self.saved(terminal)
        self.assertEqual([m["role"] for m in messages], ["system", "user", "assistant"])
        self.assertEqual(os.stat(self.folder / "chat.json").st_mode & 0o077, 0)
        fox = terminal.ask(FOX)
        self.leave(terminal)
        other = self.started()
        self.assertIn("1 turn", other.ask(f"/load {self.folder}/chat.json"))
        self.assertEqual(other.ask(FOX), fox)
        self.assertIn("Be brief.", other.ask("/system"))
        self.assertTrue(self.ok("template", DEMO, "--messages", self.folder / "chat.json"))

    def test_files_that_are_no_conversations(self):
        notes = self.write("notes.txt", "mine")
        terminal = self.started()
        self.assertIn("not replaced", terminal.ask(f"/save {notes}"))
        self.assertEqual(notes.read_text(), "mine")
        self.assertIn("error:", terminal.ask(f"/load {notes}"))
        self.assertIn("error:", terminal.ask("/load /nowhere/at/all.json"))
        self.assertIn("error:", terminal.ask("/save"))
        terminal.ask(f"/read {notes}")
        terminal.ask("Who?")
        self.assertEqual(self.saved(terminal)[0]["content"], "mine\n\nWho?")
        terminal.ask(f"/read {self.write('long.txt', 'long ' * 4000)}")
        self.assertIn("the model's context is 2048 tokens long", terminal.ask("What?"))
        self.assertNotIn("error", terminal.ask("What?"))

    def test_settings(self):
        terminal = self.started()
        self.assertIn("greedy", terminal.ask("/set"))
        self.assertIn("temperature = 0.7; sampling: temperature 0.7", terminal.ask("/set temp 0.7"))
        self.assertIn("temperature 0.7, top_p 0.9", terminal.ask("/set parameter top_p 0.9"))
        self.assertIn("greedy", terminal.ask("/set temperature 0"))
        self.assertIn("expected", terminal.ask("/set top_p 7"))
        self.assertIn("error:", terminal.ask("/set nonsense 1"))
        self.assertIn("error:", terminal.ask("/set temp hot"))
        terminal.ask("/set num_predict 3")
        self.assertIn("[cut at the token limit", terminal.ask(FOX))
        self.assertIn("max_tokens = 4", terminal.ask("/set max-tokens 4"))
        terminal.ask("/set num_predict 3")
        self.assertIn("max_tokens    3", terminal.ask("/show settings"))
        terminal.ask("/set max_tokens default")
        self.assertNotIn("[cut", terminal.ask(FOX))
        terminal.ask("/set verbose")
        self.assertIn("tokens/s", terminal.ask(FOX))

    def test_wrong_settings_are_called_as_they_were_typed(self):
        terminal = self.started()
        for typed, says in (
            ("top_p 2", "error: /set top_p: got 2, expected a number from 0 to 1"), ("temperature hot", "error: /set temperature: got string 'hot', expected"),
            ("parameter num_predict 0", "error: /set parameter num_predict: got 0, expected 1 or more"), ("top-k 1.5", "error: /set top-k: got 1.5, expected an integer"),
            ("seed -1", "error: /set seed: got -1, expected"), ("repeat_penalty 1000", "error: /set repeat_penalty: got 1000, expected"),
            ("ignore_eos maybe", "error: /set ignore_eos: got string 'maybe', expected true or false"), ("top_k 99999999999", "error: /set top_k: 99999999999 is out of range"),
            ('logit_bias {"x":1}', "error: /set logit_bias: got x: 1, expected"), ("kwargs 5", "error: /set kwargs: got 5, expected an object"),
            ("think perhaps", "error: /set think: got 'perhaps', expected"), ("kv_bits 3", "error: /set kv_bits: got 3, expected"),
            ("max_kv_size -1", "error: /set max_kv_size: got -1, expected"), ("speculate wildly", "error: /set speculate: got"), ("stop", "error: /set stop: the value is missing"),
            ("prompt x", "error: /set prompt: there is no such setting"), ("adapter x", "error: /set adapter: there is no such setting"),
            ("num_ctx 5", "error: /set num_ctx: there is no such setting"), ("top_kk 1", "did you mean top_k?"), ("nonsense default", "no such setting"),
        ):
            seen = terminal.ask("/set " + typed)
            self.assertIn(says, seen)
            self.assertNotIn("PARAMETER", seen)
        terminal.ask("/set num_predict 3")
        terminal.ask("/set num_predict default")
        self.assertNotIn("[cut", terminal.ask(FOX))

    def test_errors_are_wrapped_at_words(self):
        terminal = self.started(columns=30)
        seen = terminal.ask("/set top_p 2")
        self.assertEqual(seen.replace("\n", " "), "error: /set top_p: got 2, expected a number from 0 to 1 ")
        self.assertLessEqual(max(map(len, seen.split("\n"))), 30)

    def test_system_messages(self):
        terminal = self.started()
        self.assertIn("no system message", terminal.ask("/system"))
        terminal.ask("/system You are a \"quoted\" fox.")
        self.assertIn("You are a \"quoted\" fox.", terminal.ask("/show system"))
        self.assertEqual(self.saved(terminal), [{"role": "system", "content": "You are a \"quoted\" fox."}])
        terminal.ask("/system off")
        self.assertIn("no system message", terminal.ask("/system"))

    def test_models_change_and_the_conversation_stays(self):
        other = self.demo_copy()
        terminal = self.started()
        terminal.ask(WHO)
        fox = terminal.ask(FOX)
        terminal.ask("/undo")
        self.assertIn("qwen3", terminal.ask(f"/model {other}"))
        self.assertEqual(terminal.ask(FOX), fox)
        self.assertIn("error:", terminal.ask("/model no/such-model"))
        self.assertIn(str(other), terminal.ask("/show model"))
        self.assertEqual(len(self.saved(terminal)), 4)

    def test_clear(self):
        for command in ("/clear", "/reset", "/new"):
            with self.subTest(command):
                terminal = self.started("--system", "Be brief.")
                terminal.ask(WHO)
                self.assertIn("forgotten", terminal.ask(command))
                self.assertEqual([m["role"] for m in self.saved(terminal)], ["system"])

    def test_show(self):
        terminal = self.started()
        terminal.ask(WHO)
        shown = terminal.ask("/show", until="1 turn")
        for word in ("model", "path", "quantization", "context", "sampling", "max_tokens", "think"):
            self.assertIn(word, shown)
        terminal.prompt()
        self.assertIn("user: " + WHO, terminal.ask("/show messages"))
        self.assertIn("error:", terminal.ask("/show nonsense"))

    def test_wrong_commands_name_the_nearest(self):
        terminal = self.started()
        self.assertIn("did you mean /undo?", terminal.ask("/udno"))
        self.assertIn("did you mean /system?", terminal.ask("/sistem You are a fox."))

    def test_compact(self):
        terminal = self.started()
        self.assertIn("error: there is nothing", terminal.ask("/compact"))
        terminal.ask(WHO)
        terminal.ask(FOX)
        self.assertIn("stands for 2 turns", terminal.ask("/compact"))
        self.assertEqual(len(self.saved(terminal)), 2)

    def test_the_oldest_turns_leave_a_full_context(self):
        terminal = self.started("--max-tokens", "8", model=self.demo_copy(max_position_embeddings=128))
        for number in range(12):
            seen = terminal.ask(f"question {number}: what does a fox eat, and where does it live?")
            self.assertNotIn("error", seen)
            if "left: the model's context of 128 tokens is full" in seen:
                break
        else:
            self.fail("no turn left")
        self.assertIn(f"question {number}", self.saved(terminal)[-2]["content"])
        self.assertLess(len(self.saved(terminal)), 2 * number)


class Thinking(Chat):
    def test_thoughts_are_told_from_answers(self):
        model = self.thinking_model()
        answer = self.json("generate", model, "--chat", "-p", WHO, "--temp", "0", "--json")
        self.assertEqual(answer["text"].split("</think>", 1)[1].strip(), answer["content"])
        self.assertEqual(answer["text"].split("</think>", 1)[0].removeprefix("<think>").strip(), answer["reasoning"])
        self.assertTrue(answer["reasoning"])
        self.assertTrue(answer["content"])
        record = {"messages": [{"role": "user", "content": WHO}], "think": False}
        answer_without = self.json("generate", model, "-f", self.write("r.jsonl", json.dumps(record)), "--temp", "0", "--json")
        self.assertEqual((answer_without["reasoning"], answer_without["content"]), ("", answer_without["text"]))
        self.assertNotIn("content", self.json("generate", model, "-p", WHO, "--max-tokens", "4", "--json"))
        self.assertEqual(self.ok("run", model, "-p", WHO, "--temp", "0").decode(), answer["content"] + "\n")

    def test_prompts_may_open_the_thoughts(self):
        model = self.thinking_model()
        (model / "chat_template.jinja").write_text((model / "chat_template.jinja").read_text() + "<think>\n")
        answer = self.json("generate", model, "--chat", "-p", WHO, "--temp", "0", "--max-tokens", "5", "--json")
        self.assertEqual((answer["reasoning"], answer["content"]), (answer["text"].strip(), ""))

    def test_on_a_terminal(self):
        model = self.thinking_model()
        terminal = self.started(model=model)
        seen = terminal.ask(WHO)
        self.assertRegex(seen, r"^\[thinking\]\n(?s:.+)\n\[thought for [0-9.]+ s\]\n\n.+")
        self.assertNotIn("</think>", seen.split("[thought")[0])
        message = self.saved(terminal)[-1]
        self.assertEqual(set(message), {"role", "content", "reasoning_content"})
        self.assertIn(message["reasoning_content"], terminal.ask("/show thoughts"))
        terminal.ask("/think fold")
        seen = terminal.ask(WHO)
        self.assertNotIn("[thinking]", seen)
        self.assertIn("[thought for", seen)
        self.assertIn("thinking: off", terminal.ask("/think off"))
        self.assertNotIn("thought", terminal.ask(WHO))
        self.assertIn("thinking: auto", terminal.ask("/think auto"))
        self.assertIn("error:", terminal.ask("/think perhaps"))

    def test_thoughts_are_dimmed(self):
        terminal = self.started(model=self.thinking_model(), env={"NO_COLOR": ""})
        terminal.type(WHO + "\r")
        seen = terminal.expect("thought for")
        dimmed = "".join(re.findall(r"\x1b\[2m(.*?)\x1b\[0m", seen, re.DOTALL))  # However the answer is cut into pieces.
        self.assertIn("am the demo model", " ".join(dimmed.split()))
        self.assertNotIn("\x1b[2m", terminal.expect("small language model").split("\n", 1)[1])

    def test_a_cut_while_thinking_is_said(self):
        done = run("run", self.thinking_model(), "-p", WHO, "--temp", "0", "--max-tokens", "3")
        self.assertEqual(done.returncode, 0)
        self.assertIn("still thinking", done.stderr.decode())


class Screen(Chat):
    def test_no_colors_where_nobody_wants_them(self):
        for options, wanted in (({"env": {"NO_COLOR": ""}}, True), ({}, False), ({"term": "dumb", "env": {"NO_COLOR": ""}}, False)):
            with self.subTest(options):
                terminal = Terminal("run", DEMO, state=self.folder, **options)
                self.addCleanup(terminal.close)
                self.assertEqual(bool(re.search(r"\x1b\[[0-9;]*m", terminal.expect("> "))), wanted)

    def test_words_are_wrapped(self):
        terminal = self.started(columns=24)
        seen = terminal.ask(WHO)
        self.assertGreater(seen.count("\n"), 3)
        self.assertLessEqual(max(map(len, seen.split("\n"))), 24)
        terminal.resize(60)
        terminal.ask("/clear")
        wide = terminal.ask(WHO)
        self.assertTrue(24 < max(map(len, wide.split("\n"))) <= 60, wide)
        terminal.ask("/set nowordwrap")
        terminal.ask("/clear")
        whole = terminal.ask(WHO)
        self.assertEqual(whole.count("\n"), 1)
        self.assertEqual(seen.split(), whole.split())

    def test_what_is_typed_meanwhile_is_not_in_the_answer(self):
        terminal = self.started("--ignore-eos", "--max-tokens", "400")
        terminal.type(WHO + "\r")
        terminal.expect("\n")
        terminal.expect("a")
        self.assertFalse(terminal.echoes())
        terminal.type("zqzq")
        seen = terminal.expect("[cut")
        self.assertNotIn("zq", seen)
        terminal.expect("> ")
        terminal.expect("zqzq")

    def test_a_shell_may_have_set_the_terminal_meanwhile(self):
        terminal = self.started("--ignore-eos")
        terminal.type(WHO + "\r")
        terminal.expect("I am")
        terminal.process.send_signal(signal.SIGSTOP)
        os.waitpid(terminal.process.pid, os.WUNTRACED)
        terminal.set_echo()
        terminal.process.send_signal(signal.SIGCONT)
        terminal.expect("a")
        end = time.monotonic() + 30
        while terminal.echoes() and time.monotonic() < end:
            time.sleep(0.05)
        self.assertFalse(terminal.echoes())

    def test_the_terminal_is_given_back(self):
        for signal_number in (None, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(signal_number):
                terminal = self.started("--ignore-eos")
                before_prompt = terminal.echoes()
                self.assertFalse(before_prompt)
                if signal_number is None:
                    self.leave(terminal)
                else:
                    terminal.type(WHO + "\r")
                    terminal.expect("\n")
                    terminal.process.send_signal(signal_number)
                    self.assertEqual(terminal.process.wait(timeout=30), -signal_number)
                self.assertTrue(terminal.echoes())

    def test_control_c_keeps_what_was_said(self):
        endless = self.demo_copy(max_position_embeddings=1 << 20)  # However late the key comes.
        terminal = self.started("--ignore-eos", "--max-tokens", "100000", model=endless)
        terminal.type(WHO + "\r")
        terminal.expect("I am")
        terminal.type("\x03")
        terminal.expect("[stopped]")
        terminal.prompt()
        self.assertEqual([m["role"] for m in self.saved(terminal)], ["user", "assistant"])
        self.assertIn("taken back", terminal.ask("/undo"))
        self.assertIn("berries", terminal.ask(FOX, until="berries"))

    def test_pasted_and_typed_texts_of_several_lines(self):
        terminal = self.started("--max-tokens", "4")
        texts = (("\x1b[200~one\rtwo\x1b[201~", "one\ntwo"), ('"""one\rtwo\rthree"""', "one\ntwo\nthree"), ('"""\rone\r  two\r"""', "one\n  two"),
                 ("one\\\rtwo", "one\ntwo"), ("\x1b[200~a\tb\x1b[201~", "a\tb"))
        for typed, _ in texts:
            terminal.ask(typed, until="[cut")
            terminal.prompt()
        asked = [m["content"] for m in self.saved(terminal) if m["role"] == "user"]
        self.assertEqual(asked, [meant for _, meant in texts])

    def test_alt_enter_begins_another_line(self):
        terminal = self.started("--max-tokens", "4")
        texts = (("one\x1b\rtwo", "one\ntwo"), ("one\x1b\r\x1b\r  two", "one\n\n  two"), ("one\x1b\ntwo", "one\ntwo"))
        for typed, _ in texts:
            terminal.ask(typed, until="[cut")
            terminal.prompt()
        terminal.ask("one\ntwo", until="[cut")  # A line feed alone is Enter, for programs that type.
        terminal.expect("[cut")
        terminal.prompt()
        asked = [m["content"] for m in self.saved(terminal) if m["role"] == "user"]
        self.assertEqual(asked, [meant for _, meant in texts] + ["one", "two"])

    def test_a_paste_without_brackets_loses_nothing(self):
        terminal = self.started("--max-tokens", "2")
        lines = ["def f(x):", "    return x", "caf\u00e9 \u65e5\u672c\u8a9e \U0001f469\u200d\U0001f4bb", "/etc/hosts", "\tindented"]
        terminal.type("\r".join(lines) + "\r")
        for _ in lines:
            terminal.expect("[cut")
        terminal.prompt()
        asked = [m["content"] for m in self.saved(terminal) if m["role"] == "user"]
        self.assertEqual(asked, lines)

    def test_tab_completes(self):
        (self.folder / "my_chat.json").write_text('[{"role": "user", "content": "hi"}]')
        terminal = self.started()
        terminal.type("/und\t\r")
        terminal.expect("error: there is no question")
        terminal.prompt()
        terminal.type("/think of\t\r")
        terminal.expect("thinking: off")
        terminal.prompt()
        terminal.type("/set top_\tp\t0.5\r")
        terminal.expect("greedy")
        terminal.prompt()
        self.assertRegex(terminal.ask("/show settings"), "top_p +0.5")
        terminal.type(f"/load {self.folder}/my_ch\t\r")
        terminal.expect("1 turn now")

    def test_a_dumb_terminal(self):
        terminal = self.started(term="dumb", model=DEMO)
        terminal.type(FOX + "\r")
        self.assertIn("berries", terminal.prompt())
        terminal.type('"""one\rtwo"""\r')
        terminal.prompt()
        terminal.type("/bye\r")
        self.assertEqual(terminal.process.wait(timeout=30), 0)


class Limits(SakerTest):
    def test_no_limit(self):
        for command in (("generate", DEMO, "-p", "Once"), ("run", DEMO, "-p", FOX)):
            with self.subTest(command[0]):
                done = run(*command, "--max-tokens", "-1", "--temp", "0")
                self.assertEqual(done.returncode, 0, done.stderr.decode())
                self.assertTrue(done.stdout)
        record = {"prompt": "Once upon a time", "max_tokens": -1}
        model = self.demo_copy(max_position_embeddings=64)
        answer = self.json("generate", model, "-f", self.write("r.jsonl", json.dumps(record)), "--ignore-eos")
        self.assertEqual((answer["finish_reason"], len(answer["prompt_tokens"]) + len(answer["tokens"])), ("length", 65))
        for wrong in ("0", "-2"):
            self.fails("generate", DEMO, "-p", "x", "--max-tokens", wrong, says=f"error: --max-tokens: got {wrong}, expected 1 or more, or -1 for no limit", code=2)
        record = self.write("wrong.jsonl", '{"id": 1, "prompt": "x", "max_tokens": 0}')
        self.assertIn("max_tokens: got 0, expected 1", run("generate", DEMO, "-f", record).stdout.decode())

    def test_cut_answers_are_said_on_standard_error(self):
        for command in (("generate", DEMO, "-p", "Once upon"), ("run", DEMO, "-p", WHO)):
            with self.subTest(command[0]):
                done = run(*command, "--max-tokens", "3", "--temp", "0")
                self.assertEqual(done.returncode, 0)
                self.assertIn("cut after 3 tokens", done.stderr.decode())
                self.assertIn("--max-tokens", done.stderr.decode())
                self.assertNotIn("cut", done.stdout.decode())
        model = self.demo_copy(max_position_embeddings=64)
        done = run("run", model, "-p", WHO, "--temp", "0", "--ignore-eos")
        self.assertIn("cut where the model's context of 64 tokens ends", done.stderr.decode())
        done = run("run", DEMO, "-p", FOX, "--temp", "0")
        self.assertEqual(done.stderr.decode(), "")


if __name__ == "__main__":
    unittest.main()
