# SPDX-License-Identifier: Apache-2.0
"""The KV cache of prompts in files and folders: an answer goes on with the same bits."""

import pathlib
import tempfile
import unittest

from demo import DEMO

import saker

STORY = "Once upon a time there was a girl who"


class PromptCache(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_an_answer_goes_on_after_a_file(self):
        file = self.folder / "story.safetensors"
        with saker.load(DEMO, prefix_cache=0) as model:
            whole = model.generate(STORY, max_tokens=12, ignore_eos=True, kv_bits=8)
            first = model.generate(STORY, max_tokens=6, ignore_eos=True, kv_bits=8, cache_out=file)
            rest = model.generate(first.tokens[-1:], max_tokens=6, ignore_eos=True, kv_bits=8, cache_in=file)
            self.assertEqual(first.tokens + rest.tokens, whole.tokens)
            with self.assertRaises(saker.NotFoundError):
                model.generate(STORY, cache_in=self.folder / "none")
            with self.assertRaisesRegex(TypeError, "cache_in"):
                model.generate(STORY, cache_in=3)

    def test_prompts_outlive_the_model_in_a_folder(self):
        answers = []
        for _ in range(2):
            with saker.load(DEMO, prefix_cache_dir=self.folder / "kept", prefix_cache_dir_size="256M") as model:
                answers.append(model.generate(STORY * 20, max_tokens=5, logprobs=0))
                stats = model.prefix_cache_stats
        self.assertEqual(*[[token.logprob for token in answer.logprobs] for answer in answers])
        self.assertGreater(stats.loaded_tokens, 0)
        self.assertEqual((stats.lookups, stats.hits), (1, 1))
        self.assertEqual(stats.restored_tokens, answers[1].stats.cached_tokens)


if __name__ == "__main__":
    unittest.main()
