# SPDX-License-Identifier: Apache-2.0
"""What operators need: health, draining, the log of requests, limits of keys."""
import json
import signal
import threading
import time
import unittest

from fake import USER, FakeServerTest, Server, said

PATH = "/v1/chat/completions"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def ask(text, **more):
    return {"messages": [{"role": "user", "content": text}], **more}


def wait_until(condition, seconds=10):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("waited in vain")
        time.sleep(0.02)


class Health(FakeServerTest):
    SCRIPT = [{"when": "hang", "hangs_ms": 3500, "events": [{"content": "late"}]}, {"when": "slow", "events": [{"sleep_ms": 2500}, {"content": "x"}]}]
    OPTIONS = {"stall": 1}

    def health(self, path="/health"):
        return self.server.request("GET", path)[0]

    def test_a_model_that_hangs_is_no_healthy_one(self):
        got = []
        client = threading.Thread(target=lambda: got.append(self.server.request("POST", PATH, ask("hang"))))
        client.start()
        wait_until(lambda: self.health() == 503)
        self.assertEqual(self.health("/ready"), 503)
        self.assertIn("hangs", json.loads(self.server.request("GET", "/health")[2])["error"]["message"])
        client.join(20)
        self.assertEqual(got[0][0], 200)
        wait_until(lambda: self.health() == 200)

    def test_a_slow_answer_is_fine(self):
        client = threading.Thread(target=lambda: self.server.request("POST", PATH, ask("slow")))
        client.start()
        for _ in range(10):
            self.assertEqual(self.health(), 200)
            time.sleep(0.2)
        client.join(20)


class Draining(unittest.TestCase):
    SCRIPT = [{"when": "slow", "events": [{"sleep_ms": 3000}, {"content": "late"}]}, {"when": "forever", "events": [{"sleep_ms": 60000}]}]

    def serve(self, **options):
        server = Server(self.SCRIPT, options=options)
        self.addCleanup(server.stop)
        return server

    def test_all_is_served_while_load_balancers_look_elsewhere(self):
        server = self.serve(drain_delay=2)
        got = []
        client = threading.Thread(target=lambda: got.append(server.request("POST", PATH, ask("slow", stream=True))))
        client.start()
        time.sleep(0.3)
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: server.request("GET", "/health")[0] == 503)
        self.assertEqual(server.request("GET", "/ready")[0], 503)
        self.assertEqual(server.request("POST", PATH, ask("Hello"))[0], 200)
        wait_until(lambda: not self.connects(server))
        client.join(20)
        self.assertEqual(said(got[0][2]), "late")
        self.assertIn(b"[DONE]", got[0][2])
        self.assertEqual(server.process.wait(10), 0)

    def connects(self, server):
        try:
            return server.request("GET", "/health")[0] > 0
        except OSError:
            return False

    def test_answers_that_take_too_long_are_cut_off(self):
        server = self.serve(drain=1)
        client = threading.Thread(target=self.ignore, args=(server,))
        client.start()
        time.sleep(0.3)
        start = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.process.wait(10), 0)
        self.assertLess(time.monotonic() - start, 5)
        client.join(20)

    def ignore(self, server):
        try:
            server.request("POST", PATH, ask("forever"))
        except OSError:
            pass
        except Exception:  # noqa: BLE001 - the answer is cut off, however the library calls it.
            pass


class Log(unittest.TestCase):
    def lines(self, form, **more):
        server = Server([], "secret", {"log": form, **more})
        self.addCleanup(server.stop)
        headers = {"X-Api-Key": "secret", "X-Request-Id": "mine", "traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
        status, got, _ = server.request("POST", PATH, {"messages": USER}, headers)
        self.assertEqual((status, got["x-request-id"]), (200, "mine"))
        version, trace, span, flags = got["traceparent"].split("-")
        self.assertEqual((version, trace, flags), ("00", TRACE, "01"))
        self.assertNotEqual(span, "00f067aa0ba902b7")
        self.assertNotIn("traceparent", server.request("GET", "/health", headers={"traceparent": "00-0-0-00"})[1])
        server.request("GET", "/no-such", headers=headers)
        lines = [line for line in server.stop()[1].splitlines() if "mine" in line]
        self.assertEqual(len(lines), 2)
        return span, lines

    def test_json(self):
        span, lines = self.lines("json")
        answer, missing = (json.loads(line) for line in lines)
        self.assertEqual({key: answer[key] for key in ("id", "method", "path", "status", "key", "model", "finish", "trace_id", "span_id")},
                         {"id": "mine", "method": "POST", "path": PATH, "status": 200, "key": "test", "model": "fake", "finish": "stop",
                          "trace_id": TRACE, "span_id": span})
        self.assertGreater(answer["prompt_tokens"], 0)
        self.assertGreater(answer["generated_tokens"], 0)
        self.assertNotIn("body", answer)
        self.assertEqual((missing["status"], "model" in missing), (404, False))

    def test_text(self):
        _, lines = self.lines("text")
        self.assertIn(f"mine POST '{PATH}' 200 ", lines[0])
        self.assertIn(" key test model 'fake' prompt ", lines[0])
        self.assertIn(TRACE, lines[0])
        self.assertNotIn("Hello", lines[0])

    def test_prompts_are_logged_if_asked_for(self):
        self.assertIn("Hello", json.loads(self.lines("json", log_bodies=True)[1][0])["body"])
        self.assertIn("Hello", self.lines("text", log_bodies=True)[1][0])


class Description(FakeServerTest):
    def test_it_has_all_routes_and_no_others(self):
        status, _, data = self.server.request("GET", "/openapi.json")
        self.assertEqual(status, 200)
        got = json.loads(data)
        self.assertTrue(got["openapi"].startswith("3.1"))
        self.assertIsNone(got.get("x-no-routes"))
        operations = {(method, path): one for path, methods in got["paths"].items() for method, one in methods.items()}
        self.assertEqual([place for place, one in operations.items() if "x-undocumented" in one], [])
        self.assertEqual(len({one["operationId"] for one in operations.values()}), len(operations))
        self.assertIn(("post", "/v1/chat/completions"), operations)
        self.assertIn(("post", "/chat/completions"), operations)
        for (method, path), one in operations.items():
            for body in one.get("requestBody", {}).get("content", {}).values():
                self.assertIn(body["schema"]["$ref"].rpartition("/")[2], got["components"]["schemas"])
            if "{name}" not in path:
                self.assertNotIn(self.server.request(method.upper(), path, {} if method == "post" else None)[0], (404, 405), path)


class Limits(unittest.TestCase):
    def test_requests_and_tokens_of_a_key(self):
        keys = [{"name": "few", "key": "a", "requests": 2}, {"name": "short", "key": "b", "tokens": 5}, {"name": "free", "key": "c"}]
        server = Server([], options={"keys": keys})
        self.addCleanup(server.stop)

        def post(key, path=PATH, body=None):
            return server.request("POST", path, body or {"messages": USER}, {"Authorization": f"Bearer {key}"})

        first = post("a")
        self.assertEqual((first[0], first[1]["x-ratelimit-limit-requests"], first[1]["x-ratelimit-remaining-requests"]), (200, "2", "1"))
        self.assertEqual(post("a")[0], 200)
        status, headers, data = post("a")
        self.assertEqual((status, json.loads(data)["error"]["code"]), (429, "rate_limit_exceeded"))
        self.assertTrue(20 <= int(headers["retry-after"]) <= 31, headers["retry-after"])
        self.assertEqual(headers["x-ratelimit-remaining-requests"], "0")
        self.assertEqual(server.request("GET", "/v1/models", headers={"X-Api-Key": "a"})[0], 200)
        self.assertEqual(json.loads(post("a", "/v1/messages", {})[2])["error"]["type"], "rate_limit_error")
        self.assertEqual(post("b")[0], 200)
        status, headers, data = post("b")
        self.assertEqual(status, 429, data)
        self.assertIn("tokens", json.loads(data)["error"]["message"])
        self.assertEqual(headers["x-ratelimit-limit-tokens"], "5")
        for _ in range(5):
            status, headers, _ = post("c")
            self.assertEqual((status, headers["x-ratelimit-limit-requests"]), (200, None))


if __name__ == "__main__":
    unittest.main()
