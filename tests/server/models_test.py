# SPDX-License-Identifier: Apache-2.0
"""Several scripted models in one server: who is loaded, who waits, who leaves."""
import concurrent.futures
import json
import os
import pathlib
import socket
import tempfile
import time
import unittest

from fake import Server, USER, events, said

CHAT = "/v1/chat/completions"


def says(text, **more):
    return {"script": [{"events": [{"content": text}], **more}]}


class ModelsTest(unittest.TestCase):
    def start(self, models, key=None, **more):
        self.server = Server({"models": models, **more}, key)
        self.addCleanup(self.server.stop)

    def send(self, method, path, body=None, status=200, headers=None):
        got, _, data = self.server.request(method, path, body, headers)
        self.assertEqual(got, status, data)
        return data

    def post(self, path, body, status=200, headers=None):
        return json.loads(self.send("POST", path, body, status, headers))

    def get(self, path, status=200, headers=None):
        return json.loads(self.send("GET", path, None, status, headers))

    def ask(self, model, text="Hello", **more):
        return self.post(CHAT, {"model": model, "messages": [{"role": "user", "content": text}], **more})["choices"][0]["message"]["content"]

    def state(self, model):
        return self.get(f"/v1/models/{model}")["status"]["value"]

    def wait_for(self, condition, seconds=20):
        end = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), end, "waited in vain")
            time.sleep(0.02)

    def wait_for_state(self, model, state):
        self.wait_for(lambda: self.state(model) == state)


class Choosing(ModelsTest):
    def setUp(self):
        self.start([
            {"name": "first", **says("I am the first."), "aliases": ["gpt-4o"], "adapters": {"support": "/tmp"}},
            {"name": "org/second", **says("I am the second.")},
        ])

    def test_the_body_says_which(self):
        self.assertEqual(self.ask("first"), "I am the first.")
        self.assertEqual(self.ask("org/second"), "I am the second.")
        self.assertEqual(self.ask("gpt-4o"), "I am the first.")
        self.assertEqual(self.ask("support"), "I am the first.")
        self.assertEqual(self.ask("first:support"), "I am the first.")
        self.assertEqual(self.ask("org/second:latest"), "I am the second.")
        got = self.post(CHAT, {"messages": USER})
        self.assertEqual((got["model"], got["choices"][0]["message"]["content"]), ("first", "I am the first."))

    def test_each_dialect_has_both(self):
        for model, text in (("first", "I am the first."), ("org/second", "I am the second.")):
            got = self.post("/v1/messages", {"model": model, "max_tokens": 9, "messages": USER})
            self.assertEqual(got["content"][0]["text"], text)
            got = self.post("/v1/responses", {"model": model, "input": "Hello"})
            self.assertEqual(got["output"][0]["content"][0]["text"], text)
            got = self.post("/v1/completions", {"model": model, "prompt": "Hello"})
            self.assertEqual(got["choices"][0]["text"], text)
            got = self.post("/api/chat", {"model": model, "messages": USER, "stream": False})
            self.assertEqual(got["message"]["content"], text)
            got = self.post("/api/generate", {"model": model, "prompt": "Hello", "stream": False})
            self.assertEqual(got["response"], text)
            self.assertIn("data", self.post("/v1/embeddings", {"model": model, "input": "Hello"}))
            self.assertIn("tokens", self.post("/tokenize", {"model": model, "prompt": "Hello"}))
            self.assertIn("input_tokens", self.post("/v1/messages/count_tokens", {"model": model, "messages": USER}))

    def test_unknown_names(self):
        for path, body in ((CHAT, {"messages": USER}), ("/v1/completions", {"prompt": "a"}), ("/v1/embeddings", {"input": "a"}),
                           ("/v1/responses", {"input": "a"}), ("/rerank", {"query": "a", "documents": ["b"]}), ("/tokenize", {"prompt": "a"}),
                           ("/models/load", {}), ("/models/unload", {})):
            error = self.post(path, {"model": "frist", **body}, status=404)["error"]
            self.assertIn("the model 'frist' is not here; did you mean first? This server has first, gpt-4o, support, org/second", error["message"])
            self.assertEqual((error["param"], error["code"]), ("model", "model_not_found"))
        got = self.post("/v1/messages", {"model": "frist", "max_tokens": 9, "messages": USER}, status=404)
        self.assertEqual((got["type"], got["error"]["type"]), ("error", "not_found_error"))
        for path, body in (("/api/chat", {"messages": USER}), ("/api/generate", {"prompt": "a"}), ("/api/show", {}), ("/api/embed", {"input": "a"})):
            self.assertIn("did you mean first?", self.post(path, {"model": "frist", **body}, status=404)["error"])
        self.assertIn("frist", self.get("/v1/models/frist", status=404)["error"]["message"])
        for name in ("../../etc/passwd", "/etc/passwd", "first/../first", "x" * 100000, "first\u0000"):
            self.assertLess(len(self.send("POST", CHAT, {"model": name, "messages": USER}, status=404)), 1000)
        self.post(CHAT, {"model": 5, "messages": USER}, status=400)
        self.post(CHAT, {"model": "first", "messages": USER, "keep_alive": "soon"}, status=400)
        self.assertEqual(self.state("first"), "unloaded", "no such request loads a model")

    def test_lists_load_nothing(self):
        got = self.get("/v1/models")["data"]
        self.assertEqual([one["id"] for one in got], ["first", "gpt-4o", "support", "org/second"])
        self.assertEqual([one["parent"] for one in got], [None, None, "first", None])
        self.assertEqual({one["status"]["value"] for one in got}, {"unloaded"})
        self.assertEqual(got[0]["max_model_len"], 2048)
        self.assertGreater(got[0]["meta"]["n_params"], 0)
        for path in ("/v1/models/org/second", "/v1/models/org%2Fsecond", "/models/org/second"):
            self.assertEqual(self.get(path)["id"], "org/second")
        headers = {"anthropic-version": "2023-06-01"}
        self.assertEqual([one["id"] for one in self.get("/v1/models", headers=headers)["data"]], ["first", "gpt-4o", "support", "org/second"])
        self.assertEqual(self.get("/v1/models/org/second", headers=headers)["type"], "model")
        tags = self.get("/api/tags")["models"]
        self.assertEqual([one["name"] for one in tags], ["first", "gpt-4o", "support", "org/second"])
        self.assertGreater(tags[0]["size"], 0)
        self.assertEqual(self.get("/api/ps")["models"], [])
        show = self.post("/api/show", {"model": "org/second"})
        self.assertEqual(show["model_info"]["fake.context_length"], 2048)
        self.assertIn("completion", show["capabilities"])
        self.assertTrue(self.get("/props?model=org%2Fsecond")["is_sleeping"])
        self.ask("first")
        ps = self.get("/api/ps")["models"]
        self.assertEqual([one["name"] for one in ps], ["first"])
        self.assertRegex(ps[0]["expires_at"], r"^20\d\d-")
        self.assertFalse(self.get("/props")["is_sleeping"])
        self.assertEqual(self.state("org/second"), "unloaded")

    def test_metrics_say_which(self):
        self.ask("first")
        text = self.send("GET", "/metrics").decode()
        self.assertIn('vllm:generation_tokens_total{model_name="org/second",engine="0"} 0', text)
        self.assertNotIn('vllm:generation_tokens_total{model_name="first",engine="0"} 0\n', text)
        self.assertIn('saker_model_loaded{model_name="first",engine="0"} 1', text)
        self.assertIn('saker_model_loaded{model_name="org/second",engine="0"} 0', text)
        names = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
        self.assertEqual(len(names), len(set(names)), "each metric has one head")
        self.assertEqual(self.get("/load"), {"server_load": 0, "models": {"first": 0, "org/second": 0}})


class Waiting(ModelsTest):
    def test_a_stream_has_comments_while_its_model_loads(self):
        self.start([{"name": "slow", **says("At last."), "load_ms": 3500}])
        got, headers, data = self.server.request("POST", CHAT, {"model": "slow", "messages": USER, "stream": True})
        self.assertEqual((got, headers["content-type"]), (200, "text/event-stream"))
        self.assertGreaterEqual(data.count(b": loading\n\n"), 3)
        self.assertEqual(said(data), "At last.")

    def test_a_load_that_fails_is_an_error_in_a_stream_that_has_begun(self):
        self.start([{"name": "slow", "load_ms": 2600, "load_fails": 9}])
        jobs = {CHAT: {"messages": USER}, "/v1/messages": {"max_tokens": 9, "messages": USER}, "/v1/responses": {"input": "a"}}
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            got = dict(zip(jobs, pool.map(lambda path: self.server.request("POST", path, {"model": "slow", "stream": True, **jobs[path]}), jobs)))
        for path, (status, _, data) in got.items():
            self.assertEqual(status, 200)
            self.assertIn("its weights are broken", data.decode(), path)
        self.assertEqual(events(got["/v1/messages"][2])[0][1]["error"]["type"], "api_error")
        self.assertEqual(events(got["/v1/responses"][2])[0][1]["type"], "error")
        self.assertIn("error", events(got[CHAT][2])[0][1])

    def test_a_failed_load_answers_all_who_wait_and_the_server_lives_on(self):
        self.start([{"name": "bad", **says("Better."), "load_ms": 300, "load_fails": 1}, {"name": "good", **says("Fine.")}])
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            jobs = [pool.submit(self.server.request, "POST", CHAT, {"model": "bad", "messages": USER, "stream": i % 2 == 0}) for i in range(12)]
            for job in jobs:
                status, _, data = job.result()
                self.assertEqual(status, 500)
                self.assertIn("its weights are broken", json.loads(data)["error"]["message"])
        self.assertTrue(self.get("/v1/models/bad")["status"]["failed"])
        self.assertEqual(self.ask("good"), "Fine.")
        time.sleep(1.1)  # A load that failed is not repeated for a second.
        self.assertEqual(self.ask("bad"), "Better.")
        self.assertNotIn("failed", self.get("/v1/models/bad")["status"])

    def test_waiting_takes_no_thread(self):
        self.start([{"name": "slow", **says("At last."), "load_ms": 1500}, {"name": "other", **says("Fine.")}])
        self.ask("other")
        with concurrent.futures.ThreadPoolExecutor(40) as pool:
            jobs = [pool.submit(self.ask, "slow") for _ in range(40)]
            time.sleep(0.3)
            start = time.monotonic()
            self.assertEqual(self.get("/health"), {"status": "ok"})
            self.assertEqual(self.ask("other"), "Fine.")
            self.assertLess(time.monotonic() - start, 1)
            self.assertEqual({job.result() for job in jobs}, {"At last."})

    def test_who_goes_away_waits_no_more(self):
        self.start([{"name": "a", **says("A", ), "memory": 60, "script": [{"events": [{"sleep_ms": 3000, "content": "A"}]}]},
                    {"name": "b", **says("B"), "memory": 60}], memory=100)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            busy = pool.submit(self.ask, "a")
            self.wait_for_state("a", "loaded")
            body = json.dumps({"model": "b", "messages": USER}).encode()
            one = socket.create_connection(("127.0.0.1", self.server.port))
            one.sendall(f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
            self.wait_for(lambda: 'saker_model_waiting{model_name="b",engine="0"} 1' in self.send("GET", "/metrics").decode())
            one.close()
            self.wait_for(lambda: 'saker_model_waiting{model_name="b",engine="0"} 0' in self.send("GET", "/metrics").decode())
            self.assertFalse(busy.done())
            self.assertEqual(busy.result(), "A")
        self.assertEqual(self.state("b"), "unloaded")

    def test_the_end_of_the_server_ends_waiting(self):
        self.start([{"name": "slow", "load_ms": 60000}])
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            job = pool.submit(self.server.request, "POST", CHAT, {"model": "slow", "messages": USER})
            self.wait_for_state("slow", "loading")
            start = time.monotonic()
            self.server.process.terminate()
            time.sleep(0.2)
            self.server.process.terminate()  # At once.
            self.assertEqual(self.server.process.wait(10), 0)
            self.assertLess(time.monotonic() - start, 5)
            self.assertIsNotNone(job.exception())


class Leaving(ModelsTest):
    def test_many_who_alternate_between_models_that_do_not_fit_together(self):
        self.start([{"name": "a", "memory": 60, "load_ms": 20}, {"name": "b", "memory": 60, "load_ms": 20}], memory=100)
        texts = [f"Text {i} for {'ab'[i % 2]}" for i in range(20)]
        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            for _ in range(3):
                got = list(pool.map(lambda text: self.ask(text[-1], text), texts))
                self.assertEqual(got, texts)
        self.assertEqual(sorted(self.state(name) for name in "ab"), ["loaded", "unloaded"])

    def test_what_cannot_fit_is_named(self):
        self.start([{"name": "rock", **says("Here."), "memory": 50, "pinned": True}, {"name": "huge", "memory": 51}], memory=100)
        self.ask("rock")
        status, headers, data = self.server.request("POST", CHAT, {"model": "huge", "messages": USER})
        self.assertEqual(status, 503, data)
        self.assertRegex(json.loads(data)["error"]["message"], r'"huge" needs .* GB of memory, but .* can be had, since these stay: rock')
        self.assertEqual(self.ask("rock"), "Here.")

    def test_the_least_recently_used_leaves(self):
        self.start([{"name": name, **says(name), "memory": 40} for name in "abc"], memory=100)
        for name in "abac":
            self.ask(name)
        self.assertEqual([self.state(name) for name in "abc"], ["loaded", "unloaded", "loaded"])

    def test_keep_alive(self):
        self.start([{"name": "brief", **says("Hi."), "keep_alive_ms": 200}, {"name": "pin", **says("Hi."), "pinned": True, "keep_alive_ms": 1}])
        self.ask("brief")
        self.ask("pin")
        self.wait_for_state("brief", "unloaded")
        self.ask("brief", keep_alive="1h")
        self.assertGreater(self.get("/api/ps")["models"][0]["expires_at"], time.strftime("%Y-%m-%dT%H:%M", time.gmtime(time.time() + 3000)))
        self.ask("brief", keep_alive=-1)
        self.assertEqual(self.get("/api/ps")["models"][0]["expires_at"], "2999-01-01T00:00:00Z")
        time.sleep(0.4)
        self.assertEqual(self.state("brief"), "loaded")
        self.ask("brief", keep_alive=0)
        self.wait_for_state("brief", "unloaded")
        self.ask("brief", ttl=3600)
        self.assertEqual(self.state("brief"), "loaded")
        self.assertEqual(self.state("pin"), "loaded")

    def test_ollamas_requests_without_a_prompt(self):
        self.start([{"name": "a", **says("Hi."), "load_ms": 50}])
        got = self.post("/api/generate", {"model": "a"})
        self.assertEqual((got["done"], got["done_reason"], got["response"]), (True, "load", ""))
        self.assertEqual(self.state("a"), "loaded")
        for path, more in (("/api/chat", {"messages": []}), ("/api/generate", {})):
            for keep in (0, "0", "0s"):
                got = self.post(path, {"model": "a", "keep_alive": keep, **more})
                self.assertEqual((got["done"], got["done_reason"]), (True, "unload"))
            self.wait_for_state("a", "unloaded")
            got = self.post("/api/chat", {"model": "a", "messages": USER, "stream": False})
            self.assertGreaterEqual(got["load_duration"], 40_000_000)
            self.assertGreaterEqual(got["total_duration"], got["load_duration"])
        self.assertEqual(self.post("/api/chat", {"model": "a", "messages": USER, "stream": False})["load_duration"], 0)

    def test_load_and_unload(self):
        self.start([{"name": "a", "script": [{"events": [{"sleep_ms": 800, "content": "Done."}]}]}])
        self.assertEqual(self.post("/models/load", {"model": "a"}), {"success": True})
        self.assertEqual(self.state("a"), "loaded")
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            busy = pool.submit(self.ask, "a")
            self.wait_for(lambda: self.get("/load")["server_load"] == 1)
            self.assertEqual(self.post("/models/unload", {"model": "a"}), {"success": True})
            self.assertEqual(busy.result(), "Done.")  # One that works is not unloaded.
        self.wait_for_state("a", "unloaded")
        self.post("/models/unload", {"model": "a"})
        self.post("/models/unload", {}, status=400)

    def test_sleep(self):
        self.start([{"name": name, **says(name)} for name in "abc"])
        self.ask("a"), self.ask("b")
        self.assertEqual(self.get("/is_sleeping"), {"is_sleeping": False})
        self.send("POST", "/sleep?level=1")
        self.wait_for_state("a", "unloaded")
        self.wait_for_state("b", "unloaded")
        for path in ("/health", "/metrics", "/v1/models", "/api/ps", "/props", "/api/tags"):
            self.send("GET", path)
        self.assertEqual(self.get("/is_sleeping"), {"is_sleeping": True})
        self.send("POST", "/wake_up")
        self.assertEqual([self.state(name) for name in "abc"], ["loaded", "loaded", "unloaded"])
        self.assertEqual(self.get("/is_sleeping"), {"is_sleeping": False})
        self.send("POST", "/sleep?model=a")
        self.wait_for_state("a", "unloaded")
        self.assertEqual(self.get("/is_sleeping?model=a"), {"is_sleeping": True})
        self.assertEqual(self.get("/is_sleeping?model=b"), {"is_sleeping": False})
        self.assertEqual(self.ask("a"), "a")  # A request wakes it.
        self.send("POST", "/sleep?model=nobody", status=404)


class Adapters(ModelsTest):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.allowed = self.folder / "allowed"
        for path in (self.allowed / "lora", self.allowed / "deep/lora", self.folder / "secret"):
            path.mkdir(parents=True)
            (path / "adapter_config.json").write_text("{}")
        (self.allowed / "empty").mkdir()
        (self.allowed / "file.gguf").write_bytes(b"GGUF")
        (self.allowed / "file.txt").write_text("no adapter")
        (self.allowed / "link").symlink_to(self.folder / "secret")

    def test_those_below_the_folder(self):
        self.start([{"name": "a", **says("A")}, {"name": "b", **says("B")}], adapter_dir=str(self.allowed))
        load, unload = "/v1/load_lora_adapter", "/v1/unload_lora_adapter"
        self.assertIn(b"Success", self.send("POST", load, {"lora_name": "one", "lora_path": "lora"}))
        self.assertIn(b"Success", self.send("POST", load, {"lora_name": "two", "lora_path": str(self.allowed / "deep/lora"), "model": "b"}))
        self.assertIn(b"Success", self.send("POST", load, {"lora_name": "three", "lora_path": "file.gguf"}))
        self.assertEqual((self.ask("one"), self.ask("two"), self.ask("b:two")), ("A", "B", "B"))
        self.assertEqual(self.get("/v1/models/two")["parent"], "b")
        for name in ("one", "a", "", "x y", "a@1", "base", "x" * 200, "new\nline"):
            self.post(load, {"lora_name": name, "lora_path": "lora"}, status=400)
        for path in ("../secret", str(self.folder / "secret"), "/etc", "lora/../../secret", "link", "..", ".", "/", "/no/such"):
            error = self.post(load, {"lora_name": "evil", "lora_path": path}, status=403)["error"]
            self.assertIn("--adapter-dir", error["message"])
        for path in ("", "a\u0000b", "x" * 5000):
            self.post(load, {"lora_name": "evil", "lora_path": path}, status=400)
        for path in ("nothing", "empty", "nothing.gguf", "file.txt"):
            self.post(load, {"lora_name": "evil", "lora_path": path}, status=404)
        self.assertIn(b"Success", self.send("POST", unload, {"lora_name": "one"}))
        self.post(unload, {"lora_name": "one"}, status=404)
        self.post(CHAT, {"model": "one", "messages": USER}, status=404)
        self.assertEqual(self.ask("two"), "B")

    def test_without_a_folder_there_are_none(self):
        self.start([{"name": "a"}])
        for path in ("/v1/load_lora_adapter", "/v1/unload_lora_adapter"):
            self.assertIn("--adapter-dir", self.post(path, {"lora_name": "x", "lora_path": "lora"}, status=403)["error"]["message"])


class Pulling(ModelsTest):
    def test_progress_in_lines(self):
        self.start([{"name": "a", **says("A")}], pulls=True)
        lines = [json.loads(line) for line in self.send("POST", "/api/pull", {"model": "new"}).splitlines()]
        self.assertEqual([line["status"] for line in lines], ["pulling manifest", "pulling", "pulling", "success"])
        self.assertEqual([line.get("completed") for line in lines], [None, 1, 2, None])
        self.assertEqual(self.ask("new", "Echo"), "Echo")
        self.assertEqual(self.post("/api/pull", {"name": "newer", "stream": False}), {"status": "success"})
        self.assertIn("no model gone", self.post("/api/pull", {"model": "gone"}, status=404)["error"])
        last = json.loads(self.send("POST", "/api/pull", {"model": "torn"}).splitlines()[-1])
        self.assertEqual(last, {"error": "the file is torn"})
        self.post("/api/pull", {}, status=400)

    def test_only_where_it_is_allowed(self):
        self.start([{"name": "a"}])
        self.assertIn("--allow-pull", self.post("/api/pull", {"model": "new"}, status=403)["error"])


if __name__ == "__main__":
    unittest.main()
