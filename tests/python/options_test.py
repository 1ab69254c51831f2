# SPDX-License-Identifier: Apache-2.0
"""Every option of the library's table is a keyword, by each of its names."""

import json
import unittest

import numpy as np
from demo import DemoTest, make_adapter

import saker
from saker import _native, generate_options, options

STORY = "Once upon a time"
TABLE = [option for option in json.loads(_native.option_table()) if "keyword" in option["doors"]]
EXAMPLES = {
    "schema": {"type": "integer"},
    "text_file": 'start: "a"',
    "integer": 8,
    "integer_or_auto": 8,
    "number": 0.5,
    "flag": True,
    "texts": ["x"],
    "object": {7: 2.0},
    "switch": False,
    "list": [],
}
WRONG = {"path": 3, "flag": 1, "texts": 3, "object": 3, "switch": 3, "list": 3}


class Options(DemoTest):
    def answer(self, **options):
        return self.model.base().generate(STORY, **{"max_tokens": 4, **options}).tokens

    def example(self, option):
        if option["kind"] == "path":
            return self.adapter if option["name"] == "adapter" else self.folder / "rows.safetensors"
        if option["kind"] == "text":
            return option["values"].split("|")[0]
        low = option["low"] if option["kind"] == "number" else None
        return EXAMPLES[option["kind"]] if low is None else low

    def test_keywords_are_those_of_the_table(self):
        names = {other: option["name"] for option in TABLE for other in option["aliases"]}
        self.assertEqual(generate_options.OTHER_NAMES, names)
        self.assertEqual(set(saker.GenerateOptions.__annotations__), {option["name"] for option in TABLE} | set(names))
        self.assertLessEqual({"speculate", "draft_depth", "acceptance", "adapter", "adapter_scale", "tools", "cache_in"}, set(names.values()) | {
            option["name"] for option in TABLE})

    def test_each_takes_its_values_and_no_others(self):
        for option in sorted(TABLE, key=lambda option: option["name"] == "cache_in"):
            for name in (option["name"], *option["aliases"]):
                with self.subTest(name):
                    self.answer(**{name: self.example(option)})
                    with self.assertRaisesRegex(TypeError, f"^{option['name']}: got .*, expected "):
                        self.answer(**{name: WRONG.get(option["kind"], [3])})

    def test_numbers_of_numpy(self):
        expected = self.answer(temperature=0.5, seed=3, top_k=9, logit_bias={7: 1.5})
        got = self.answer(temperature=np.float32(0.5), seed=np.int64(3), top_k=np.uint8(9), logit_bias={np.int32(7): np.float64(1.5)})
        self.assertEqual(got, expected)

    def test_the_librarys_own_numbers_for_none(self):
        self.assertEqual(self.model.generate(STORY, max_tokens=2, logprobs=-1).logprobs, [])
        self.answer(draft_depth=-1)
        with self.assertRaisesRegex(saker.InvalidArgumentError, "logprobs: got -2, expected 0 or more"):
            self.answer(logprobs=-2)
        with self.assertRaisesRegex(TypeError, "max_tokens: got True, expected int"):
            self.answer(max_tokens=True)

    def test_an_adapter_by_its_folder(self):
        other = make_adapter(self.folder / "other", seed=2, noise=0.5)
        with saker.load(self.model.path, adapter=other) as model:
            expected = [model.view(key).generate(STORY, max_tokens=12, logprobs=0) for key in ("ft", "0.5")]
        got = [self.model.generate(STORY, max_tokens=12, logprobs=0, adapter=other, **scale) for scale in ({}, {"adapter_scale": 0.5})]
        base = self.model.generate(STORY, max_tokens=12, logprobs=0, adapter="")
        logprobs = [[token.logprob for token in answer.logprobs] for answer in (*expected, *got, base)]
        self.assertEqual(logprobs[2:4], logprobs[:2])
        self.assertEqual(base.tokens, self.answer(max_tokens=12))
        self.assertNotEqual(logprobs[4], logprobs[0])
        half = [token.logprob for token in self.model.generate(STORY, max_tokens=12, logprobs=0, adapter_scale=0.5).logprobs]
        scaled = [token.logprob for token in self.model.scaled(0.5).generate(STORY, max_tokens=12, logprobs=0).logprobs]
        self.assertEqual(half, scaled)

    def test_types_are_in_errors(self):
        for name, expected in (
            ("think", "bool | Literal['auto'] | None"),
            ("top_k", "int"),
            ("stop", "str | list[str]"),
            ("adapter", "str | os.PathLike[str]"),
            ("tools", "list[dict[str, Any]]"),
        ):
            self.assertEqual(str(options.option_error(name, 3.5)), f"{name}: got 3.5, expected {expected}")


if __name__ == "__main__":
    unittest.main()
