# SPDX-License-Identifier: Apache-2.0
"""What each API refuses: known members that can't be honoured, and prompts beyond the context. Unknown members are ignored."""
import json
import unittest

from fake import USER, FakeServerTest

SCHEMA = {"type": "json_schema"}
# For each path a request, and members that make it a 400 which names them.
REFUSED = {
    "/v1/chat/completions": ({"messages": USER}, {
        "audio": {"voice": "alloy", "format": "mp3"}, "web_search_options": {"search_context_size": "low"}, "modalities": ["text", "audio"],
        "documents": [{"text": "a"}], "chat_template": "{{ messages }}", "echo": True, "return_progress": True, "lora": [{"id": 0}],
        "n_probs": 3, "prediction": {"content": 5}, "add_generation_prompt": False, "mirostat": 2, "stop_token_ids": [1], "bad_words": ["a"], "allowed_token_ids": [1],
        "include_stop_str_in_output": True, "truncate_prompt_tokens": 5, "repetition_detection": {"max_pattern_size": 5},
        "logits_processors": ["a"], "use_beam_search": True, "samplers": ["mirostat"], "grammar": "root ::= \"a\"",
        "temperature": -1, "top_p": 2, "min_p": -1, "top_k": -2, "n": 0, "max_completion_tokens": 0, "presence_penalty": 1000, "seed": "a",
        "logit_bias": {"99999999": 1}, "top_logprobs": 3, "stop": [""], "stream_options": {"include_usage": True}, "tool_choice": "required",
        "reasoning_effort": "huge", "response_format": {"type": "xml"}, "tools": [{"type": "computer"}], "xtc_threshold": 2,
        "dry_base": 0, "repetition_penalty": -1, "priority": "first", "cache_salt": "", "chat_template_kwargs": [], "min_tokens": -1,
        "structured_outputs": {"structural_tag": "a"}, "guided_regex": 5, "thinking_token_budget": -1}),
    "/v1/completions": ({"prompt": "a"}, {
        "prompt_embeds": "AAAA", "return_token_ids": True, "best_of": 7, "logprobs": 99, "max_tokens": -1, "mirostat": 1, "n": 10**6,
        "use_beam_search": True}),
    "/v1/responses": ({"input": "a"}, {
        "background": True, "conversation": "conv_1", "prompt": {"id": "p"}, "max_tool_calls": 3, "truncation": "middle",
        "max_output_tokens": 0, "text": {"format": {"type": "xml"}}}),
    "/v1/messages": ({"messages": USER, "max_tokens": 5}, {
        "container": "c", "mcp_servers": [{"name": "a"}], "thinking": {"type": "deep"}, "tool_choice": {"type": "any"}, "max_tokens": 0,
        "stop_sequences": [""], "temperature": -1, "top_k": "a"}),
    "/api/chat": ({"model": "fake", "messages": USER, "stream": False}, {"think": "huge", "format": "xml", "options": {"mirostat": 1}}),
    "/api/generate": ({"model": "fake", "prompt": "a", "stream": False}, {
        "template": "{{ .Prompt }}", "context": [1, 2], "images": ["AAAA"]}),
    "/v1/embeddings": ({"input": "a"}, {"truncate_prompt_tokens": 5, "encoding_format": "int8", "dimensions": 0}),
}
LONG = "a b c d e f g h " * 400


class Refused(FakeServerTest):
    def test_members_that_can_not_be_honoured(self):
        self.assertGreaterEqual(sum(len(members) for _, members in REFUSED.values()), 60)
        for path, (base, members) in REFUSED.items():
            for name, value in members.items():
                error = self.post(path, {**base, name: value}, status=400)["error"]
                if path.startswith("/v1/") and path != "/v1/messages":
                    self.assertEqual(error["param"].split(".")[0].split("[")[0], name, (path, error))
                self.assertIn(name, error if isinstance(error, str) else error["message"], (path, name))

    def test_members_that_ask_for_nothing(self):
        for path, (base, members) in REFUSED.items():
            self.post(path, {**base, **{name: None for name in members if name not in base}})

    def test_unknown_members_are_logged_once(self):
        for _ in range(3):
            self.post("/v1/chat/completions", {"messages": USER, "no_such_member": {"a": 1}})
        _, err, _ = self.server.stop()
        self.assertEqual(err.count("no_such_member"), 1, err)

    def test_prompts_beyond_the_context(self):
        messages = [{"role": "user", "content": LONG}]
        for path, body in {
            "/v1/chat/completions": {"messages": messages}, "/v1/completions": {"prompt": LONG}, "/v1/responses": {"input": LONG},
            "/v1/messages": {"messages": messages, "max_tokens": 5}, "/api/chat": {"model": "fake", "messages": messages},
            "/api/generate": {"model": "fake", "prompt": LONG},
        }.items():
            for stream in (False, True):
                error = self.post(path, {**body, "stream": stream}, status=400)["error"]
                self.assertRegex(json.dumps(error), r"\d{4} tokens.*2048", path)


if __name__ == "__main__":
    unittest.main()
