# SPDX-License-Identifier: Apache-2.0
"""Vectors and document scores from Python."""

import json
import unittest

import numpy as np
from demo import ROOT, DemoTest

import saker

GOLDEN = ROOT / "tests" / "golden" / "embedding"


class Embed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = saker.load(GOLDEN / "gemma3")
        cls.addClassCleanup(cls.model.close)
        cls.golden = json.loads((GOLDEN / "gemma3" / "golden.json").read_text())

    def test_vectors_are_the_recorded_ones(self):
        vectors = self.model.embed(self.golden["texts"])
        self.assertEqual((vectors.dtype, vectors.shape), (np.float32, (len(self.golden["texts"]), 24)))
        np.testing.assert_allclose(vectors, self.golden["vectors"], atol=2e-6)
        queries = self.model.embed(self.golden["texts"], prompt_name="query")
        np.testing.assert_allclose(queries, self.golden["queries"], atol=2e-6)
        np.testing.assert_array_equal(self.model.embed(self.golden["texts"], prompt="find: "), queries)
        cut = self.model.embed(self.golden["texts"], dimensions=8)
        np.testing.assert_allclose(cut, self.golden["cut"], atol=2e-6)

    def test_one_text_tokens_and_none(self):
        text, tokens = self.golden["texts"][2], self.golden["tokens"][2]
        one = self.model.embed(text)
        self.assertEqual(one.shape, (24,))
        np.testing.assert_array_equal(self.model.embed([tokens])[0], one)
        np.testing.assert_array_equal(self.model.embed([np.array(tokens), text]), [one, one])
        self.assertEqual(self.model.embed([]).shape[0], 0)

    def test_many_texts_have_the_bits_of_each(self):
        texts = [f"{'long ' * (i % 7)}text {i}" for i in range(300)]
        together = self.model.embed(texts)
        for at in (0, 6, 255, 256, 299):
            np.testing.assert_array_equal(self.model.embed(texts[at]), together[at])

    def test_length(self):
        raw = self.model.embed(self.golden["texts"], normalize=False)
        unit = raw / np.linalg.norm(raw, axis=-1, keepdims=True)
        np.testing.assert_allclose(unit, self.golden["vectors"], atol=2e-6)

    def test_errors(self):
        for options, says in (
            ({"pooling": "max"}, "last, mean, cls"),
            ({"dimensions": 25}, "24"),
            ({"prompt_name": "x"}, "query"),
        ):
            with self.assertRaisesRegex(saker.errors.InvalidArgumentError, says):
                self.model.embed("a", **options)
        with self.assertRaisesRegex(saker.errors.InvalidArgumentError, "102 tokens, expected at most 64"):
            self.model.embed("a" * 100)
        self.assertEqual(self.model.embed("a" * 100, truncate=True).shape, (24,))
        with self.assertRaises(TypeError):
            self.model.embed([1])
        with self.assertRaisesRegex(saker.errors.UnsupportedError, "only embeds texts"):
            self.model.generate("a")


class Views(DemoTest):
    def test_an_adapter_changes_vectors(self):
        texts = ["A fox.", "A crow sits on a tree."]
        base, tuned = self.model.base().embed(texts), self.model.ft().embed(texts)
        self.assertGreater(np.abs(base - tuned).max(), 0)
        np.testing.assert_array_equal(self.model.scaled(0).embed(texts), base)
        np.testing.assert_allclose(np.linalg.norm(base, axis=-1), 1, atol=1e-6)


class Rerank(unittest.TestCase):
    def test_scores_are_the_recorded_ones(self):
        for name in ("reranker", "classifier"):
            golden = json.loads((GOLDEN / name / "golden.json").read_text())
            with saker.load(GOLDEN / name) as model:
                scores = model.rerank(golden["query"], golden["documents"])
                np.testing.assert_allclose(scores, golden["scores"], atol=1e-5)
                self.assertEqual(model.rerank(golden["query"], []).shape, (0,))


if __name__ == "__main__":
    unittest.main()
