# SPDX-License-Identifier: Apache-2.0
"""`saker generate`: contract, sampling, records run together."""
import json
import random
import unittest

from saker import DEMO, SakerTest, run

KEYS = ["prompt_tokens", "tokens", "text", "finish_reason", "stats"]
STATS = ["prompt_tokens", "prompt_tps", "generation_tokens", "generation_tps", "time_to_first_token_s",
         "peak_memory_bytes", "drafter", "rounds", "drafted", "accepted", "cached_tokens"]


def answer(result):
    """What must not depend on what else runs: all but timing."""
    return {key: result.get(key) for key in ("prompt_tokens", "tokens", "text", "finish_reason", "logprobs")}


class Contract(SakerTest):
    def test_keys(self):
        got = self.json("generate", DEMO, "-p", "hi", "--max-tokens", "5", "--json")
        self.assertEqual(list(got), KEYS)
        self.assertEqual(list(got["stats"]), STATS)
        self.assertIn(got["finish_reason"], ("stop", "length"))
        self.assertEqual(got["stats"]["prompt_tokens"], len(got["prompt_tokens"]))

    def test_logprobs(self):
        got = self.json("generate", DEMO, "-p", "hi", "--max-tokens", "5", "--logprobs", "3", "--json")
        self.assertEqual(len(got["logprobs"]), len(got["tokens"]))
        for row, token in zip(got["logprobs"], got["tokens"]):
            self.assertEqual(row["token"], token)
            self.assertEqual(len(row["top"]), 3)
            self.assertEqual(row["top"][0][1], max(x for _, x in row["top"]))
            self.assertEqual(row["top"][0], [token, row["logprob"]])  # Greedy.

    def test_length_and_ignored_eos(self):
        got = self.json("generate", DEMO, "--tokens", "5,6", "--max-tokens", "40", "--ignore-eos", "--json")
        self.assertEqual((len(got["tokens"]), got["finish_reason"]), (40, "length"))

    def test_text_is_what_the_tokens_say(self):
        got = self.json("generate", DEMO, "-p", "Tell me", "--max-tokens", "20", "--json")
        ids = ",".join(map(str, got["tokens"]))
        self.assertEqual(self.json("detokenize", DEMO, "--tokens", ids, "--json")["text"], got["text"])

    def test_streamed_text_is_the_text(self):
        args = ["generate", DEMO, "-p", "hello", "--chat", "--max-tokens", "30"]
        got = self.json(*args, "--seed", "1", "--json")["text"]
        self.assertEqual(self.ok(*args, "--seed", "1").decode(), got if got.endswith("\n") else got + "\n")

    def test_prompt_file(self):
        path = self.write("p.txt", "Saker is")
        by_file = self.json("generate", DEMO, "-f", path, "--max-tokens", "5", "--json")
        self.assertEqual(answer(by_file), answer(self.json("generate", DEMO, "-p", "Saker is", "--max-tokens", "5", "--json")))

    def test_stop_string_across_tokens(self):
        plain = self.json("generate", DEMO, "-p", "hello", "--chat", "--temp", "0", "--json")["text"]
        self.assertGreater(len(plain), 8)
        for begin in range(2, len(plain) - 3, 3):
            stop = plain[begin:begin + 3]
            got = self.json("generate", DEMO, "-p", "hello", "--chat", "--temp", "0", "--stop", stop, "--json")
            self.assertEqual(got["text"], plain[:plain.index(stop)])
            self.assertEqual(got["finish_reason"], "stop")

    def test_stop_string_that_never_ends_loses_nothing(self):
        plain = self.json("generate", DEMO, "-p", "hello", "--chat", "--temp", "0", "--json")["text"]
        got = self.json("generate", DEMO, "-p", "hello", "--chat", "--temp", "0", "--stop", plain[-2:] + "\x01", "--json")
        self.assertEqual(got["text"], plain)


class SameBits(SakerTest):
    ARGS = ["generate", DEMO, "--tokens", ",".join(map(str, range(10, 150))), "--max-tokens", "24",
            "--temp", "0.9", "--seed", "7", "--logprobs", "4", "--ignore-eos", "--json"]

    def test_chunks_and_threads(self):
        whole = answer(self.json(*self.ARGS))
        for extra in (["--prefill-step", "1"], ["--prefill-step", "7"], ["--prefill-step", "64"],
                      ["--threads", "1"], ["--threads", "4"]):
            self.assertEqual(answer(self.json(*self.ARGS, *extra)), whole, extra)

    def test_seed_decides(self):
        self.assertEqual(answer(self.json(*self.ARGS)), answer(self.json(*self.ARGS)))
        other = [a if a != "7" else "8" for a in self.ARGS]
        self.assertNotEqual(answer(self.json(*self.ARGS))["tokens"], answer(self.json(*other))["tokens"])

    def test_kv_bits(self):
        plain = answer(self.json(*self.ARGS))
        self.assertEqual(answer(self.json(*self.ARGS, "--kv-bits", "16")), plain)
        for bits in ("32", "8", "4"):
            coded = answer(self.json(*self.ARGS, "--kv-bits", bits))
            self.assertNotEqual(coded["logprobs"], plain["logprobs"])
            for extra in (["--prefill-step", "5"], ["--threads", "1"]):
                self.assertEqual(answer(self.json(*self.ARGS, "--kv-bits", bits, *extra)), coded, (bits, extra))

    def test_max_kv_size(self):
        limited = self.json(*self.ARGS, "--max-kv-size", "32")
        self.assertNotEqual(limited["tokens"], self.json(*self.ARGS)["tokens"])
        again = self.json(*self.ARGS, "--max-kv-size", "32", "--prefill-step", "5")
        self.assertEqual(answer(again), answer(limited))

    def test_fast_prefill_depends_on_the_phase_alone(self):
        bench = self.json("bench", DEMO, "-p", "1", "-n", "1", "-r", "1", "--fast-prefill", "--json")
        plain = answer(self.json(*self.ARGS))
        fast = answer(self.json(*self.ARGS, "--fast-prefill"))
        if bench["model"]["instruction_set"].startswith("avx512_bf16"):
            self.assertNotEqual(fast["logprobs"], plain["logprobs"])
        for extra in (["--prefill-step", "1"], ["--prefill-step", "7"], ["--threads", "1"]):
            self.assertEqual(answer(self.json(*self.ARGS, "--fast-prefill", *extra)), fast, extra)

    def test_fast_prefill_without_int8_changes_nothing_and_says_so(self):
        result = run(*self.ARGS, "--fast-prefill", env={"SAKER_CPU": "portable"})
        plain = run(*self.ARGS, env={"SAKER_CPU": "portable"})
        self.assertEqual(answer(json.loads(result.stdout)), answer(json.loads(plain.stdout)))
        self.assertIn(b"fast_prefill: no effect, since the instruction set portable has no products of int8", result.stderr)


class Records(SakerTest):
    def record(self, rng, number):
        """One request with options of its own."""
        record = {"id": number, "max_tokens": rng.randint(1, 30), "seed": number}
        kind = number % 3
        if kind == 0:
            record["tokens"] = [rng.randint(5, 900) for _ in range(rng.randint(1, 90))]
            record["ignore_eos"] = True
        elif kind == 1:
            record["prompt"] = "Tell me about " + rng.choice(["a cat", "the sea", "rain", "Saker"])
        else:
            record["messages"] = [{"role": "user", "content": rng.choice(["hello", "who are you", "tell me a story"])}]
        record.update(rng.choice([{}, {"temp": 0.8}, {"temp": 1.0, "top_k": 20}, {"temp": 0.7, "top_p": 0.9},
                                  {"temp": 1.0, "min_p": 0.05}, {"repetition_penalty": 1.2},
                                  {"presence_penalty": 0.5, "frequency_penalty": 0.3}, {"stop": ["the", "a "]},
                                  {"temp": 1.2, "xtc_probability": 0.5}, {"max_kv_size": 40},
                                  {"kv_bits": 8}, {"kv_bits": 4, "max_kv_size": 70}]))
        record.update(rng.choice([{}, {"logprobs": 2}]))
        return record

    def run_records(self, records, *args):
        path = self.write("r.jsonl", "\n".join(map(json.dumps, records)) + "\n")
        return [json.loads(line) for line in self.ok("generate", DEMO, "-f", path, *args, timeout=600).splitlines()]

    def test_hundred_together_equal_each_alone(self):
        rng = random.Random(1)
        records = [self.record(rng, number) for number in range(100)]
        together = self.run_records(records, "--batch", "8")
        self.assertEqual([r["id"] for r in together], list(range(100)))
        alone = self.run_records(records, "--batch", "1", "--prefix-cache", "off")
        for first, second, record in zip(together, alone, records):
            self.assertEqual(answer(first), answer(second), record)
        for number in range(0, 100, 9):  # And through a process of its own.
            single = self.run_records([records[number]], "--batch", "1")
            self.assertEqual(answer(single[0]), answer(together[number]), records[number])

    def test_command_line_gives_defaults(self):
        got = self.run_records([{"id": 1, "tokens": [5, 6]}, {"id": 2, "tokens": [5, 6], "max_tokens": 2}],
                               "--max-tokens", "3", "--ignore-eos")
        self.assertEqual([len(r["tokens"]) for r in got], [3, 2])

    def test_null_is_not_given_and_whole_floats_are_integers(self):
        records = self.write("r.jsonl", "\n".join([
            '{"id": 1, "prompt": "Once", "max_tokens": null, "stop": null, "temperature": null, "messages": null}',
            '{"id": 2, "prompt": "Once", "max_tokens": 2.0}', '{"id": 3, "prompt": "Once", "max_tokens": 1e0, "seed": 4.0}',
        ]))
        answers = [json.loads(line) for line in self.ok("generate", DEMO, "-f", records, "--max-tokens", "3").splitlines()]
        self.assertEqual([len(answer["tokens"]) for answer in answers], [3, 2, 1])

    def test_histories_of_openai_are_understood(self):
        parts = [{"type": "text", "text": "Who "}, {"type": "text", "text": "are you?"}]
        call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        history = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": None, "tool_calls": [call]},
                   {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "ok"}]}]
        image = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]
        lines = [{"messages": [{"role": "user", "content": "Who are you?"}]}, {"messages": [{"role": "user", "content": parts}]},
                 {"messages": history}, {"messages": image}]
        done = run("generate", DEMO, "-f", self.write("r.jsonl", "\n".join(map(json.dumps, lines))), "--max-tokens", "4")
        plain, joined, called, refused = (json.loads(line) for line in done.stdout.splitlines())
        self.assertEqual(joined["prompt_tokens"], plain["prompt_tokens"])
        self.assertIn("tokens", called)
        self.assertEqual(refused["error"]["code"], "unsupported")
        self.assertIn("image_url", refused["error"]["message"])

    def test_thinking_is_switched_where_the_template_can(self):
        model = self.demo_copy()
        (model / "chat_template.jinja").write_text(
            "{{ messages[0].content }}{{ ' on' if enable_thinking is defined and enable_thinking else ' off' }}"
        )
        def prompt(*args):
            return self.json("generate", model, "--chat", "-p", "a", "--max-tokens", "1", "--json", *args)["prompt_tokens"]
        self.assertEqual(prompt(), prompt("--think", "off"))
        self.assertEqual(prompt(), prompt("--think", "auto"))
        self.assertNotEqual(prompt(), prompt("--think", "on"))
        records = [{"prompt": "a", "think": "on"}, {"prompt": "a", "enable_thinking": True}, {"prompt": "a", "think": None},
                   {"prompt": "a", "think": "on", "enable_thinking": False}, {"prompt": "a", "think": "loud"}]
        done = run("generate", model, "--chat", "-f", self.write("r.jsonl", "\n".join(map(json.dumps, records))), "--max-tokens", "1")
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(answers[0]["prompt_tokens"], prompt("--think", "on"))
        self.assertEqual(answers[1]["prompt_tokens"], prompt("--enable-thinking", "on"))
        self.assertEqual(answers[2]["prompt_tokens"], prompt())
        for answer in answers[3:]:
            self.assertIn("error", answer)
        self.assertIn(b"no switch", run("generate", DEMO, "--chat", "-p", "a", "--think", "off", "--max-tokens", "1").stderr)

    def test_temperature_is_temp(self):
        same = {"tokens": [5, 6, 7], "max_tokens": 12, "ignore_eos": True, "seed": 3}
        got = self.run_records([{**same, **option} for option in (
            {"temp": 1.5}, {"temperature": 1.5}, {"temp": 1.5, "temperature": 1.5}, {})], "--temp", "0")
        self.assertEqual(answer(got[0]), answer(got[1]))
        self.assertEqual(answer(got[0]), answer(got[2]))
        self.assertNotEqual(got[0]["tokens"], got[3]["tokens"])
        flags = ["generate", DEMO, "--tokens", "5,6,7", "--max-tokens", "12", "--ignore-eos", "--seed", "3", "--json"]
        self.assertEqual(answer(self.json(*flags, "--temperature", "1.5")), answer(got[0]))
        self.fails(*flags, "--temp", "1", "--temperature", "1.5", says="--temp", code=2)
        path = self.write("r.jsonl", json.dumps({**same, "temp": 0.5, "temperature": 1}))
        done = run("generate", DEMO, "-f", path)
        self.assertEqual(done.returncode, 1)
        self.assertIn("temperature and temp", json.loads(done.stdout)["error"]["message"])

    def test_an_answer_ends_when_its_time_is_up(self):
        args = ["generate", DEMO, "-p", "A fox", "--ignore-eos", "--max-tokens", "-1", "--kv-bits", "16"]
        got = self.json(*args, "--timeout", "0.05", "--json")
        self.assertEqual(got["finish_reason"], "deadline")
        self.assertLess(len(got["tokens"]), 2000)
        done = run(*args, "--timeout", "0.05")
        self.assertEqual(done.returncode, 0)
        self.assertIn("its time was up", done.stderr.decode())
        self.fails(*args, "--timeout", "-1", says="expected 0 or more", code=2)

    def test_former_names_are_accepted(self):
        flags = ["generate", DEMO, "-p", "Once upon a time", "--max-tokens", "80", "--ignore-eos", "--dry-multiplier", "5", "--json"]
        plain = answer(self.json(*flags))
        expected = answer(self.json(*flags, "--dry-sequence-breakers", " "))
        self.assertNotEqual(expected["tokens"], plain["tokens"])
        for name in ("--dry-sequence-breaker", "--dry-breakers", "--dry_sequence_breaker"):
            self.assertEqual(answer(self.json(*flags, name, " ")), expected)
        model = self.demo_copy()
        (model / "chat_template.jinja").write_text("{{ messages[0].content }}{{ tail }}")
        chat = ["generate", model, "--chat", "-p", "a", "--max-tokens", "1", "--json"]
        tail = '{"tail": " fox"}'
        expected = self.json(*chat, "--template-kwargs", tail)["prompt_tokens"]
        self.assertNotEqual(expected, self.json(*chat)["prompt_tokens"])
        messages = self.write("m.json", '[{"role": "user", "content": "a"}]')
        rendered = self.ok("template", model, "--messages", messages, "--template-kwargs", tail)
        self.assertIn(b"fox", rendered)
        for name in ("--kwargs", "--chat-template-kwargs"):
            self.assertEqual(self.json(*chat, name, tail)["prompt_tokens"], expected)
            self.assertEqual(self.ok("template", model, "--messages", messages, name, tail), rendered)
        self.fails(*chat, "--kwargs", "5", says="--kwargs: expected a JSON object", code=2)
        self.fails(*chat, "--template-kwargs", "5", says="--template-kwargs: expected a JSON object", code=2)

    def test_bad_records_fail_alone(self):
        lines = ['{"id": 1, "tokens": [5], "max_tokens": 2}', "{broken", '{"id": "x", "prompt": 5}',
                 '{"id": 4, "tokens": [5], "colour": 1}', '{"id": 5, "tokens": []}', "[]", "",
                 '{"id": 7, "tokens": [99999999]}', '{"id": 8, "tokens": [5], "temp": -1}',
                 '{"id": 9, "tokens": [6], "max_tokens": 2}']
        path = self.write("r.jsonl", "\n".join(lines))
        done = run("generate", DEMO, "-f", path)
        got = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(done.stderr.decode().splitlines()), 1)
        self.assertEqual(len(got), 9)
        self.assertIn("tokens", got[0])
        self.assertIn("tokens", got[8])
        for failed in got[1:8]:
            self.assertEqual(sorted(failed["error"]), ["code", "message"])
        self.assertEqual(got[2]["id"], "x")
        self.assertIn("colour", got[3]["error"]["message"])


if __name__ == "__main__":
    unittest.main()
