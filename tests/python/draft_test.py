# SPDX-License-Identifier: Apache-2.0
"""Drafts: answers are the same with and without."""

import shutil
import unittest

import saker
from demo import DEMO, DemoTest

STORY = "Once upon a time"


class Drafts(DemoTest):
    def same_answer(self, model, **options):
        expected = self.model.base().generate(STORY, max_tokens=40, temperature=0.7, seed=5)
        answer = model.base().generate(STORY, max_tokens=40, temperature=0.7, seed=5, **options)
        self.assertEqual(answer.tokens, expected.tokens)
        return answer.stats

    def test_what_the_model_brings(self):
        with saker.load(DEMO, draft="auto") as model:
            stats = self.same_answer(model, draft_depth=4)
            self.assertEqual(stats.drafter, "dflash")
            self.assertGreater(stats.rounds, 0)
            self.assertGreaterEqual(stats.drafted, stats.accepted)
            self.assertIn("0:kv=", stats.caches)
            self.assertEqual(self.same_answer(model, speculate="none").drafter, "none")
            self.assertEqual(self.same_answer(model, speculate="prompt-lookup", draft_depth=2).drafter, "prompt-lookup")
            self.assertEqual(self.same_answer(model, draft_depth=0).drafted, 0)

    def test_a_draft_by_its_path(self):
        draft = shutil.copytree(DEMO / "draft", self.folder / "elsewhere")
        with saker.load(DEMO, draft=draft) as model:
            self.assertEqual(self.same_answer(model, draft_depth=4).drafter, "dflash")

    def test_a_head(self):
        with saker.load(DEMO, draft=DEMO.parent / "demo-drafts/eagle3") as model:
            self.assertEqual(self.same_answer(model, draft_depth=4).drafter, "eagle3")
            self.assertEqual(self.same_answer(model, speculate="eagle3", draft_depth=2).drafter, "eagle3")

    def test_without_a_draft(self):
        self.assertEqual(self.same_answer(self.model).drafter, "none")
        with self.assertRaises(saker.UnsupportedError):
            self.model.generate(STORY, speculate="dflash")

    def test_what_is_refused(self):
        with self.assertRaises(saker.NotFoundError):
            saker.load(DEMO, draft="org/none")
        for option in ({"speculate": "magic"}, {"acceptance": "maybe"}, {"draft_depth": 65}):
            with self.assertRaises(saker.InvalidArgumentError, msg=option):
                self.model.generate(STORY, **option)
        with self.assertRaises(TypeError):
            self.model.generate(STORY, speculate=3)


if __name__ == "__main__":
    unittest.main()
