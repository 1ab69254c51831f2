# SPDX-License-Identifier: Apache-2.0
"""Many clients of `saker serve` at once, with requests of all kinds: each answer has the bits of its solo run. SAKER_LOAD_CLIENTS and
SAKER_LOAD_REQUESTS set how many."""
import concurrent.futures
import json
import os
import random
import socket
import unittest

from server import ServerTest

CLIENTS = int(os.environ.get("SAKER_LOAD_CLIENTS", "16"))
REQUESTS = int(os.environ.get("SAKER_LOAD_REQUESTS", "6"))
CHAT = "/v1/chat/completions"
THINGS = ["foxes", "rain", "bread", "the sea", "trains", "snow"]
SCHEMA = {"type": "object", "properties": {"size": {"enum": ["small", "large"]}}, "required": ["size"], "additionalProperties": False}
TOOL = {"type": "function", "function": {"name": "measure", "parameters": SCHEMA}}


def kinds():
    """Requests, and how to take each one's answer."""
    for i, thing in enumerate(THINGS):
        chat = {"messages": [{"role": "user", "content": f"Tell me about {thing}."}], "max_tokens": 12 + 3 * i, "seed": i, "temperature": i % 3}
        yield CHAT, {**chat, "n": 1 + i % 2, "logprobs": True, "top_logprobs": 2}
        yield CHAT, {**chat, "stream": True, "logprobs": True}
        yield CHAT, {**chat, "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}}
        yield CHAT, {**chat, "tools": [TOOL], "max_tokens": 20}
        yield "/v1/messages", {"messages": chat["messages"], "max_tokens": 10, "temperature": 0, "stream": i % 2 == 0}
        yield "/v1/completions", {"prompt": f"Once upon a time {thing}", "echo": True, "logprobs": 1, "max_tokens": 0}
        yield "/v1/score", {"text": f"There was a fox who loved {thing}."}


def plain(value):
    """Without what differs between requests of one kind: ids, times, counts of found rows."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items() if key not in ("id", "created", "created_at", "usage")}
    return [plain(one) for one in value] if isinstance(value, list) else value


def joined(events):
    """The text, its log-probabilities and the ends of a stream, however it is cut into pieces."""
    text, entries, ends = "", [], []
    for event in events:
        for choice in event.get("choices", []):
            text += choice["delta"].get("content") or ""
            entries += (choice.get("logprobs") or {}).get("content", [])
            ends += [choice["finish_reason"]] if choice["finish_reason"] else []
        delta = event.get("delta", {})
        text += delta.get("text", "")
        ends += [delta["stop_reason"]] if delta.get("stop_reason") else []
    assert text and ends, events
    return text, entries, ends


class Load(ServerTest):
    def answer(self, path, body):
        status, data = self.request(path, body)
        self.assertEqual(status, 200, data)
        if not body.get("stream"):
            return plain(json.loads(data))
        return joined([json.loads(line[6:]) for line in data.decode().splitlines() if line.startswith("data: {")])

    def leave(self, body):
        """Goes away in the middle of an answer."""
        data = json.dumps({**body, "stream": True, "ignore_eos": True, "max_tokens": 400}).encode()
        with socket.create_connection(("127.0.0.1", self.port)) as one:
            one.sendall(f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(data)}\r\n\r\n".encode() + data)
            one.recv(100)

    def test_each_answer_is_that_of_its_solo_run(self):
        self.start("--batch", "8")
        requests = list(kinds())
        alone = [self.answer(*request) for request in requests]

        def client(seed):
            dice = random.Random(seed)
            for _ in range(REQUESTS):
                at = dice.randrange(len(requests))
                if dice.random() < 0.1:
                    self.leave(requests[0][1])
                self.assertEqual(self.answer(*requests[at]), alone[at], requests[at])
            return REQUESTS

        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
            self.assertEqual(sum(pool.map(client, range(CLIENTS))), CLIENTS * REQUESTS)

    def test_apis_agree_on_log_probabilities(self):
        self.start()
        messages = [{"role": "user", "content": "What does a fox eat?"}]
        body = {"messages": messages, "max_tokens": 12, "temperature": 0, "logprobs": True, "return_token_ids": True}
        choice = self.post(CHAT, body)["choices"][0]
        chat = [entry["logprob"] for entry in choice["logprobs"]["content"]]
        streamed = [entry["logprob"] for event in self.events(CHAT, body) for one in event["choices"]
                    for entry in (one.get("logprobs") or {}).get("content", [])]
        self.assertEqual(streamed, chat)
        prompt = self.post("/tokenize", {"messages": messages})["tokens"]
        got = self.post("/v1/completions", {"prompt": prompt, "max_tokens": 12, "temperature": 0, "logprobs": 1})["choices"][0]["logprobs"]
        self.assertEqual(got["token_logprobs"][:len(chat)], chat)
        whole = {"prompt": [prompt + choice["token_ids"]], "echo": True, "logprobs": 1, "max_tokens": 0}
        echoed = self.post("/v1/completions", whole)["choices"][0]["logprobs"]["token_logprobs"][len(prompt):]
        self.assertEqual(echoed[:len(chat)], chat)
        scored = self.post("/v1/score", {"tokens": whole["prompt"][0]})["views"]["base"]["logprobs"][len(prompt):]
        self.assertEqual(scored[:len(chat)], chat)


if __name__ == "__main__":
    unittest.main()
