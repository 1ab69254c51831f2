# SPDX-License-Identifier: Apache-2.0
"""`saker serve` on the bundled model: what it answers is what `generate` and `score` say."""
import concurrent.futures
import json
import os
import shutil
import signal
import socket
import subprocess
import time
import unittest

from saker import DEMO, PROGRAM, ROOT
from server import ServerTest

QUESTION = "What does a fox eat?"
MESSAGES = [{"role": "user", "content": QUESTION}]
CHAT = "/v1/chat/completions"


class Serve(ServerTest):
    def golden(self, name):
        """A tiny model with random weights."""
        folder = self.folder / name
        folder.mkdir()
        for file in ("config.json", "model.safetensors"):
            shutil.copy(ROOT / "tests/golden" / name / file, folder)
        tokenizer = json.loads((ROOT / "tests/text/golden/byte_level_bpe.json").read_text())["tokenizer"]
        (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
        return folder

    def test_continued_answers_end_as_whole_ones(self):
        self.start()
        body = {"messages": MESSAGES, "max_tokens": 40, "temperature": 0}
        whole = self.post(CHAT, body)["choices"][0]["message"]["content"]
        begin = whole[:whole.index(" ", len(whole) // 3)]
        continued = {**body, "messages": [*MESSAGES, {"role": "assistant", "content": begin}], "continue_final_message": True}
        got = self.post(CHAT, continued)["choices"][0]["message"]["content"]
        self.assertTrue((begin + got).startswith(whole), (begin, got, whole))
        del continued["continue_final_message"]
        self.assertNotEqual(self.post(CHAT, continued)["choices"][0]["message"]["content"], got)

    def test_predictions_are_drafts(self):
        self.start("--draft", "none")
        body = {"messages": MESSAGES, "max_tokens": 40, "temperature": 0}

        def asked(prediction):
            got = self.post(CHAT, {**body, "prediction": {"type": "content", "content": prediction}} if prediction else body)
            return got["choices"][0]["message"]["content"], got["usage"]["completion_tokens_details"]

        answer, plain = asked(None)
        self.assertEqual(plain["accepted_prediction_tokens"], 0)
        other, counts = asked("Nothing of the kind.")
        self.assertEqual(other, answer)
        by_chance = counts["accepted_prediction_tokens"]
        parts = [{"type": "text", "text": text} for text in (answer[:20], answer[20:])]
        for prediction in (answer, parts):
            got, counts = asked(prediction)
            self.assertEqual(got, answer)
            self.assertGreater(counts["accepted_prediction_tokens"], by_chance + 5)

    def test_log_probabilities_of_a_prompt(self):
        self.start()
        got = self.post("/v1/completions", {"prompt": QUESTION, "max_tokens": 1, "echo": True, "logprobs": 1, "prompt_logprobs": 1})["choices"][0]
        at = got["prompt_logprobs"]
        self.assertEqual([next(iter(one.values()))["logprob"] for one in at[1:]], got["logprobs"]["token_logprobs"][1:len(at)])
        for one in at[1:]:
            own = next(iter(one.values()))
            self.assertEqual(own["rank"] == 1, len(one) == 1)
            self.assertEqual(min(entry["rank"] for entry in one.values()), 1)

    def test_answers_are_those_of_generate(self):
        expected = self.json("generate", DEMO, "-p", QUESTION, "--chat", "--max-tokens", "40", "--temp", "0", "--logprobs", "2", "--json")
        self.start()
        body = {"messages": MESSAGES, "max_tokens": 40, "temperature": 0, "logprobs": True, "top_logprobs": 2, "return_token_ids": True}
        got = self.post(CHAT, body)
        choice = got["choices"][0]
        self.assertEqual(choice["message"]["content"], expected["content"])
        self.assertEqual(choice["token_ids"], expected["tokens"])
        self.assertEqual([entry["logprob"] for entry in choice["logprobs"]["content"]],
                         [entry["logprob"] for entry in expected["logprobs"]][: len(choice["logprobs"]["content"])])
        self.assertEqual(got["usage"]["prompt_tokens"], len(expected["prompt_tokens"]))
        chunks = self.events(CHAT, body)
        self.assertEqual("".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks), expected["content"])
        whole = self.post("/v1/messages", {"model": "demo", "max_tokens": 40, "messages": MESSAGES, "temperature": 0})
        self.assertEqual(whole["content"][0]["text"], expected["content"])
        whole = self.post("/api/chat", {"model": "demo", "messages": MESSAGES, "stream": False,
                                        "options": {"num_predict": 40, "temperature": 0}})
        self.assertEqual(whole["message"]["content"], expected["content"])
        whole = self.post("/v1/responses", {"input": QUESTION, "max_output_tokens": 40, "temperature": 0})
        self.assertEqual(whole["output"][0]["content"][0]["text"], expected["content"])

    def test_many_at_once_give_the_same_bits(self):
        self.start("--batch", "4")
        bodies = [{"messages": [{"role": "user", "content": f"Tell me about {thing}."}], "max_tokens": 30, "seed": 7, "temperature": 1,
                   "n": 1 + i % 3} for i, thing in enumerate(["foxes", "rain", "bread", "the sea", "trains", "snow"])]
        alone = [self.post(CHAT, body)["choices"] for body in bodies]
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            together = list(pool.map(lambda body: self.post(CHAT, body)["choices"], bodies * 2))
        self.assertEqual(together, alone * 2)

    def test_echo_scores_as_score_does(self):
        text = "Once upon a time there was a fox."
        expected = self.json("score", DEMO, "--text", text, "--json")
        self.start()
        got = self.post("/v1/completions", {"prompt": [expected["tokens"]], "echo": True, "logprobs": 1, "max_tokens": 0})
        self.assertEqual(got["choices"][0]["logprobs"]["token_logprobs"], expected["views"]["base"]["logprobs"])
        for token, best, logprob in list(zip(*[got["choices"][0]["logprobs"][key] for key in ("tokens", "top_logprobs", "token_logprobs")]))[1:]:
            self.assertGreaterEqual(max(best.values()) + 1e-4, logprob, token)
        got = self.post("/v1/score", {"text": text})
        self.assertEqual(got["views"]["base"]["logprobs"], expected["views"]["base"]["logprobs"])

    def test_a_second_turn_finds_the_first_ones_rows(self):
        self.start()
        first = self.post(CHAT, {"messages": MESSAGES, "max_tokens": 20, "temperature": 0})
        history = [*MESSAGES, first["choices"][0]["message"], {"role": "user", "content": "And a bear?"}]
        second = self.post(CHAT, {"messages": history, "max_tokens": 5})
        self.assertGreater(second["usage"]["prompt_tokens_details"]["cached_tokens"], 0)

    def test_schemas(self):
        self.start()
        schema = {"type": "object", "properties": {"size": {"enum": ["small", "large"]}}, "required": ["size"], "additionalProperties": False}
        got = self.post(CHAT, {"messages": MESSAGES, "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}})
        self.assertIn(json.loads(got["choices"][0]["message"]["content"])["size"], ["small", "large"])
        got = self.post(CHAT, {"messages": MESSAGES, "structured_outputs": {"choice": ["yes", "no"]}})
        self.assertIn(got["choices"][0]["message"]["content"], ["yes", "no"])
        self.post(CHAT, {"messages": MESSAGES, "structured_outputs": {"json": {"type": "banana"}}}, status=400)

    def test_a_prompt_beyond_the_context(self):
        self.start()
        for path, body in ((CHAT, {"messages": [{"role": "user", "content": "fox " * 20000}]}), ("/v1/completions", {"prompt": "fox " * 20000}),
                           ("/v1/messages", {"max_tokens": 5, "messages": [{"role": "user", "content": "fox " * 20000}]}),
                           ("/api/chat", {"model": "demo", "messages": [{"role": "user", "content": "fox " * 20000}]})):
            text = json.dumps(self.post(path, body, status=400))
            self.assertRegex(text, r"the prompt has \d+ tokens, but the model's context is \d+ tokens long")

    def test_a_client_that_goes_away_frees_its_place(self):
        self.start("--batch", "1")
        body = json.dumps({"messages": MESSAGES, "ignore_eos": True, "stream": True}).encode()
        for _ in range(3):
            one = socket.create_connection(("127.0.0.1", self.port))
            one.sendall(f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
            one.recv(100)
            one.close()
        start = time.monotonic()
        self.post(CHAT, {"messages": MESSAGES, "max_tokens": 3})
        self.assertLess(time.monotonic() - start, 30)
        self.assertIn('finished_reason="length"} 1', self.request("/metrics")[1].decode())

    def test_sigterm(self):
        self.start()
        self.post(CHAT, {"messages": MESSAGES, "max_tokens": 3})
        self.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.process.wait(30), 0)

    def test_two_models(self):
        golden = self.golden("qwen3")
        expected = self.json("generate", DEMO, "-p", QUESTION, "--chat", "--max-tokens", "20", "--temp", "0", "--json")
        ids = self.json("generate", golden, "--tokens", "1,2,3", "--max-tokens", "8", "--temp", "0", "--ignore-eos", "--json")["tokens"]
        self.write("models.json", json.dumps({"models": {
            "talker": {"model": str(DEMO), "aliases": ["gpt-4o"], "sampling": {"temperature": 0}, "context": 200, "prefix_cache": "1M"},
            "org/tiny": {"model": str(golden), "prefix_cache": "1M", "keep_alive": "1h"},
        }}))
        self.start("--models", str(self.folder / "models.json"), "--memory", "1G", models=())
        listed = {one["id"]: one for one in json.loads(self.request("/v1/models")[1])["data"]}
        self.assertEqual(list(listed), ["talker", "gpt-4o", "org/tiny"])
        self.assertEqual({one["status"]["value"] for one in listed.values()}, {"unloaded"})
        self.assertEqual(listed["talker"]["max_model_len"], 200)

        def talk(_):
            return self.post(CHAT, {"model": "gpt-4o", "messages": MESSAGES, "max_tokens": 20})["choices"][0]["message"]["content"]

        def count(_):
            return self.post("/v1/completions", {"model": "org/tiny", "prompt": [1, 2, 3], "max_tokens": 8, "temperature": 0, "ignore_eos": True,
                                                 "logprobs": 0})["usage"]["completion_tokens"]

        with concurrent.futures.ThreadPoolExecutor(10) as pool:
            jobs = [pool.submit((talk, count)[i % 2], i) for i in range(20)]
            got = [job.result() for job in jobs]
        self.assertEqual(got, [expected["content"], len(ids)] * 10)
        self.assertEqual(sorted(one["name"] for one in json.loads(self.request("/api/ps")[1])["models"]), ["org/tiny", "talker"])
        got = self.post(CHAT, {"model": "talker", "messages": [{"role": "user", "content": "fox " * 500}]}, status=400)
        self.assertIn("the model's context is 200 tokens long", got["error"]["message"])
        self.post("/models/unload", {"model": "talker"})
        self.assertEqual(talk(0), expected["content"])

    def test_models_that_do_not_fit_together(self):
        """Each needs a prefix cache of 60 MB in its estimate."""
        golden = self.golden("llama")
        self.write("models.json", json.dumps({"models": {
            name: {"model": str(path), "prefix_cache": "60M"} for name, path in (("one", DEMO), ("two", golden))
        }}))
        self.start("--models", str(self.folder / "models.json"), "--memory", "100M", models=())
        body = {"prompt": [1, 2, 3], "max_tokens": 4, "temperature": 0, "ignore_eos": True, "return_token_ids": False}
        with concurrent.futures.ThreadPoolExecutor(20) as pool:
            choices = list(pool.map(lambda i: self.post("/v1/completions", {"model": ("one", "two")[i % 2], **body})["choices"], range(20)))
        self.assertEqual([json.dumps(one) for one in choices], [json.dumps(one) for one in choices[:2]] * 10)
        self.assertEqual(len(json.loads(self.request("/api/ps")[1])["models"]), 1)

    def test_models_of_a_toml_file(self):
        self.write("models.toml", f"[defaults]\nsampling = {{ temperature = 0 }}\n[models.talker]\nmodel = '{DEMO}'\naliases = ['a']\n"
                                  f"[models.'org/b.5']\nmodel = '{self.golden('qwen3')}'\ncontext = 64\n")
        self.start("--models", str(self.folder / "models.toml"), models=())
        listed = {one["id"]: one["max_model_len"] for one in json.loads(self.request("/v1/models")[1])["data"]}
        self.assertEqual(list(listed), ["talker", "a", "org/b.5"])
        self.assertEqual(listed["org/b.5"], 64)
        expected = self.json("generate", DEMO, "-p", QUESTION, "--chat", "--max-tokens", "8", "--temp", "0", "--json")
        self.assertEqual(self.post(CHAT, {"messages": MESSAGES, "max_tokens": 8})["choices"][0]["message"]["content"], expected["content"])

    def test_several_on_the_command_line(self):
        self.start("--keep-alive", "0", models=(str(DEMO), str(self.golden("qwen3"))))
        self.assertEqual([one["id"] for one in json.loads(self.request("/v1/models")[1])["data"]], ["demo", "qwen3"])
        self.post("/v1/completions", {"model": "qwen3", "prompt": [1], "max_tokens": 2})
        end = time.monotonic() + 30
        while json.loads(self.request("/api/ps")[1])["models"]:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    def test_a_single_model_is_loaded_and_stays(self):
        self.start()
        model, = json.loads(self.request("/api/ps")[1])["models"]
        self.assertEqual((model["name"], model["expires_at"]), ("demo", "2999-01-01T00:00:00Z"))
        facts = json.loads(self.request("/v1/models/demo")[1])
        self.assertEqual(facts["status"], {"value": "loaded"})
        self.post(CHAT, {"model": "no/such", "messages": MESSAGES}, status=404)

    def test_adapters_of_clients(self):
        adapter = ROOT / "tests/golden/adapters"
        self.start("--adapter-dir", str(adapter))
        got = self.post("/v1/load_lora_adapter", {"lora_name": "evil", "lora_path": "../qwen3"}, status=403)
        self.assertIn("--adapter-dir", got["error"]["message"])

    def test_wrong_presets(self):
        for text, says in (('{"models": {}}', "no models"), ('{"models": {"a": {}}}', "model"), ("{", "models.json"),
                           ('{"models": {"a": {"model": "", "batches": 3}}}', "batches"), ('{"models": {"a": {"model": "", "batch": 0}}}', "batch"),
                           ('{"models": {"a": {"model": "/no/such"}}}', "/no/such"),
                           ('{"models": {"a": {"model": "", "sampling": {"heat": 1}}}}', "heat"),
                           ('{"models": {"a": {"model": "", "keep_alive": "soon"}}}', "keep_alive"),
                           ('{"models": {"a": {"model": "", "adapters": {"x": "/no/such"}}}}', "/no/such"),
                           ('{"models": {"a": {"model": "", "aliases": ["b"]}, "b": {"model": ""}}}', "two models have this name")):
            self.write("models.json", text)
            self.fails("serve", "--models", self.folder / "models.json", "--port", "0", says=says)
        self.write("models.toml", "[models.a]\nmodel = ''\nbatches = 3\n")
        self.fails("serve", "--models", self.folder / "models.toml", "--port", "0", says="models.toml':3: models.a.batches: there is no such member")
        self.fails("serve", DEMO, DEMO / "draft", "--alias", "a", says="--models")
        self.fails("serve", DEMO, "--memory", "much", says="--memory", code=2)
        for wrong in ("soon", "-3x"):
            self.fails("serve", DEMO, "--keep-alive", wrong, says="--keep-alive: expected seconds", code=2)
        self.fails("serve", DEMO, "--memory", "1M", "--port", "0", says="GB of memory")
        self.fails("serve", DEMO, "--adapter-dir", "/no/such", "--port", "0", says="--adapter-dir")

    def test_wrong_options(self):
        self.fails("serve", DEMO, "--host", "0.0.0.0", "--port", "0", says="--api-key is needed")
        self.fails("serve", DEMO, "--host", "256.1.1.1", says="can't listen on 256.1.1.1:8080")
        self.fails("serve", DEMO, "--port", "70000", says="--port", code=2)
        self.fails("serve", DEMO, "--adapter", "a=/no/such/folder", says="/no/such/folder")
        self.fails("serve", "/no/such/model", says="/no/such/model")
        with socket.create_server(("127.0.0.1", 0)) as taken:
            self.fails("serve", DEMO, "--port", taken.getsockname()[1], says="in use")

    def test_unix_sockets(self):
        path = self.folder / "socket"
        process = subprocess.Popen([PROGRAM, "serve", str(DEMO), "--host", f"unix:{path}"], stderr=subprocess.DEVNULL,
                                   env={**os.environ, "SAKER_CONFIG": ""})
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        end = time.monotonic() + 60
        while not path.exists() and time.monotonic() < end:
            time.sleep(0.05)
        with socket.socket(socket.AF_UNIX) as one:
            one.connect(str(path))
            one.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            self.assertIn(b"200 OK", one.recv(10000))
        self.assertEqual(path.stat().st_mode & 0o777, 0o600)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(30), 0)
        self.assertFalse(path.exists())


if __name__ == "__main__":
    unittest.main()
