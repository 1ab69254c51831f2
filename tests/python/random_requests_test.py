# SPDX-License-Identifier: Apache-2.0
"""Random requests side by side, with scoring and vectors beside them: each answer has the bits of its own solo run.

SAKER_REQUESTS says how many (60), SAKER_REQUESTS_SEED which ones (1).
"""

import os
import pathlib
import random
import shutil
import tempfile
import threading
import time
import unittest

from demo import DEMO, make_adapter

import saker

COUNT = int(os.environ.get("SAKER_REQUESTS", "60"))
SEED = int(os.environ.get("SAKER_REQUESTS_SEED", "1"))
THREADS = 16
BEGINNINGS = ("Once upon a time", "The fox and the owl", "Who are you?", "One day a girl found", "In the forest", "What is Saker?")
SCHEMA = {"type": "object", "properties": {"a": {"type": "boolean"}, "b": {"enum": ["x", "yes"]}}, "required": ["a", "b"]}
TEMPLATE = (
    "{% if tools %}{{ tools | tojson }}{% endif %}{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{{ message['content'] }}{% for call in message.tool_calls or [] %}<tool_call>\n{\"name\": \"{{ call.function.name }}\", "
    "\"arguments\": {{ call.function.arguments | tojson }}}\n</tool_call>\n{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {"at": {"type": "boolean"}}}}}


def words(rng):
    """A prompt that often begins as others do, up to some hundred tokens."""
    return " ".join([rng.choice(BEGINNINGS), *rng.choices(("a", "fox", "ran", "to the", "forest", "and", "said"), k=rng.choice((0, 3, 40, 200)))])


def request(rng):
    """A prompt and options, drawn."""
    options = {
        "max_tokens": rng.choice((1, 5, 20, 50)),
        "temperature": rng.choice((0.0, 0.7, 1.3)),
        "top_p": rng.choice((1.0, 0.9)),
        "seed": rng.randrange(1000),
        "logprobs": rng.choice((0, 2)),
        "speculate": rng.choice(("none", "dflash", "prompt-lookup")),
        "priority": rng.randrange(3),
        "user": rng.choice(("", "a", "b")),
        "repetition_penalty": rng.choice((1.0, 1.1)),
    }
    prompt = words(rng)
    constraint = rng.random()
    if constraint < 0.1:
        options["json_schema"] = SCHEMA
    elif constraint < 0.2:
        options["regex"] = "[a-z ]{1,30}"
    elif constraint < 0.3:
        options["choices"] = ["yes", "no", "perhaps"]
    elif constraint < 0.4:
        prompt = [{"role": "user", "content": prompt}]
        options["tools"] = [TOOL]
        options["tool_choice"] = rng.choice(("auto", "required"))
    elif constraint < 0.5:
        options["stop"] = ["the", "."]
    if rng.random() < 0.2:
        options["kv_bits"] = rng.choice((4, 8, 32))
    return prompt, options, rng.random() < 0.3, rng.random() < 0.2


def facts(result):
    return result.tokens, result.text, result.finish_reason, [(entry.token, entry.logprob, entry.top) for entry in result.logprobs]


class RandomRequests(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        rng = random.Random(SEED)
        self.requests = [request(rng) for _ in range(COUNT)]
        self.adapter = make_adapter(pathlib.Path(folder.name) / "adapter")
        self.demo = shutil.copytree(DEMO, pathlib.Path(folder.name) / "model")
        (self.demo / "chat_template.jinja").write_text(TEMPLATE)  # One that shows calls.

    def load(self, **options):
        model = saker.load(self.demo, adapter={"other": self.adapter}, draft="auto", cache_entries=0, **options)
        self.addCleanup(model.close)
        return model

    @staticmethod
    def stream(model, number, requests):
        prompt, options, adapted, _ = requests[number]
        return (model.view("other") if adapted else model.base()).stream(prompt, **options)

    def alone(self):
        model = self.load(batch=1, prefix_cache=0)
        return [facts(self.stream(model, number, self.requests).result()) for number in range(COUNT)]

    def together(self, model):
        """Answers of all requests by several threads; a number of tokens in place of what was cancelled."""
        answers = [None] * COUNT
        numbers = iter(range(COUNT))
        lock = threading.Lock()

        def work():
            rng = random.Random(threading.get_ident())
            while True:
                with lock:
                    number = next(numbers, None)
                if number is None:
                    return
                stream = self.stream(model, number, self.requests)
                if self.requests[number][3]:
                    time.sleep(rng.random() * 0.05)
                    stream.cancel()
                answers[number] = facts(stream.result())

        threads = [threading.Thread(target=work) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        return answers, threads

    @staticmethod
    def scores(model, texts):
        results = model.score([saker.ScoreRequest(text=text) for text in texts])
        return [view.logprobs.tobytes() for result in results for view in result.views]

    def check(self, **options):
        expected = self.alone()
        model = self.load(**options)
        texts = [f"{beginning} {ending}" for beginning in BEGINNINGS for ending in ("and a fox", "said the owl to them")]
        scores, vectors = self.scores(model, texts), model.embed(texts)
        answers, threads = self.together(model)
        while any(thread.is_alive() for thread in threads):
            self.assertEqual(self.scores(model, texts), scores)
            self.assertTrue((model.embed(texts) == vectors).all())
        for thread in threads:
            thread.join()
        for number, (got, solo) in enumerate(zip(answers, expected, strict=True)):
            cancelled = self.requests[number][3] and got[2] == "cancelled"
            count = len(got[0])
            with self.subTest(request=self.requests[number]):
                self.assertIsNotNone(got)
                if cancelled:
                    self.assertEqual((got[0], got[3]), (solo[0][:count], solo[3][:count]))
                else:
                    self.assertEqual(got, solo)

    def test_side_by_side(self):
        self.check(batch=8)

    def test_with_little_memory_for_earlier_prompts(self):
        self.check(batch=16, prefix_cache="1M")


if __name__ == "__main__":
    unittest.main()
