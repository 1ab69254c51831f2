# SPDX-License-Identifier: Apache-2.0
"""What a worker does with records, and what a job's description tells apart. No cluster is needed."""

import json
import pathlib
import tempfile
import unittest

import numpy as np
from demo import DEMO, DemoTest, make_adapter

import saker
from saker.jobs import Job, Worker, checksum, describe, difference

ROWS = [
    {"id": "a", "text": "Once upon a time"},
    {"id": "b", "text": None},
    {"id": "c", "text": 7},
    {"id": "d", "text": "The dog ran home."},
]


class Workers(DemoTest):
    def worker(self, command, **fields):
        return Worker(Job(command, str(DEMO), load={"threads": 1}, **fields))

    def codes(self, rows):
        return [row["error"] and row["error"]["code"] for row in rows]

    def test_scores_are_those_of_one_process(self):
        options = {"views": ["base", "ft"], "logprobs": True}
        rows = self.worker("score", adapter=str(self.adapter), options=options).run(ROWS)
        self.assertEqual(self.codes(rows), [None, "invalid_argument", "invalid_argument", None])
        self.assertIn("expected a text", rows[2]["error"]["message"])
        for row, record in ((rows[0], ROWS[0]), (rows[3], ROWS[3])):
            (expected,) = self.model.score([saker.ScoreRequest(text=record["text"])], views=["base", "ft"])
            self.assertEqual(row["tokens"], len(expected.tokens))
            for view, wanted in zip(row["views"], expected.views, strict=True):
                self.assertEqual((view["view"], view["sum"], view["mean"]), (wanted.view, wanted.sum, wanted.mean))
                np.testing.assert_array_equal(view["logprobs"], wanted.logprobs)

    def test_perplexities(self):
        rows = self.worker("perplexity", columns={"text": "body"}).run([{"body": row["text"]} for row in ROWS])
        self.assertEqual(self.codes(rows), [None, "invalid_argument", "invalid_argument", None])
        expected = self.model.base().rolling_logprob("The dog ran home.")
        self.assertEqual((rows[3]["tokens"], rows[3]["perplexity"]), (expected.num_tokens, expected.perplexity))

    def test_answers(self):
        rows = self.worker("generate", options={"max_tokens": 8}).run(
            [
                {"prompt": "Once upon"},
                {"prompt": None, "messages": [{"role": "user", "content": "Hello", "name": None}]},
                {},
                {"prompt": ["not", "tokens"]},
            ]
        )
        self.assertEqual(self.codes(rows), [None, None, "invalid_argument", "invalid_argument"])
        expected = self.model.base().generate("Once upon", max_tokens=8)
        self.assertEqual((rows[0]["text"], rows[0]["finish_reason"]), (expected.text, "length"))
        self.assertIsNone(rows[0]["content"])
        self.assertEqual(rows[1]["content"], rows[1]["text"])

    def test_vectors(self):
        rows = self.worker("embed").run(ROWS)
        self.assertEqual(self.codes(rows), [None, "invalid_argument", "invalid_argument", None])
        np.testing.assert_array_equal(rows[3]["embedding"], self.model.base().embed("The dog ran home."))

    def test_another_job_is_refused(self):
        job = Job("score", str(DEMO))
        known = json.loads(json.dumps(describe(job)))
        self.assertIsNone(difference(known, describe(job)))
        others = {
            "options": Job("score", str(DEMO), options={"top_k": 3}),
            "adapters": Job("score", str(DEMO), str(self.adapter)),
            "command": Job("embed", str(DEMO)),
        }
        for member, other in others.items():
            self.assertRegex(difference(known, describe(other)), f"^{member} is ")
            with self.assertRaisesRegex(saker.InvalidArgumentError, f"another job: {member} is "):
                Worker(other, known)

    def test_adapters_count_by_content(self):
        with tempfile.TemporaryDirectory() as folder:
            same = make_adapter(pathlib.Path(folder) / "same")
            other = make_adapter(pathlib.Path(folder) / "other", seed=2)
            self.assertEqual(checksum(str(same)), checksum(str(self.adapter)))
            self.assertNotEqual(checksum(str(other)), checksum(str(self.adapter)))
            with self.assertRaises(saker.NotFoundError):
                checksum(f"{folder}/none")
