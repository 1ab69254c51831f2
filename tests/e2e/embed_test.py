# SPDX-License-Identifier: Apache-2.0
"""`saker embed` and `saker rerank`: vectors as sentence-transformers computed them, files, errors."""
import json
import math
import shutil
import unittest

from saker import ROOT, SakerTest

GOLDEN = ROOT / "tests" / "golden" / "embedding"


def golden(name):
    return json.loads((GOLDEN / name / "golden.json").read_text())


class Embed(SakerTest):
    def near(self, got, wanted):
        self.assertEqual(len(got), len(wanted))
        for one, other in zip(got, wanted):
            self.assertEqual(len(one), len(other))
            self.assertLess(max(abs(a - b) for a, b in zip(one, other)), 2e-6)

    def test_vectors_of_texts(self):
        for name in ("gemma3", "qwen3", "qwen3_old", "xlm_roberta", "nomic_bert", "modernbert"):
            known = golden(name)
            answer = self.json("embed", GOLDEN / name, "--json", "-t", *known["texts"])
            self.assertEqual(list(answer), ["embeddings", "tokens"])
            self.near(answer["embeddings"], known["vectors"])
            self.assertEqual(answer["tokens"], sum(map(len, known["tokens"])))
            for options, key in ((["--prompt-name", "query"], "queries"), (["--prompt", "find: "], "queries"),
                                 (["--dimensions", "8"], "cut")):
                answer = self.json("embed", GOLDEN / name, "--json", *options, "-t", *known["texts"])
                self.near(answer["embeddings"], known[key])

    def test_a_file_of_records(self):
        known = golden("gemma3")
        lines = [known["texts"][0], {"text": known["texts"][1]}, {"tokens": known["tokens"][2]}]
        file = self.write("texts.jsonl", "\n\n".join(map(json.dumps, lines)) + "\n")
        answer = self.json("embed", GOLDEN / "gemma3", "-f", file, "--json")
        self.near(answer["embeddings"], known["vectors"][:3])
        file = self.write("text.txt", known["texts"][3])
        self.near(self.json("embed", GOLDEN / "gemma3", "-f", file, "--json")["embeddings"], known["vectors"][3:4])
        answer = self.json("embed", GOLDEN / "gemma3", "-f", "-", "--json", stdin=known["texts"][3].encode())
        self.near(answer["embeddings"], known["vectors"][3:4])

    def test_many_texts_have_the_bits_of_each(self):
        texts = [f"{'long ' * (i % 7)}text {i}" for i in range(300)]
        file = self.write("texts.jsonl", "".join(json.dumps(text) + "\n" for text in texts))
        together = self.json("embed", GOLDEN / "gemma3", "-f", file, "--json")["embeddings"]
        self.assertEqual(len(together), 300)
        for at in (0, 6, 255, 256, 299):
            alone = self.json("embed", GOLDEN / "gemma3", "-t", texts[at], "--json", "--threads", "1")
            self.assertEqual(alone["embeddings"], [together[at]])

    def test_lines_without_json(self):
        lines = self.ok("embed", GOLDEN / "gemma3", "a", "Hello there").decode().splitlines()
        self.near([json.loads(line) for line in lines], golden("gemma3")["vectors"][1:3])

    def test_a_model_that_generates(self):
        for pooling in ([], ["--pooling", "mean"], ["--pooling", "cls"]):
            answer = self.json("embed", "-t", "A fox.", "A crow.", "--json", *pooling)
            for vector in answer["embeddings"]:
                self.assertAlmostEqual(math.fsum(x * x for x in vector), 1.0, places=5)
        raw = self.json("embed", "-t", "A fox.", "--json", "--no-normalize")["embeddings"][0]
        self.assertGreater(abs(math.fsum(x * x for x in raw) - 1.0), 1e-3)

    def test_a_converted_model_keeps_its_dense_layers(self):
        target = self.folder / "converted"
        self.ok("convert", GOLDEN / "gemma3", target, "--dtype", "float32")
        known = golden("gemma3")
        answer = self.json("embed", target, "--json", "--prompt-name", "query", "-t", *known["texts"])
        self.near(answer["embeddings"], known["queries"])

    def test_inspect_knows_the_dense_layers(self):
        self.assertIn("gemma3_text", self.ok("inspect", GOLDEN / "gemma3").decode())

    def test_encoders_run_in_other_commands_as_errors(self):
        for name in ("bert", "modernbert"):
            self.fails("generate", GOLDEN / name, "-p", "a", says="does not generate: use saker embed")
            self.fails("convert", GOLDEN / name, self.folder / "out", says="encoder")
        self.fails("generate", GOLDEN / "bert_pairs", "-p", "a", says="does not generate: use saker rerank")
        for name in ("bert", "xlm_roberta", "nomic_bert", "modernbert", "bert_pairs"):
            self.assertTrue(self.json("inspect", GOLDEN / name, "--json")["runnable"])

    def test_long_texts(self):
        self.fails("embed", GOLDEN / "gemma3", "-t", "a" * 100, says="102 tokens, expected at most 64")
        done = self.ok("embed", GOLDEN / "gemma3", "-t", "a" * 100, "--truncate", "--json")
        self.assertEqual(json.loads(done)["tokens"], 64)

    def test_errors(self):
        model = GOLDEN / "gemma3"
        self.fails("embed", model, says="texts", code=2)
        self.fails("embed", model, "-t", "a", "-f", "b", says="together", code=2)
        self.fails("embed", model, "-t", "a", "--pooling", "max", says="mean", code=2)
        self.fails("embed", model, "-t", "a", "--dimensions", "0", says="dimensions", code=2)
        self.fails("embed", model, "-t", "a", "--prompt", "b", "--prompt-name", "query", says="--prompt", code=2)
        self.fails("embed", model, "-t", "a", "--dimensions", "25", says="expected 1 to the vectors' 24")
        self.fails("embed", model, "-t", "a", "--prompt-name", "x", says="'query'")
        self.fails("generate", model, "-p", "a", says="only embeds texts")
        for line, says in (("3", "texts.jsonl:1"), ('{"text": 3}', "texts.jsonl:1"), ('{"tokens": ["a"]}', "token ids"),
                           ('{"tokens": []}', "no tokens"), ('{"tokens": [99999]}', "99999"), ("{", "texts.jsonl:1")):
            self.fails("embed", model, "-f", self.write("texts.jsonl", line + "\n"), says=says)

    def test_files_that_cannot_be_used(self):
        copy = self.folder / "model"
        shutil.copytree(GOLDEN / "qwen3", copy)
        (copy / "1_Pooling" / "config.json").write_text('{"pooling_mode": "max"}')
        self.fails("embed", copy, "-t", "a", says="'max'")


class Rerank(SakerTest):
    def test_best_first(self):
        for name in ("reranker", "classifier", "bert_pairs", "xlm_roberta_pairs", "modernbert_pairs"):
            known = golden(name)
            answer = self.json("rerank", GOLDEN / name, "--query", known["query"], "-t", *known["documents"], "--json")
            scores = [each["score"] for each in answer["results"]]
            self.assertEqual(scores, sorted(scores, reverse=True))
            self.assertEqual(answer["tokens"], sum(map(len, known["tokens"])))
            for each in answer["results"]:
                self.assertAlmostEqual(each["score"], known["scores"][each["index"]], places=5)
            file = self.write("documents.jsonl", "".join(json.dumps({"text": text}) + "\n" for text in known["documents"]))
            self.assertEqual(self.json("rerank", GOLDEN / name, "-q", known["query"], "-f", file, "--json"), answer)
            lines = self.ok("rerank", GOLDEN / name, "-q", known["query"], "-f", file).decode().splitlines()
            self.assertIn(known["documents"][answer["results"][0]["index"]], lines[0])

    def test_errors(self):
        model = GOLDEN / "reranker"
        self.fails("rerank", model, "-t", "a", says="--query", code=2)
        self.fails("rerank", model, "-q", "a", says="documents", code=2)
        self.fails("rerank", model, "-q", "a", "-t", "b", "c" * 2000, says="document 1")
        self.fails("rerank", GOLDEN / "gemma3", "-q", "a", "-t", "b", says="no reranker")
        file = self.write("documents.jsonl", '{"tokens": [1]}\n')
        self.fails("rerank", model, "-q", "a", "-f", file, says="expected a text")


if __name__ == "__main__":
    unittest.main()
