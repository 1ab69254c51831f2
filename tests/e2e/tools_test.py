# SPDX-License-Identifier: Apache-2.0
"""Tools: calls that are forced and read, with drafts and without; budgets of reasoning; choices, JSON objects and GBNF."""
import json
import unittest

from saker import DEMO, SakerTest
from generate_test import answer

WHO = "Who are you?"
TOOLS = [{"type": "function", "function": {"name": name, "description": "d", "parameters": {
    "type": "object", "properties": {key: {"type": "string", "enum": ["Rome", "Oslo"]}}, "required": [key],
    "additionalProperties": False}}} for name, key in (("get_weather", "city"), ("get_time", "zone"))]
FORMS = {
    "objects": "<tool_call>\n{\"name\": \"{{ f.name }}\", \"arguments\": {{ f.arguments | tojson }}}\n</tool_call>\n",
    "tags": "<tool_call>\n<function={{ f.name }}>\n{% for k, v in f.arguments.items() %}<parameter={{ k }}>\n{{ v }}\n"
            "</parameter>\n{% endfor %}</function>\n</tool_call>\n",
    "named": "[TOOL_CALLS]{{ f.name }}[ARGS]{{ f.arguments | tojson }}",
}


class Tools(SakerTest):
    def model(self, form="objects", end=""):
        model = self.folder / "model"
        if not model.exists():
            self.demo_copy()
        (model / "chat_template.jinja").write_text(
            "{% if tools %}{{ tools | tojson }}{% endif %}{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
            "{{ message['content'] }}{% for c in message.tool_calls or [] %}{% set f = c.function %}" + FORMS[form] +
            "{% endfor %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n" + end + "{% endif %}")
        return model

    def ask(self, model, *args):
        return self.json("generate", model, "--chat", "-p", WHO, "--max-tokens", "300", "--temp", "1", "--seed", "3", "--json", *args)

    def tools(self):
        return self.write("tools.json", json.dumps(TOOLS))

    def check(self, call):
        arguments = json.loads(call["arguments"])
        key = {"get_weather": "city", "get_time": "zone"}[call["name"]]
        self.assertEqual(list(arguments), [key])
        self.assertIn(arguments[key], ["Rome", "Oslo"])
        self.assertTrue(call["id"])

    def test_forced_calls(self):
        for form in FORMS:
            with self.subTest(form):
                model = self.model(form)
                got = self.ask(model, "--tools", self.tools(), "--tool-choice", "required", "--parallel-tool-calls", "off")
                self.assertEqual(got["finish_reason"], "tool_calls")
                self.assertEqual((got["content"], got["reasoning"], len(got["tool_calls"])), ("", "", 1))
                self.check(got["tool_calls"][0])
                named = self.ask(model, "--tools", json.dumps(TOOLS), "--tool-choice", "get_time", "--parallel-tool-calls", "off")
                self.assertEqual(named["tool_calls"][0]["name"], "get_time")
                self.check(named["tool_calls"][0])

    def test_drafts_change_nothing(self):
        model = self.model()
        options = ["--tools", self.tools(), "--tool-choice", "required", "--logprobs", "1"]
        plain = self.ask(model, *options, "--speculate", "none")
        for drafts in (["--speculate", "prompt-lookup", "--draft-depth", "7"], ["--draft", DEMO, "--draft-depth", "4"]):
            self.assertEqual(answer(self.ask(model, *options, *drafts)), answer(plain))

    def test_without_a_choice_an_answer_is_text(self):
        model = self.model()
        got = self.ask(model, "--tools", self.tools())
        self.assertEqual((got["tool_calls"], got["content"]), ([], got["text"]))
        none = self.ask(model, "--tools", self.tools(), "--tool-choice", "none")
        self.assertEqual(none["tool_calls"], [])

    def test_a_cut_call_is_no_call(self):
        got = self.json("generate", self.model(), "--chat", "-p", WHO, "--max-tokens", "12", "--json", "--tools", self.tools(),
                        "--tool-choice", "required")
        self.assertEqual((got["finish_reason"], got["tool_calls"], got["content"]), ("length", [], ""))

    def test_errors(self):
        self.fails("generate", self.model(), "--chat", "-p", WHO, "--tools", self.tools(), "--tool-choice", "get_thyme", says="get_thyme")
        self.fails("generate", self.model(), "--chat", "-p", WHO, "--tool-choice", "required", says="tools")
        self.fails("generate", DEMO, "--chat", "-p", WHO, "--tools", self.tools(), "--tool-choice", "required", says="shows no calls")

    def test_histories_with_calls(self):
        call = {"id": "call_1", "type": "function", "function": {"name": "get_time", "arguments": "{\"zone\": \"Oslo\"}"}}
        messages = [{"role": "user", "content": WHO}, {"role": "assistant", "content": "", "tool_calls": [call]},
                    {"role": "tool", "tool_call_id": "call_1", "content": "12:30"}]
        record = self.write("r.jsonl", json.dumps({"messages": messages, "tools": TOOLS, "tool_choice": "get_weather",
                                                   "parallel_tool_calls": False, "max_tokens": 200}))
        got = self.json("generate", self.model(), "-f", record)
        self.assertEqual([c["name"] for c in got["tool_calls"]], ["get_weather"])

    def test_run_prints_calls(self):
        out = self.ok("run", self.model(), "-p", WHO, "--tools", self.tools(), "--tool-choice", "get_time",
                      "--parallel-tool-calls", "off").decode()
        self.assertRegex(out, r'get_time \{"zone": ?"(Rome|Oslo)"\}\n$')

    def test_a_budget_ends_the_reasoning(self):
        model = self.model(end="<think>\n")
        options = ["--reasoning-budget", "5", "--max-tokens", "40"]
        got = self.ask(model, *options)
        self.assertIn("</think>", got["text"])
        self.assertLess(len(got["reasoning"]), 60)
        for drafts in (["--speculate", "prompt-lookup", "--draft-depth", "7"], ["--draft", DEMO, "--draft-depth", "4"]):
            self.assertEqual(answer(self.ask(model, *options, *drafts))["tokens"], got["tokens"])
        forced = self.ask(model, *options[:2], "--tools", self.tools(), "--tool-choice", "required", "--parallel-tool-calls", "off")
        self.assertEqual(len(forced["tool_calls"]), 1)


class Constraints(SakerTest):
    def generate(self, *args):
        return self.json("generate", DEMO, "-p", WHO, "--max-tokens", "200", "--json", "--temp", "1", "--seed", "1", *args)

    def test_choices(self):
        for seed in range(4):
            self.assertIn(self.generate("--choices", "a \"b\"", "--choices", "Zoë", "--seed", seed)["text"], ["a \"b\"", "Zoë"])

    def test_json_objects(self):
        self.assertTrue(self.generate("--json-object")["text"].startswith("{"))
        self.fails("generate", DEMO, "-p", WHO, "--json-object", "--regex", "a", says="another constraint")

    def test_gbnf(self):
        grammar = self.write("list.gbnf", 'root ::= "[" word ("," word){1,4} "]"\nword ::= [a-z]{1,5}\n')
        self.assertRegex(self.generate("--grammar", grammar)["text"], r"^\[[a-z]{1,5}(,[a-z]{1,5}){1,4}\]$")
        broken = self.write("broken.gbnf", "root ::= <[10]>\n")
        self.fails("generate", DEMO, "-p", WHO, "--grammar", broken, says="line 1")


if __name__ == "__main__":
    unittest.main()
