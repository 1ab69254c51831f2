# SPDX-License-Identifier: Apache-2.0
"""Hostile requests: each is refused with one answer, and the server goes on."""
import json
import socket
import time
import unittest

from fake import USER, FakeServerTest

PATHS = ("/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/api/chat", "/api/generate", "/tokenize", "/detokenize",
         "/apply-template", "/v1/score", "/v1/messages/count_tokens")


class BadInput(FakeServerTest):
    def tearDown(self):
        self.assertEqual(self.server.request("GET", "/health")[0], 200)

    def raw(self, data):
        """What the server sends until it closes."""
        one = socket.create_connection(("127.0.0.1", self.server.port), timeout=20)
        try:
            one.sendall(data)
            one.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: one.recv(65536), b""))
        except ConnectionError:
            return b""
        finally:
            one.close()

    def status(self, data):
        one = socket.create_connection(("127.0.0.1", self.server.port), timeout=20)
        one.sendall(data)
        answer = one.recv(65536)
        one.close()
        return int(answer.split()[1])

    def test_bodies_that_are_no_requests(self):
        deep = b"[" * 1_000_000
        bodies = [b"", b"{", b"null", b"[]", b"5", b'"a"', deep, b'{"a":' * 1_000_000, b"\xff\xfe", b'{"messages": "\xc3("}',
                  b'{"messages": [' + b"{}," * 20000 + b"{}]}", b"{}" * 10, b"\x00", b'{"model": "\x00"}', b"1e999999999"]
        for path in PATHS:
            for body in bodies:
                start = time.monotonic()
                status, _, data = self.server.request("POST", path, body)
                self.assertEqual(status, 400, (path, body[:30], data[:300]))
                self.assertLess(len(data), 10000)
                json.loads(data)
                self.assertLess(time.monotonic() - start, 5)

    def test_wrong_types_in_each_field(self):
        values = [None, True, 5, -1, 1.5, "text", "", [], [1], [[]], ["a"], {}, {"a": 1}, 2**63, 2**70, "\ud83d", "a" * 10000]
        shapes = {
            "/v1/chat/completions": ({"messages": USER}, (
                "model", "messages", "max_tokens", "max_completion_tokens", "temperature", "top_p", "top_k", "n", "stop", "stream",
                "stream_options", "seed", "logit_bias", "logprobs", "top_logprobs", "tools", "tool_choice", "response_format", "user",
                "reasoning_effort", "chat_template_kwargs", "structured_outputs", "guided_regex", "guided_choice", "priority",
                "presence_penalty", "repeat_last_n", "dry_sequence_breakers", "metadata", "service_tier", "functions", "min_tokens")),
            "/v1/completions": ({"prompt": "a"}, ("prompt", "echo", "logprobs", "n", "best_of", "suffix", "max_tokens")),
            "/v1/messages": ({"messages": USER, "max_tokens": 5}, ("messages", "system", "tools", "tool_choice", "thinking", "metadata",
                                                                   "output_config", "stop_sequences", "max_tokens", "stream")),
            "/api/chat": ({"model": "fake", "messages": USER, "stream": False}, ("model", "messages", "tools", "format", "think",
                                                                                 "options", "stream", "keep_alive")),
            "/api/generate": ({"model": "fake", "prompt": "a", "stream": False}, ("prompt", "system", "raw", "options")),
            "/tokenize": ({"content": "a"}, ("content", "prompt", "messages", "add_special", "with_pieces")),
            "/v1/score": ({"text": "a"}, ("text", "prompt", "completion", "tokens", "views", "records", "top_k")),
        }
        for path, (base, fields) in shapes.items():
            connection = self.server.connect()
            for field in fields:
                for value in values:
                    connection.request("POST", path, json.dumps({**base, field: value}).encode())
                    response = connection.getresponse()
                    data = response.read()
                    self.assertIn(response.status, (200, 400, 404), (path, field, value, data))
                    if response.status != 200:
                        json.loads(data)
            connection.close()

    def test_messages_of_any_form(self):
        for value in (5, [5], {"a": 5}, [{"type": "text"}], [{"type": 5}], [None], [{"type": "text", "text": 5}], True):
            for role in ("user", "assistant", "tool", "system"):
                body = {"messages": [{"role": role, "content": value}, *USER], "max_tokens": 5, "model": "fake", "stream": False}
                for path in ("/v1/chat/completions", "/v1/messages", "/api/chat", "/apply-template"):
                    self.assertEqual(self.server.request("POST", path, body)[0], 400, (path, role, value))
        for calls in (5, [5], [{}], [{"function": 5}], [{"function": {"name": 5}}], {"a": 1}):
            body = {"messages": [*USER, {"role": "assistant", "content": None, "tool_calls": calls}, *USER]}
            self.assertEqual(self.server.request("POST", PATHS[0], body)[0], 400, calls)
        broken = [{"function": {"name": "f", "arguments": "{broken"}, "id": "a", "type": "function"}]
        body = {"messages": [*USER, {"role": "assistant", "content": None, "tool_calls": broken}, *USER]}
        self.assertEqual(self.server.request("POST", PATHS[0], body)[0], 200)

    def test_large_bodies(self):
        status, headers, _ = self.server.request("POST", PATHS[0], b" " * (33 << 20))
        self.assertEqual((status, headers["connection"]), (413, "close"))
        self.assertEqual(self.status(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n"), 413)

    def test_smuggled_requests(self):
        start = b"POST /health HTTP/1.1\r\nHost: localhost\r\n"
        hidden = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for head in (b"Content-Length: 0\r\nContent-Length: 5\r\n", b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
                     b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", b"Transfer-Encoding: identity, chunked, gzip\r\n",
                     b"Transfer-Encoding : chunked\r\n", b" Transfer-Encoding: chunked\r\n", b"X: a\r\n Content-Length: 5\r\n",
                     b"Content-Length: 0\nX: b\r\n", b"Host: evil\r\n", b"X: \x00\r\n", b"Content-Length: 1 1\r\n"):
            answer = self.raw(start + head + b"\r\n0\r\n\r\n" + hidden)
            self.assertEqual(answer.count(b"HTTP/1.1 "), 1, (head, answer))
            self.assertIn(answer.split()[1], (b"400", b"501"), (head, answer))
            self.assertNotIn(b"fake", answer)

    def test_headers_of_any_size(self):
        self.assertEqual(self.status(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 70000), 431)
        many = b"".join(b"X-%d: a\r\n" % i for i in range(500))
        self.assertEqual(self.status(b"GET / HTTP/1.1\r\nHost: localhost\r\n" + many + b"\r\n"), 431)
        self.assertEqual(self.status(b"\x16\x03\x01\x02\x00\x01\r\n\r\n"), 400)
        self.assertEqual(self.status(b"GET /" + b"a" * 2000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n"), 404)

    def test_names_of_strangers(self):
        for host in ("evil.example", "localhost.evil.example:80"):
            self.assertEqual(self.server.request("POST", PATHS[0], {"messages": USER}, {"Host": host})[0], 403)
        for origin in ("https://evil.example", "null"):
            status, headers, _ = self.server.request("POST", PATHS[0], {"messages": USER}, {"Origin": origin})
            self.assertEqual(status, 403)
            self.assertIsNone(headers["access-control-allow-origin"])
        good = {"Origin": "http://localhost:3000", "Content-Type": "application/json"}
        status, headers, _ = self.server.request("POST", PATHS[0], {"messages": USER}, good)
        self.assertEqual((status, headers["access-control-allow-origin"]), (200, "http://localhost:3000"))
        self.assertEqual(self.server.request("POST", PATHS[0], {"messages": USER}, {**good, "Content-Type": "text/plain"})[0], 400)

    def test_paths_and_methods(self):
        for path in ("/v1/models/../../etc/passwd", "/../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/v1/models/%00", "/v1/%zz"):
            self.assertEqual(self.server.request("GET", path)[0], 404, path)
        status, headers, _ = self.server.request("GET", PATHS[0])
        self.assertEqual((status, headers["allow"]), (405, "POST, OPTIONS"))
        self.assertEqual(json.loads(self.server.request("GET", "/v1/messages/x")[2])["type"], "error")
        for name in ("../../etc/passwd", "/etc/passwd", "fake/../fake", "a" * 100000):
            self.assertEqual(self.server.request("POST", PATHS[0], {"messages": USER, "model": name})[0], 404)

    def test_ids_of_clients_are_headers_only_if_they_can_be(self):
        self.assertEqual(self.server.request("GET", "/health", headers={"X-Request-Id": "abc-1"})[1]["x-request-id"], "abc-1")
        self.assertTrue(self.server.request("GET", "/health", headers={"X-Request-Id": "é"})[1]["x-request-id"].startswith("req_"))


if __name__ == "__main__":
    unittest.main()
