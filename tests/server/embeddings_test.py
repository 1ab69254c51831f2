# SPDX-License-Identifier: Apache-2.0
"""Vectors of texts and orders of documents over a scripted model, whose vectors begin with the length of the text."""
import base64
import struct
import unittest

from fake import FakeServerTest


class Embeddings(FakeServerTest):
    def test_vectors_as_numbers_and_in_base64(self):
        got = self.post("/v1/embeddings", {"input": ["Once", "Once upon"], "user": "me"})
        self.assertEqual(got["object"], "list")
        self.assertEqual([one["index"] for one in got["data"]], [0, 1])
        self.assertEqual([one["embedding"] for one in got["data"]], [[4, 0.5, -1, 0.25], [9, 0.5, -1, 0.25]])
        self.assertEqual(got["usage"], {"prompt_tokens": 13, "total_tokens": 13})
        packed = self.post("/v1/embeddings", {"input": "Once", "encoding_format": "base64", "dimensions": 2})
        self.assertEqual(struct.unpack("<2f", base64.b64decode(packed["data"][0]["embedding"])), (4, 0.5))
        tokens = self.post("/v1/embeddings", {"input": [[1, 2, 3], [4]]})
        self.assertEqual([one["embedding"][0] for one in tokens["data"]], [3, 1])

    def test_wrong_inputs_name_their_member(self):
        for body, param in (
            ({}, "input"), ({"input": []}, "input"), ({"input": [1, "a"]}, "input"), ({"input": ["a"] * 2049}, "input"),
            ({"input": [99999999]}, "input"), ({"input": "a", "dimensions": 0}, "dimensions"),
            ({"input": "a", "encoding_format": "int8"}, "encoding_format"),
        ):
            self.assertEqual(self.post("/v1/embeddings", body, status=400)["error"]["param"], param, body)

    def test_documents_by_their_scores(self):
        documents = ["the longest of them", "short", {"text": "in between"}]
        got = self.post("/v1/rerank", {"query": "Why?", "documents": documents, "top_n": 2})
        self.assertEqual([one["index"] for one in got["results"]], [1, 2])
        self.assertEqual(got["results"][0]["document"], {"text": "short"})
        bare = self.post("/rerank", {"query": "Why?", "texts": ["abc", "a"]})
        self.assertEqual([one["index"] for one in bare], [1, 0])
        self.assertEqual(bare[0]["score"], 0.5)
        self.assertEqual(self.post("/rerank", {"documents": ["a"]}, status=400)["error"]["param"], "query")

    def test_ollamas_forms(self):
        got = self.post("/api/embed", {"model": "fake", "input": ["a", "bc"]})
        self.assertEqual([one[0] for one in got["embeddings"]], [1, 2])
        self.assertEqual(got["prompt_eval_count"], 3)
        self.assertEqual(self.post("/api/embeddings", {"model": "fake", "prompt": "abc"})["embedding"][0], 3)


if __name__ == "__main__":
    unittest.main()
