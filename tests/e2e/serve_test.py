# SPDX-License-Identifier: Apache-2.0
"""`saker serve` on the bundled model: what it answers is what `generate` and `score` say."""
import concurrent.futures
import json
import os
import signal
import socket
import subprocess
import time
import unittest

from saker import DEMO, PROGRAM
from server import ServerTest

QUESTION = "What does a fox eat?"
MESSAGES = [{"role": "user", "content": QUESTION}]
CHAT = "/v1/chat/completions"


class Serve(ServerTest):
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
