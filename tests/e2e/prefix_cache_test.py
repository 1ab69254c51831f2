# SPDX-License-Identifier: Apache-2.0
"""Prompts with common beginnings share their rows, and nobody sees it in the answers."""
import json
import os
import random
import subprocess
import time
import unittest

from saker import DEMO, PROGRAM, SakerTest, run


def answer(result):
    return {key: value for key, value in result.items() if key != "stats"}


class PrefixCache(SakerTest):
    def records(self):
        """Prompts that branch from each other, in any order."""
        rng = random.Random(3)
        prompts = [[rng.randint(5, 900) for _ in range(150)]]
        for _ in range(39):
            old = rng.choice(prompts)
            prompts.append(old[: rng.randint(1, len(old))] + [rng.randint(5, 900) for _ in range(rng.randint(0, 40))])
        return [{"id": i, "tokens": tokens, "max_tokens": 8, "ignore_eos": True, "logprobs": 2,
                 "seed": i, "temp": rng.choice([0, 0.8])} for i, tokens in enumerate(prompts)]

    def run_records(self, records, *args):
        path = self.write("r.jsonl", "\n".join(map(json.dumps, records)))
        return [json.loads(line) for line in self.ok("generate", DEMO, "-f", path, *args).splitlines()]

    def test_same_answers_in_any_order_and_batch(self):
        records = self.records()
        cold = {r["id"]: r for r in self.run_records(records, "--batch", "1", "--prefix-cache", "off")}
        self.assertEqual({r["stats"]["cached_tokens"] for r in cold.values()}, {0})
        for seed, args in enumerate((["--batch", "1"], ["--batch", "8"], ["--batch", "8", "--prefill-step", "17"],
                                     ["--batch", "4", "--prefix-cache", "300K"])):
            random.Random(seed).shuffle(records)
            warm = self.run_records(records, *args)
            for result in warm:
                self.assertEqual(answer(result), answer(cold[result["id"]]), args)
            reused = sum(r["stats"]["cached_tokens"] for r in warm)
            self.assertGreater(reused, sum(len(r["tokens"]) for r in records) // 8, args)

    def test_an_exact_hit_leaves_one_token(self):
        tokens = list(range(10, 110))
        got = self.run_records([{"tokens": tokens, "max_tokens": 3}] * 3, "--batch", "1")
        self.assertEqual([r["stats"]["cached_tokens"] for r in got], [0, 99, 99])

    def test_rows_outlive_the_program(self):
        tokens = ",".join(map(str, range(10, 210)))
        args = ["generate", DEMO, "--tokens", tokens, "--max-tokens", "4", "--ignore-eos", "--logprobs", "2", "--json"]
        cold = self.json(*args)
        kept = ["--prefix-cache-dir", self.folder / "rows"]
        self.assertEqual(answer(self.json(*args, *kept)), answer(cold))
        warm = self.json(*args, *kept)
        self.assertEqual(answer(warm), answer(cold))
        self.assertEqual(warm["stats"]["cached_tokens"], 199)
        for bits in ("8", "4"):
            cold = self.json(*args, "--kv-bits", bits)
            for cached in (0, 199):
                warm = self.json(*args, *kept, "--kv-bits", bits)
                self.assertEqual(answer(warm), answer(cold), bits)
                self.assertEqual(warm["stats"]["cached_tokens"], cached)
        bounded = self.json(*args, *kept, "--max-kv-size", "50")
        self.assertEqual(bounded["stats"]["cached_tokens"], 0)
        other = self.demo_copy(rope_theta=12345.0)
        self.assertEqual(self.json("generate", other, *args[2:], *kept)["stats"]["cached_tokens"], 0)
        self.json(*args, *kept, "--prefix-cache-dir-size", "1K")
        self.assertEqual(list((self.folder / "rows").glob("*.saker-prefix")), [])
        self.fails(*args, "--prefix-cache-dir", self.write("file", "x"), says="prefix cache")

    def test_killed_while_writing(self):
        """kill -9 while rows go to files; SAKER_KILLS sets how often."""
        rng = random.Random(5)
        kept = ["--prefix-cache-dir", self.folder / "rows", "--prefix-cache", "100K"]
        for _ in range(int(os.environ.get("SAKER_KILLS", "40"))):
            tokens = [rng.randint(5, 900) for _ in range(300)]
            records = [{"tokens": tokens[:count], "max_tokens": 1} for count in (100, 200, 300)]
            path = self.write("kill.jsonl", "\n".join(map(json.dumps, records)))
            process = subprocess.Popen([PROGRAM, "generate", DEMO, "-f", path, *kept],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(rng.uniform(0, 0.25))
            process.kill()
            process.wait()
        done = run("generate", DEMO, "-f", path, *kept)
        self.assertEqual((done.returncode, done.stderr), (0, b""))

    def test_sizes(self):
        for size in ("1048576", "1M", "2GB", "off", "0"):
            self.ok("generate", DEMO, "-p", "hi", "--max-tokens", "1", "--prefix-cache", size)
        for size in ("", "-1", "much", "3x"):
            done = run("generate", DEMO, "-p", "hi", "--prefix-cache", size)
            self.assertEqual(done.returncode, 2, size)


if __name__ == "__main__":
    unittest.main()
