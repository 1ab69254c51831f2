# SPDX-License-Identifier: Apache-2.0
"""`--shard I/N` and `saker merge`: several runs share a file of records, and together write what one run writes."""
import fcntl
import json
import random
import shutil
import unittest

from saker import DEMO, SakerTest, run

SHARDS = 3


class Shards(SakerTest):
    def records(self, lines=None):
        if lines is None:
            lines = [json.dumps({"id": f"r{i}", "text": f"A fox eats {i} berries."}) for i in range(12)]
            lines += ['{"text": "no id"}', "", '{"id": 7, "text": ""}', '{"id": null, "text": "also none"}']
        return self.write("records.jsonl", "\n".join(lines) + "\n")

    def outputs(self):
        return [self.folder / f"{i}.jsonl" for i in range(SHARDS)]

    def run_shards(self, *command):
        for index, output in enumerate(self.outputs()):
            self.ok(*command, "-o", output, "--shard", f"{index}/{SHARDS}")

    def without_stats(self, text):
        lines = [json.loads(line) for line in text.decode().splitlines()]
        return [{key: value for key, value in line.items() if key != "stats"} for line in lines]

    def test_scores_are_those_of_one_run(self):
        records = self.records()
        command = ["score", DEMO, "-f", records, "--top-k", "2"]
        whole = self.ok(*command)
        self.run_shards(*command)
        sizes = [len(output.read_bytes().splitlines()) for output in self.outputs()]
        self.assertEqual(sum(sizes), 15)
        self.assertGreater(min(sizes), 0)
        outputs = random.Random(1).sample(self.outputs(), SHARDS)
        self.assertEqual(self.ok("merge", records, *outputs), whole)
        self.ok("merge", records, *outputs, "-o", self.folder / "merged.jsonl")
        self.assertEqual((self.folder / "merged.jsonl").read_bytes(), whole)

    def test_answers_are_those_of_one_run(self):
        records = self.records([json.dumps({"id": i, "prompt": f"{i} foxes", "seed": i}) for i in range(9)])
        command = ["generate", DEMO, "-f", records, "--max-tokens", "5", "--temp", "1"]
        whole = self.without_stats(self.ok(*command))
        self.run_shards(*command)
        self.assertEqual(self.without_stats(self.ok("merge", records, *self.outputs())), whole)

    def test_a_record_stays_in_its_shard(self):
        lines = [json.dumps({"id": f"r{i}", "text": "a b"}) for i in range(20)]
        homes = {}
        for chosen in (lines, lines[::-1], lines[5:15]):
            records = self.records(chosen)
            self.run_shards("score", DEMO, "-f", records, "--top-k", "0")
            for index, output in enumerate(self.outputs()):
                for line in output.read_text().splitlines():
                    self.assertEqual(homes.setdefault(json.loads(line)["id"], index), index)

    def test_interrupted_runs_go_on(self):
        records = self.records([json.dumps({"id": i, "prompt": f"{i} foxes"}) for i in range(9)])
        command = ["generate", DEMO, "-f", records, "--max-tokens", "4"]
        self.run_shards(*command)
        whole = self.without_stats(self.ok("merge", records, *self.outputs()))
        output = max(self.outputs(), key=lambda path: path.stat().st_size)
        text = output.read_bytes()
        output.write_bytes(text[: len(text) // 2])
        self.fails("merge", records, *self.outputs(), says=f"{output.name}: ends before the answer to")
        index = self.outputs().index(output)
        self.ok(*command, "-o", output, "--shard", f"{index}/{SHARDS}", "--resume")
        self.assertEqual(self.without_stats(self.ok("merge", records, *self.outputs())), whole)

    def test_another_job_is_refused(self):
        records = self.records()
        self.run_shards("score", DEMO, "-f", records, "--top-k", "0")
        zero, one, two = self.outputs()
        again = ["score", DEMO, "-f", records, "-o", zero, "--resume"]
        self.fails(*again, "--top-k", "3", "--shard", "0/3", says="its options is")
        self.fails(*again, "--top-k", "0", "--shard", "1/3", says="has shard 0/3, not 1/3")
        self.ok(*again, "--top-k", "0", "--shard", "0/3", "--batch", "2", "--threads", "1")
        self.ok("score", DEMO, "-f", records, "--top-k", "1", "-o", self.folder / "other.jsonl", "--shard", "0/3")
        self.fails("merge", records, self.folder / "other.jsonl", one, two, says="another job")
        model = self.demo_copy(rms_norm_eps=1e-5)
        self.ok("score", model, "-f", records, "--top-k", "0", "-o", self.folder / "other.jsonl", "--shard", "0/3")
        self.fails("merge", records, zero, one, self.folder / "other.jsonl", says="its model is")
        self.fails("merge", records, zero, one, says="got 2 outputs, expected the 3")
        shutil.copy(zero, self.folder / "copy.jsonl")
        shutil.copy(f"{zero}.job.json", f"{self.folder / 'copy.jsonl'}.job.json")
        self.fails("merge", records, zero, one, self.folder / "copy.jsonl", says="has shard 0/3, as")
        self.fails("merge", records, zero, one, self.folder / "none.jsonl", says="was not made with --shard")

    def test_other_records_are_refused(self):
        records = self.records()
        self.run_shards("score", DEMO, "-f", records, "--top-k", "0")
        lines = records.read_text().splitlines()
        self.fails("merge", self.records(lines[1:]), *self.outputs(), says="doesn't answer the input's line")
        self.fails("merge", self.records([]), *self.outputs(), says="more answers than")
        self.fails("merge", self.folder / "none", *self.outputs(), says="none")

    def test_nothing_is_lost(self):
        records = self.records()
        self.run_shards("score", DEMO, "-f", records, "--top-k", "0")
        zero, one, two = self.outputs()
        kept = {path: path.read_bytes() for path in self.folder.iterdir()}
        for path in (records, zero):
            self.fails("merge", records, zero, one, two, "-o", path, says="is input and output")
        self.write("merged.jsonl", "what was there")
        two.write_bytes(two.read_bytes()[:-5])
        kept[two] = two.read_bytes()
        self.fails("merge", records, zero, one, two, "-o", self.folder / "merged.jsonl", says="ends before")
        self.assertEqual((self.folder / "merged.jsonl").read_text(), "what was there")
        self.fails("score", DEMO, "-f", records, "-o", records, "--shard", "0/3", says="is input and output")
        self.fails("score", DEMO, "-f", records, "-o", "/dev/null", "--shard", "0/3", says="no regular file")
        with zero.open("r+b") as writer:
            fcntl.flock(writer, fcntl.LOCK_EX)
            self.fails("score", DEMO, "-f", records, "--top-k", "9", "-o", zero, "--shard", "2/3", says="another run writes it")
        self.assertEqual({path: path.read_bytes() for path in kept}, kept)

    def test_files_of_options_count_by_their_content(self):
        records = self.records([json.dumps({"id": i, "prompt": "a fox"}) for i in range(4)])
        generate = ["generate", DEMO, "-f", records, "--max-tokens", "3", "-o", self.outputs()[0], "--shard", "0/3"]
        schema, copy = self.write("a.json", '{"type": "integer"}'), self.write("b.json", '{"type": "integer"}')
        self.ok(*generate, "--json-schema", schema)
        self.ok(*generate, "--json-schema", copy, "--resume")
        schema.write_text('{"type": "boolean"}')
        self.fails(*generate, "--json-schema", schema, "--resume", says="its options is")

    def test_failed_records_are_counted(self):
        records = self.records([*(json.dumps({"id": i, "text": "a"}) for i in range(5)), '{"id": 5, "txt": "a"}', "no JSON"])
        for index, output in enumerate(self.outputs()):
            run("score", DEMO, "-f", records, "-o", output, "--shard", f"{index}/{SHARDS}")
        self.fails("merge", records, *self.outputs(), "-o", self.folder / "merged.jsonl", says="2 records failed")
        self.assertEqual(len((self.folder / "merged.jsonl").read_text().splitlines()), 7)

    def test_bad_shards(self):
        records = self.records()
        for given in ("3/3", "-1/3", "1", "a/b", "1/", "/3", "0/0", "1/99999999999", "0/1048577"):
            self.fails("score", DEMO, "-f", records, "-o", self.folder / "out.jsonl", "--shard", given, says="expected I/N", code=2)
        self.fails("score", DEMO, "-f", records, "--shard", "0/2", says="--output", code=2)
        job = self.folder / "0.jsonl.job.json"
        self.write("0.jsonl", "")
        for text in ("", "[]", "{}", '{"shard": 1}', '{"shard": "5/3"}'):
            job.write_text(text)
            self.fails("merge", records, self.folder / "0.jsonl", says="")


if __name__ == "__main__":
    unittest.main()
