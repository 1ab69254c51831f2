# SPDX-License-Identifier: Apache-2.0
"""OpenAI's Responses over a scripted model: custom tools, log-probabilities, allowed tools."""
import json
import unittest

from fake import FakeServerTest

PATH = "/v1/responses"
PATCH = "*** Begin\n\"quoted\" \\ é\n*** End"
CUSTOM = {"type": "custom", "name": "apply_patch", "description": "Edits files.",
          "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"}}
FUNCTION = {"type": "function", "name": "weather", "parameters": {"type": "object"}}


class Responses(FakeServerTest):
    SCRIPT = [
        {"when": "think", "events": [{"reasoning": "Let me see."}, {"content": "It is so."}]},
        {"when": "patch", "events": [{"call": {"id": "call_1", "name": "apply_patch", "arguments": json.dumps({"input": PATCH})}},
                                     {"call": {"id": "call_2", "name": "weather", "arguments": "{}"}}]},
        {"when": "broken", "events": [{"call": {"id": "call_3", "name": "apply_patch", "arguments": '{"inp'}}]},
    ]

    def ask(self, text, **more):
        return {"model": "fake", "input": text, **more}

    def test_custom_tools_take_text(self):
        body = self.ask("patch", tools=[CUSTOM, FUNCTION])
        output = self.post(PATH, body)["output"]
        self.assertEqual([(item["type"], item["call_id"]) for item in output],
                         [("custom_tool_call", "call_1"), ("function_call", "call_2")])
        self.assertEqual((output[0]["name"], output[0]["input"], output[0]["status"]), ("apply_patch", PATCH, "completed"))
        self.assertNotIn("arguments", output[0])
        events = self.stream(PATH, body)
        deltas = [data["delta"] for name, data in events if name == "response.custom_tool_call_input.delta"]
        done = [data for name, data in events if name == "response.custom_tool_call_input.done"]
        self.assertEqual("".join(deltas), PATCH)
        self.assertEqual([one["input"] for one in done], [PATCH])
        added = [data["item"] for name, data in events if name == "response.output_item.added"]
        finished = [data["item"] for name, data in events if name == "response.output_item.done"]
        self.assertEqual(done[0]["item_id"], added[0]["id"])
        for one, other in zip(added, finished):
            self.assertEqual([one[key] for key in ("id", "type", "call_id", "name")], [other[key] for key in ("id", "type", "call_id", "name")])
        self.assertEqual(finished, events[-2][1]["response"]["output"])
        self.assertEqual(self.post(PATH, self.ask("broken", tools=[CUSTOM]))["output"][0]["input"], '{"inp')

    def test_calls_of_custom_tools_come_back(self):
        first = self.post(PATH, self.ask("patch", tools=[CUSTOM]))
        result = {"type": "custom_tool_call_output", "call_id": "call_1", "output": "done"}
        other = {"type": "function_call_output", "call_id": "call_2", "output": "sun"}
        stored = self.post(PATH, {"model": "fake", "previous_response_id": first["id"], "input": [result, other]})
        asked = {"type": "message", "role": "user", "content": "patch"}
        sent = self.post(PATH, {"model": "fake", "input": [asked, *first["output"], result, other]})
        self.assertEqual(stored["usage"]["input_tokens"], sent["usage"]["input_tokens"])
        self.assertGreater(sent["usage"]["input_tokens"], first["usage"]["input_tokens"])

    def test_formats_of_custom_tools(self):
        def tool(**format):
            return self.ask("a", tools=[{"type": "custom", "name": "t", "format": format}])

        self.post(PATH, self.ask("a", tools=[{"type": "custom", "name": "t"}], tool_choice={"type": "custom", "name": "t"}))
        self.post(PATH, tool(type="text"))
        self.post(PATH, tool(type="grammar", syntax="regex", definition="[ab]+"))
        for wrong, param in ((tool(type="xml"), "tools[0].format.type"), (tool(type="grammar", syntax="gbnf", definition="a"), "tools[0].format.syntax"),
                             (tool(type="grammar", syntax="lark"), "tools[0].format.definition"), (self.ask("a", tools=[{"type": "custom"}]), "tools[0].name")):
            self.assertEqual(self.post(PATH, wrong, 400)["error"]["param"], param)

    def test_allowed_tools(self):
        tools = [FUNCTION, {"type": "function", "name": "clock", "description": "Tells the time of the day."}]
        one = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "weather"}]}
        allowed = self.post(PATH, self.ask("a", tools=tools, tool_choice=one))["usage"]["input_tokens"]
        self.assertEqual(allowed, self.post(PATH, self.ask("a", tools=[FUNCTION]))["usage"]["input_tokens"])
        for wrong in ({"mode": "maybe"}, {"tools": [{"type": "function", "name": "no"}]}, {"tools": "all"}):
            self.post(PATH, self.ask("a", tools=tools, tool_choice={**one, **wrong}), 400)
        nested = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "weather"}}]}}
        chat = {"messages": [{"role": "user", "content": "a"}], "tool_choice": nested,
                "tools": [{"type": "function", "function": {"name": "weather"}}]}
        self.post("/v1/chat/completions", chat)

    def test_log_probabilities(self):
        body = self.ask("think", include=["message.output_text.logprobs"], top_logprobs=2)
        part = self.post(PATH, body)["output"][-1]["content"][0]
        self.assertEqual("".join(entry["token"] for entry in part["logprobs"]), "It is so.")
        self.assertTrue(all(len(entry["top_logprobs"]) == 2 for entry in part["logprobs"]))
        events = self.stream(PATH, body)
        deltas = [entry for name, data in events if name == "response.output_text.delta" for entry in data["logprobs"]]
        self.assertEqual(deltas, part["logprobs"])
        self.assertEqual(self.post(PATH, self.ask("think"))["output"][-1]["content"][0]["logprobs"], [])
        self.assertEqual(self.post(PATH, self.ask("a", top_logprobs=21), 400)["error"]["param"], "top_logprobs")


if __name__ == "__main__":
    unittest.main()
