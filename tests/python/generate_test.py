# SPDX-License-Identifier: Apache-2.0
"""Answers from Python: whole, in pieces, cancelled, and errors by class."""

import os
import signal
import threading
import time
import unittest
from unittest import mock

import numpy as np
from demo import DEMO, DemoTest

import saker
from saker import options

STORY = "Once upon a time"


class Generate(DemoTest):
    def test_prompts_are_text_tokens_or_messages(self):
        text = self.model.base().generate(STORY, max_tokens=8)
        tokens = self.model.base().generate(self.model.encode(STORY), max_tokens=8)
        self.assertEqual((text.text, text.tokens), (tokens.text, tokens.tokens))
        chat = self.model.base().generate([{"role": "user", "content": "Who are you?"}], max_tokens=60)
        self.assertIn("Saker", chat.text)
        self.assertEqual(chat.finish_reason, "stop")
        self.assertEqual((chat.content, chat.reasoning), (chat.text, ""))
        self.assertEqual((text.content, text.reasoning), (None, None))

    def test_thinking_is_an_option(self):
        question = [{"role": "user", "content": [{"type": "text", "text": "Who are you?"}]}]
        expected = self.model.generate(question, max_tokens=4).tokens
        for thinking in (None, False, True):  # The demo model's template has no switch.
            self.assertEqual(self.model.generate(question, max_tokens=4, think=thinking).tokens, expected)
        with self.assertRaisesRegex(TypeError, "think"):
            self.model.generate(question, think="x")

    def test_pieces_are_the_text(self):
        stream = self.model.base().stream(STORY, max_tokens=20)
        pieces = list(stream)
        self.assertGreater(len(pieces), 5)
        self.assertEqual("".join(pieces), stream.result().text)
        self.assertEqual(list(stream), [])

    def test_seeds_and_options(self):
        def answer(seed):
            return self.model.base().generate(STORY, max_tokens=20, temperature=2.0, seed=seed).tokens

        self.assertEqual(answer(3), answer(3))
        self.assertNotEqual(answer(3), answer(4))
        first = self.model.base().generate(STORY, max_tokens=1, logprobs=2).logprobs[0]
        self.assertEqual(first.top[0], (first.token, first.logprob))
        cut = self.model.base().generate(STORY, max_tokens=30, stop=["girl"])
        self.assertEqual(cut.finish_reason, "stop")
        self.assertNotIn("girl", cut.text)
        with self.assertRaisesRegex(TypeError, "max_token'"):
            self.model.generate(STORY, max_token=3)
        for name, value, expected in (
            ("seed", -1, f"from 0 to {2**64 - 1}"),
            ("seed", 2**64, f"from 0 to {2**64 - 1}"),
            ("max_tokens", 2**31, f"from {-(2**31)} to {2**31 - 1}"),
        ):
            with self.assertRaisesRegex(saker.InvalidArgumentError, f"{name}: got {value}, expected an integer {expected}"):
                self.model.generate("a", **{name: value})
        with self.assertRaisesRegex(TypeError, "top_k: got 1.5, expected int$"):
            self.model.generate("a", top_k=1.5)
        with self.assertRaisesRegex(TypeError, "max_tokens: got 'x'"):
            self.model.generate(STORY, max_tokens="x")
        with self.assertRaisesRegex(ValueError, "top_p") as caught:
            self.model.generate(STORY, top_p=3.0)
        self.assertIsInstance(caught.exception, saker.InvalidArgumentError)

    def test_former_names(self):
        ours = {"temperature": 0.9, "seed": 5, "think": False, "template_kwargs": {}, "dry_sequence_breakers": ["."], "draft_depth": -1}
        former = {"temp": 0.9, "seed": 5, "enable_thinking": False, "kwargs": {}, "dry_breakers": ".", "draft_depth": "auto"}
        others = {"temp": 0.9, "seed": 5, "chat_template_kwargs": {}, "dry_sequence_breaker": "."}
        answers = [self.model.base().generate(STORY, max_tokens=20, **options).tokens for options in (ours, former, others)]
        self.assertEqual(answers[1:], answers[:1] * 2)
        self.assertNotIn("girl", self.model.base().generate(STORY, max_tokens=30, stop="girl").text)
        self.model.base().generate(STORY, max_tokens=1, temp=0.5, temperature=0.5)
        with self.assertRaisesRegex(saker.InvalidArgumentError, "temperature: got 0.5, but temperature is 0.4: give one"):
            self.model.generate(STORY, temp=0.4, temperature=0.5)

    def test_sizes_of_the_command_line(self):
        for size, wanted in ((0, 0), ("off", 0), ("512", 512), ("2 KB", 2048), ("3MiB", 3 << 20), ("1g", 1 << 30)):
            self.assertEqual(options.bytes_of("x", size), wanted)
        for size in ("", "M", "-1", "1.5G", "2X"):
            with self.assertRaisesRegex(saker.InvalidArgumentError, "prefix_cache: got"):
                saker.load(DEMO, prefix_cache=size)
        with self.assertRaisesRegex(TypeError, "prefix_cache_dir_size: got 1.5"):
            saker.load(DEMO, prefix_cache_dir_size=1.5)
        saker.load(DEMO, prefix_cache="off").close()
        saker.load(DEMO, max_batch=2, prefix_cache_bytes=0, prefix_cache_dir_bytes=1 << 20).close()

    def test_a_stream_can_be_cancelled_and_dropped(self):
        stream = self.model.base().stream(STORY, max_tokens=20000, ignore_eos=True)
        next(stream)
        stream.cancel()
        self.assertEqual(stream.result().finish_reason, "cancelled")
        with self.model.base().stream(STORY, max_tokens=20000, ignore_eos=True) as left:
            next(left)
        self.assertEqual(left.result().finish_reason, "cancelled")

    def test_the_gil_is_free(self):
        stream = self.model.base().stream(STORY, max_tokens=200, ignore_eos=True)
        steps = []
        done = threading.Event()

        def count():
            while not done.is_set():
                steps.append(1)
                time.sleep(0.001)

        thread = threading.Thread(target=count)
        thread.start()
        stream.result()
        done.set()
        thread.join()
        self.assertGreater(len(steps), 2)

    def test_a_signal_ends_the_wait(self):
        # Python leaves SIGINT ignored where a shell has started it in the background.
        self.addCleanup(signal.signal, signal.SIGINT, signal.signal(signal.SIGINT, signal.default_int_handler))
        stream = self.model.base().stream(STORY, max_tokens=30000, ignore_eos=True)
        next(stream)
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
        with self.assertRaises(KeyboardInterrupt):
            stream.result()
        self.assertEqual(stream.result().finish_reason, "cancelled")

    def test_threads_share_the_model(self):
        alone = [self.model.base().generate(f"{STORY} {i}", max_tokens=10).tokens for i in range(4)]
        together = [None] * 4

        def run(i):
            together[i] = self.model.base().generate(f"{STORY} {i}", max_tokens=10).tokens

        threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(together, alone)

    def test_readers_share_a_stream(self):
        stream = self.model.base().stream(STORY, max_tokens=150, ignore_eos=True)
        pieces, ends = [], []

        def read():
            for piece in stream:
                pieces.append(piece)
            ends.append(len(pieces))

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted("".join(pieces)), sorted(stream.result().text))
        # What another one has taken last may not be in the list yet.
        self.assertGreater(min(ends), len(pieces) - len(threads))

    def test_text_is_made_without_the_gil(self):
        text = STORY * 100_000
        ids = self.model.encode(STORY) * 500_000
        chat = [{"role": "user", "content": text * 10}]
        for call in (
            lambda: self.model.encode(text),
            lambda: self.model.encode(text, add_special_tokens=False),
            lambda: self.model.decode(ids),
            lambda: self.model.render_chat(chat),
            lambda: self.model.stream(text),
        ):
            steps = []
            thread = threading.Thread(target=call)
            thread.start()
            while thread.is_alive():
                time.sleep(0.001)
                steps.append(1)
            self.assertGreater(len(steps), 10)

    def test_token_ids(self):
        ids = self.model.encode(STORY)
        wanted = self.model.base().generate(ids, max_tokens=3).tokens
        for kind in (np.int32, np.int64, np.uint16):
            self.assertEqual(self.model.base().generate(np.array(ids, dtype=kind), max_tokens=3).tokens, wanted)
            self.assertEqual(self.model.decode(np.array(ids, dtype=kind)), STORY)
            (scored,) = self.model.score([saker.ScoreRequest(tokens=np.array(ids, dtype=kind), prompt_tokens=np.array(ids[:1]))])
            self.assertEqual(scored.tokens.tolist(), [*ids[:1], *ids])
        for call in (
            lambda ids: self.model.generate(ids),
            lambda ids: self.model.decode(ids),
            lambda ids: saker.ScoreRequest(tokens=ids),
            lambda ids: saker.ScoreRequest(tokens=[1], prompt_tokens=ids),
        ):
            for wrong in (2**31, -(2**70)):
                with self.assertRaisesRegex(saker.InvalidArgumentError, f"^got {wrong}, expected token ids from 0 to {2**31 - 1}$"):
                    call([1, wrong])
            for wrong in ([1, 2.0], np.array([1.0, 2.0]), [1, "2"]):
                with self.assertRaisesRegex(TypeError, "^[^\\n]*cannot be interpreted as an integer$"):
                    call(wrong)

    def test_a_forked_process_is_told(self):
        stream = self.model.base().stream(STORY, max_tokens=20000, ignore_eos=True)
        next(stream)
        for call in (
            lambda: self.model.generate(STORY, max_tokens=2),
            lambda: self.model.base().logprob_of(STORY, " there"),
            lambda: self.model.encode(STORY),
            stream.result,
            lambda: [*stream],
        ):
            child = os.fork()
            if child == 0:
                signal.alarm(10)
                try:
                    call()
                except saker.UnsupportedError as error:
                    expected = f"the model was loaded by process {os.getppid()}, expected calls from there, not from its fork {os.getpid()}"
                    os._exit(0 if str(error) == expected else 2)
                os._exit(1)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
        stream.cancel()

    def test_errors_have_classes(self):
        with self.assertRaises(FileNotFoundError) as caught:
            saker.load(self.folder / "nothing")
        self.assertIsInstance(caught.exception, saker.NotFoundError)
        self.assertEqual(caught.exception.code, "not_found")
        with self.assertRaises(saker.InvalidArgumentError):
            self.model.generate([])
        with mock.patch.dict(os.environ, HOME=str(DEMO.parent)):
            with saker.load(f"~/{DEMO.name}", adapter={}) as model:
                self.assertEqual(model.path, str(DEMO))
        with saker.load(DEMO) as model:
            stream = model.stream(STORY, max_tokens=5)
        self.assertGreater(len(stream.result().tokens), 0)
        model.close()
        with self.assertRaisesRegex(saker.InvalidArgumentError, "closed"):
            model.generate(STORY)

    def test_text_side(self):
        ids = self.model.encode(STORY)
        self.assertEqual(self.model.decode(ids), STORY)
        self.assertEqual(self.model.encode(STORY, add_special_tokens=False), ids)
        eos = self.model.special_token("eos_token")
        self.assertEqual((self.model.decode([eos]), self.model.special_token("bos_token")), ("<|im_end|>", None))
        chat = self.model.render_chat([{"role": "user", "content": "Hi"}])
        self.assertIn("Hi", chat)
        self.assertGreater(len(chat), len(self.model.render_chat([{"role": "user", "content": "Hi"}],
                                                                 add_generation_prompt=False)))
        self.assertEqual(self.model.facts.model_type, "qwen3")
        self.assertRegex(saker.__version__, r"^\d+\.\d+\.\d+$")


if __name__ == "__main__":
    unittest.main()
