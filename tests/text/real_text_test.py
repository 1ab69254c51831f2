#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real tokenizers and chat templates: Saker must give exactly what `tokenizers` and `transformers` give.

Takes the files that fetch_real_text.py has put into a folder, and the program `text_probe`.
"""
import argparse
import json
import pathlib
import random
import subprocess
import sys

import tokenizers
from transformers.utils.chat_template_utils import render_jinja_template

MAX_SHOWN = 12


class Probe:
    """The C++ side, one request at a time."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"text_probe ended at {str(request)[:300]}")
        return json.loads(line)


class Tally:
    """Counts checks and shows the first differences."""

    def __init__(self):
        self.checks = 0
        self.failures = 0

    def equal(self, what, got, expected):
        self.checks += 1
        if got == expected:
            return
        self.failures += 1
        if self.failures <= MAX_SHOWN:
            print(f"DIFFERS {what}\n  got      {first_difference(got, expected)}\n  expected {first_difference(expected, got)}")


def first_difference(one, other):
    """A window of `one` around the first place where it differs from `other`."""
    if not (isinstance(one, (str, list)) and isinstance(other, type(one))):
        return repr(one)[:300]
    same = next((i for i, (a, b) in enumerate(zip(one, other)) if a != b), min(len(one), len(other)))
    return f"at {same}: {one[max(0, same - 20):same + 40]!r}"


# ---- tokenizers ----

CURATED = [
    "", " ", "  ", "\n", "\n\n\n", "\t\t x", "Hello, world!", "hello  world   and    more", " leading", "trailing ",
    "I'm you're we'll they'd it's DON'T 'S", "3.14159 1,000,000 2024-05-17 1e-10 0x1F",
    "def f(x):\n    return x ** 2  # squared\n\n\tpass\r\n", "déjà vu naïve façade Zürich Ærøskøbing",
    "e\u0301 vs é, A\u030a vs Å, ﬁ ligature, ｆｕｌｌｗｉｄｔｈ", "中文测试，简体和繁體。日本語テスト、한국어 테스트", "مرحبا بالعالم שלום עולם नमस्ते สวัสดี",
    "😀👍🏽👨‍👩‍👧‍👦🏳️‍🌈 🇩🇪🇫🇷", "\u200b\u200d\ufeff\u00a0\u2028\u2029\u3000|", "\x00\x01\x1f\x7f\x80\x9f nul", "\ufffd\ufffe\uffff\U0010ffff\U000e0001",
    "Z̸̙̈a̴͚͐l̷̗̈g̵͎̀o̶̰͝", "a" * 300, "ab" * 200, " " * 100, "\n" * 50 + "x", "!?.,;:" * 30, "1234567890" * 20,
    "<s></s><|im_start|>user\n<|im_end|><bos><start_of_turn>[INST]<|endoftext|>", "<|im_start", "▁▁ ▁x Ġ Ċ <0x0A>",
]


def random_text(rng):
    """Text of mixed scripts, whitespace, marks, symbols and unassigned code points."""
    pools = [(0x20, 0x7E), (0x20, 0x7E), (0x09, 0x0D), (0xA0, 0x24F), (0x300, 0x36F), (0x370, 0x5FF), (0x600, 0x6FF), (0x900, 0xE7F),
             (0x2000, 0x206F), (0x3040, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xFE00, 0xFFFF), (0x1F300, 0x1FAFF), (0, 0x10FFFF)]
    chars = []
    for _ in range(rng.randint(1, 12)):
        low, high = rng.choice(pools)
        for _ in range(rng.randint(1, 8)):
            code = rng.randint(low, high)
            chars.append(" " if 0xD800 <= code <= 0xDFFF else chr(code))
        if rng.random() < 0.5:
            chars.append(rng.choice([" ", "  ", "\n", "'s ", ". "]))
    return "".join(chars)


def check_tokenizer(probe, tally, name, folder, rounds):
    reference = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    loaded = probe.ask(op="load", dir=str(folder))
    tally.equal(f"{name}: vocabulary", loaded.get("vocab_size", loaded), reference.get_vocab_size())
    rng = random.Random(f"{name} 1")
    for text in CURATED + [random_text(rng) for _ in range(rounds)]:
        for special in (True, False):
            expected = reference.encode(text, add_special_tokens=special).ids
            got = probe.ask(op="encode", text=text, special=special)
            tally.equal(f"{name}: encode {text[:60]!r}", got.get("tokens", got), expected)
        check_decode(probe, tally, name, reference, expected)
    ids = sorted(reference.get_vocab().values())
    for _ in range(rounds):
        check_decode(probe, tally, name, reference, [rng.choice(ids) for _ in range(rng.randint(0, 40))])


def check_decode(probe, tally, name, reference, ids):
    for skip in (True, False):
        expected = reference.decode(ids, skip_special_tokens=skip)
        got = probe.ask(op="decode", tokens=ids, skip_special=skip)
        tally.equal(f"{name}: decode {ids[:20]}", got.get("text", got), expected)
        tally.equal(f"{name}: streamed decode {ids[:20]}", got.get("streamed", got), expected)


# ---- templates ----

TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "description": "Weather <now> & \"later\"", "parameters": {
        "type": "object", "properties": {"city": {"type": "string", "description": "Stadt für Zürich"}, "days": {"type": "integer", "enum": [1, 2, 3]},
                                         "scale": {"type": "number", "default": 0.5}, "flags": {"type": ["array", "null"], "items": {"type": "boolean"}}},
        "required": ["city"]}}},
    {"type": "function", "function": {"name": "noop", "description": "", "parameters": {"type": "object", "properties": {}}}},
]
CALL = {"id": "call12345", "type": "function", "function": {"name": "get_weather", "arguments": {"city": "Zürich", "days": 2, "scale": 1e-7, "big": 1e20, "ok": True, "none": None, "list": [1.0, "x'y"]}}}
CONVERSATIONS = {
    "one": [{"role": "user", "content": "Hello"}],
    "system": [{"role": "system", "content": "  Be brief. "}, {"role": "user", "content": "Hi\n there "}],
    "turns": [{"role": "user", "content": "a"}, {"role": "assistant", "content": " b "}, {"role": "user", "content": "\nc\n"}],
    "unicode": [{"role": "system", "content": "émoji 😀 <b>&amp;</b>"}, {"role": "user", "content": "'quotes' \"double\" \\ back"}, {"role": "assistant", "content": "中文"}, {"role": "user", "content": "{{ x }} {% y %}"}],
    "parts": [{"role": "user", "content": [{"type": "text", "text": "part one"}, {"type": "text", "text": "part two"}]}],
    "thinking": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "<think>\nhm\n</think>\n\nanswer"}, {"role": "user", "content": "q2"}, {"role": "assistant", "reasoning_content": "more\nthought", "content": "a2"}, {"role": "user", "content": "q3"}],
    "call": [{"role": "user", "content": "Weather?"}, {"role": "assistant", "content": None, "tool_calls": [CALL]}, {"role": "tool", "tool_call_id": "call12345", "name": "get_weather", "content": "{\"t\": 20.5}"}, {"role": "user", "content": "Thanks"}],
    "call_text": [{"role": "user", "content": "Weather?"}, {"role": "assistant", "content": "Let me see", "tool_calls": [CALL, CALL]}, {"role": "tool", "tool_call_id": "call12345", "name": "get_weather", "content": "sunny"}, {"role": "tool", "tool_call_id": "call12345", "name": "get_weather", "content": "rain"}],
    "call_json": [{"role": "user", "content": "Weather?"}, {"role": "assistant", "content": "", "tool_calls": [{**CALL, "function": {"name": "get_weather", "arguments": "{\"city\": \"Bern\"}"}}]}, {"role": "tool", "tool_call_id": "call12345", "name": "get_weather", "content": "{}"}],
    "final": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}],
    "two_users": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}],
    "odd_role": [{"role": "developer", "content": "d"}, {"role": "user", "content": "b"}],
}
VARIANTS = [
    {"add_generation_prompt": True, "tools": None, "kwargs": {}},
    {"add_generation_prompt": False, "tools": None, "kwargs": {"enable_thinking": False}},
    {"add_generation_prompt": True, "tools": TOOLS, "kwargs": {"enable_thinking": True, "reasoning_effort": "high"}},
    {"add_generation_prompt": True, "tools": TOOLS, "kwargs": {"thinking": True, "custom": 2.5}},
]
SPECIAL_TOKENS = {"bos_token": "<BOS>", "eos_token": "<EOS>", "unk_token": "<UNK>", "pad_token": "<PAD>"}


def reference_render(source, messages, variant):
    """What apply_chat_template does once it has the template's text; None when it raises."""
    messages = [{k: v for k, v in message.items() if v is not None} for message in messages]
    try:
        rendered, _ = render_jinja_template(
            conversations=[messages], tools=variant["tools"], chat_template=source,
            add_generation_prompt=variant["add_generation_prompt"], **{**SPECIAL_TOKENS, **variant["kwargs"]})
    except Exception:  # Any failure of the reference must be an error of ours.
        return None
    return rendered[0]


def check_template(probe, tally, name, source):
    rendered = 0
    for title, messages in CONVERSATIONS.items():
        for number, variant in enumerate(VARIANTS):
            expected = reference_render(source, messages, variant)
            got = probe.ask(op="render", template=source, special_tokens=SPECIAL_TOKENS, messages=messages, **variant)
            if expected is None:
                tally.equal(f"{name}, {title}, variant {number}: an error", "error" in got, True)
            else:
                rendered += 1
                tally.equal(f"{name}, {title}, variant {number}", got.get("text", got), expected)
    tally.equal(f"{name}: renders something", rendered > 0, True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=pathlib.Path, required=True, help="the folder of fetch_real_text.py")
    parser.add_argument("--probe", required=True, help="the program text_probe")
    parser.add_argument("--rounds", type=int, default=150, help="random texts per tokenizer")
    args = parser.parse_args()

    probe, tally = Probe(args.probe), Tally()
    folders = sorted((args.data / "tokenizers").iterdir())
    for folder in folders:
        before = tally.failures
        check_tokenizer(probe, tally, folder.name, folder, args.rounds)
        print(f"tokenizer {folder.name}: {tally.failures - before} differences")
    files = sorted((args.data / "templates").glob("*.jinja"))
    for file in files:
        before = tally.failures
        check_template(probe, tally, file.stem, file.read_text(encoding="utf-8"))
        if tally.failures > before:
            print(f"template {file.stem}: {tally.failures - before} differences")
    print(f"{len(folders)} tokenizers, {len(files)} templates, {tally.checks} checks, {tally.failures} failures")
    return 1 if tally.failures or not folders or not files else 0


if __name__ == "__main__":
    sys.exit(main())
