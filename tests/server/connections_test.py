# SPDX-License-Identifier: Apache-2.0
"""Connections: keep-alive, clients that go away or read slowly, limits, draining, keys."""
import json
import signal
import socket
import struct
import threading
import time
import unittest

from fake import USER, FakeServerTest, Server, said

PATH = "/v1/chat/completions"
FOREVER = {"when": "forever", "events": [{"sleep_ms": 60000}]}
FLOOD = {"when": "flood", "events": [{"content": "x" * 400, "repeat": 100000}]}


def head(path, body, *more):
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", *more]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def body(text, **more):
    return json.dumps({"messages": [{"role": "user", "content": text}], **more}).encode()


class Connections(FakeServerTest):
    SCRIPT = [FOREVER, FLOOD, {"when": "slow", "events": [{"sleep_ms": 700}, {"content": "late"}]}]

    def metric(self, name):
        for line in self.server.request("GET", "/metrics")[2].decode().splitlines():
            if line.startswith(name + "{"):
                return float(line.split()[-1])
        raise KeyError(name)

    def socket(self):
        one = socket.create_connection(("127.0.0.1", self.server.port), timeout=20)
        self.addCleanup(one.close)
        return one

    def wait_until(self, condition, seconds=10):
        end = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), end, "waited in vain")
            time.sleep(0.02)

    def running(self):
        return self.metric("saker_num_requests_running") + self.metric("saker_num_requests_waiting")

    def test_one_connection_takes_many_requests(self):
        connection = self.server.connect()
        for stream in (False, True, False):
            connection.request("POST", PATH, body("Hello", stream=stream))
            response = connection.getresponse()
            self.assertEqual(response.status, 200)
            data = response.read()
            self.assertEqual(said(data) if stream else json.loads(data)["choices"][0]["message"]["content"], "Hello")
        for method in ("HEAD", "GET"):
            connection.request(method, "/health")
            response = connection.getresponse()
            self.assertEqual((response.status, response.read() != b""), (200, method == "GET"))
        connection.close()

    def test_pipelined_requests_are_answered_in_order(self):
        one = self.socket()
        one.sendall(head(PATH, body("first")) + head(PATH, body("second"), "Connection: close"))
        data = b"".join(iter(lambda: one.recv(65536), b""))
        self.assertLess(data.index(b"first"), data.index(b"second"))

    def test_a_client_that_goes_away_ends_its_answer(self):
        for stream in (False, True):
            for how in ("close", "reset"):
                one = self.socket()
                one.sendall(head(PATH, body("forever", stream=stream)))
                self.wait_until(lambda: self.running() == 1)
                if how == "reset":
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                one.close()
                self.wait_until(lambda: self.running() == 0)
        self.assertIn("cancelled 4", self.server.stop()[0])

    def test_a_slow_reader_is_dropped(self):
        one = self.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.sendall(head(PATH, body("flood", stream=True)))
        self.wait_until(lambda: self.running() == 1)
        self.assertEqual(self.server.request("GET", "/health")[0], 200)
        self.wait_until(lambda: self.running() == 0, 20)

    def test_a_silent_stream_pings(self):
        one = self.socket()
        one.sendall(head(PATH, body("slow", stream=True)))
        data = b""
        while b"[DONE]" not in data:
            data += one.recv(65536)
        self.assertIn(b": ping\n\n", data)
        self.assertLess(data.index(b": ping"), data.rindex(b'"content"'))  # However its text is cut.

    def test_slow_heads_time_out(self):
        one = self.socket()
        one.sendall(b"GET / HTTP/1.1\r\nHos")
        start = time.monotonic()
        self.assertIn(b"408", b"".join(iter(lambda: one.recv(65536), b"")))
        self.assertLess(time.monotonic() - start, 6)

    def test_other_requests_run_beside(self):
        one = self.socket()
        one.sendall(head(PATH, body("forever")))
        self.wait_until(lambda: self.running() == 1)
        self.assertEqual(self.post(PATH, {"messages": USER})["choices"][0]["message"]["content"], "Hello")

    def test_http_1_0(self):
        one = self.socket()
        text = body("Hello", stream=True)
        one.sendall(f"POST {PATH} HTTP/1.0\r\nContent-Length: {len(text)}\r\n\r\n".encode() + text)
        data = b"".join(iter(lambda: one.recv(65536), b""))
        self.assertIn(b"[DONE]", data)
        self.assertNotIn(b"chunked", data)

    def test_waits_for_100_continue(self):
        one = self.socket()
        text = body("Hello")
        one.sendall(head(PATH, text, "Expect: 100-continue")[: -len(text)])
        self.assertIn(b"100 Continue", one.recv(65536))
        one.sendall(text)
        self.assertIn(b"200 OK", one.recv(65536))

    def test_sigterm_lets_answers_finish(self):
        got = []
        client = threading.Thread(target=lambda: got.append(self.server.request("POST", PATH, body("slow", stream=True))))
        client.start()
        self.wait_until(lambda: self.running() == 1)
        self.server.process.send_signal(signal.SIGTERM)
        client.join(20)
        self.assertIn(b"[DONE]", got[0][2])
        self.assertEqual(self.server.process.wait(20), 0)

    def test_a_second_signal_ends_at_once(self):
        one = self.socket()
        one.sendall(head(PATH, body("forever", stream=True)))
        self.wait_until(lambda: self.running() == 1)
        self.server.process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        self.assertIsNone(self.server.process.poll())
        self.server.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.server.process.wait(10), 0)

    def test_many_idle_streams_take_little(self):
        sockets = [self.socket() for _ in range(200)]
        for one in sockets:
            one.sendall(head(PATH, body("forever", stream=True)))
        self.wait_until(lambda: self.running() == 200, 30)
        start = time.monotonic()
        self.assertEqual(self.server.request("GET", "/health")[0], 200)
        self.assertLess(time.monotonic() - start, 2)
        for one in sockets:
            one.close()
        self.wait_until(lambda: self.running() == 0, 30)


class Keys(unittest.TestCase):
    def test_keys(self):
        server = Server([], "secret")
        self.addCleanup(server.stop)
        for path in ("/health", "/ready", "/"):
            self.assertEqual(server.request("GET", path)[0], 200)
        for path, kind in ((PATH, "authentication_error"), ("/v1/messages", "authentication_error")):
            for headers in ({}, {"Authorization": "Bearer wrong"}, {"X-Api-Key": ""}):
                status, _, data = server.request("POST", path, {}, headers)
                self.assertEqual((status, json.loads(data)["error"]["type"]), (401, kind))
        self.assertEqual(server.request("GET", "/metrics")[0], 401)
        for headers in ({"Authorization": "Bearer secret"}, {"x-api-key": "secret"}):
            self.assertEqual(server.request("POST", PATH, {"messages": USER}, headers)[0], 200)
        self.assertEqual(server.request("OPTIONS", PATH, headers={"Origin": "http://localhost:3"})[0], 204)


if __name__ == "__main__":
    unittest.main()
