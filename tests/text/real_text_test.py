#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real tokenizers and chat templates: Saker must give exactly what `tokenizers` and `transformers` give.

Takes the files that fetch_real_text.py has put into a folder, and the program `text_probe`.
"""
import argparse
import json
import os
import pathlib
import random
import subprocess
import sys

import warnings

import random_templates
import tokenizers
import vocabularies
from transformers.utils.chat_template_utils import render_jinja_template

MAX_SHOWN = 20


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


    def processor_seconds(self):
        """What it has used so far: other programs on the machine do not count."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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


def check_vocabulary(probe, tally, file, folder, rounds):
    """A vocabulary of llama.cpp's tests, with the ids that its authors expect. False for kinds we cannot write."""
    content = vocabularies.tokenizer_json(file)
    if content is None:
        return False
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(content, encoding="utf-8")
    check_tokenizer(probe, tally, file.stem, folder, rounds)
    for text, ids in vocabularies.expected(file):
        got = probe.ask(op="encode", text=text, special=False)
        tally.equal(f"{file.stem}: expected ids of {text[:60]!r}", got.get("tokens", got), ids)
    return True


# ---- templates ----

TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "description": "Weather <now> & \"later\"", "parameters": {
        "type": "object", "properties": {"city": {"type": "string", "description": "Stadt für Zürich"}, "days": {"type": "integer", "enum": [1, 2, 3]},
                                         "scale": {"type": "number", "default": 0.5}, "flags": {"type": "array", "items": {"type": "boolean"}}},
        "required": ["city"]}}},
    {"type": "function", "function": {"name": "noop", "description": "", "parameters": {"type": "object", "properties": {}}}},
]
PLAIN_TOOLS = [{"type": "function", "function": {"name": "say", "description": "Says it", "parameters": {
    "type": "object", "properties": {"text": {"type": "string", "description": "what"}}, "required": ["text"]}}}]
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
    {"add_generation_prompt": True, "tools": PLAIN_TOOLS, "kwargs": {"thinking": True, "custom": 2.5, "functions": "[]", "datetime": "now"}},
]
SPECIAL_TOKENS = {"bos_token": "<BOS>", "eos_token": "<EOS>", "unk_token": "<UNK>", "pad_token": "<PAD>"}


# One feature each; rendered with the conversation "call", the tools and these variables.
VARIABLES = {"f": 1e20, "g": 0.1, "n": 7, "none_value": None, "words": ["b", "A", "c"], "nested": {"k": [1, 2.0, {"x": None}], "Z": "é\u2028\x7f\""},
             "text": "  The quick\tbrown\x1ffox\r\njumps\x0bover \u3000", "rows": [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}, {"a": 3, "b": "x"}]}
SNIPPETS = [
    "{{ f }} {{ g }} {{ 1e16 }} {{ 1e15 }} {{ 0.0001 }} {{ 0.00001 }} {{ 1.5e300 }} {{ -0.0 }} {{ 2.50 }}",
    "{{ f ~ g }} {{ [f, g, 1, none, true, 'x'] }} {{ (1,) }} {{ (1, 2) }} {{ {'a': f, 2: 'b'} }} {{ [] }} {{ {} }}",
    "{{ f|string }} {{ [f]|join('-') }} {{ words|join }} {{ rows|join(', ', attribute='a') }} {{ [1, none, 2.0]|join('|') }}",
    "{{ nested }} {{ ['it\\'s', 'say \"x\"', 'both \\' \"', 'tab\\t'] }}",
    "{{ nested|tojson }}|{{ nested|tojson(indent=2) }}|{{ nested|tojson(indent=0) }}|{{ []|tojson(indent=2) }}|{{ {}|tojson(indent=2) }}",
    "{{ nested|tojson(ensure_ascii=true) }}|{{ nested|tojson(sort_keys=true, separators=(',', ':')) }}|{{ nested|tojson(indent='\\t') }}",
    "{{ '\\x00\\x1f\\b\\f</script>&'|tojson }} {{ {1: 2, none: 3, false: 4, 1.5: 5}|tojson }} {{ (1, 2)|tojson }} {{ f|tojson }} {{ '😀'|tojson(true) }}",
    "{{ undefined_thing }}|{{ undefined_thing is defined }}|{{ undefined_thing|default('d') }}|{{ ''|default('d', true) }}|{{ none|default('d') }}|{% for x in undefined_thing %}x{% endfor %}",
    "{{ undefined_thing.attribute }}", "{{ undefined_thing + 'x' }}", "{{ undefined_thing()}}", "{{ nested.missing }}|{{ nested['missing'] }}|{{ nested.missing.deeper }}",
    "{{ none_value }} {{ none_value is none }} {{ none_value is iterable }} {{ words is iterable }} {{ 'x' is iterable }} {{ nested is mapping }} {{ words is sequence }} {{ nested is sequence }} {{ 'x' is string }} {{ 1 is number }} {{ true is number }} {{ 1.5 is float }} {{ 1 is integer }} {{ true is boolean }}",
    "{% for x in none_value %}{% endfor %}", "{{ none_value.x }}", "{{ none_value|length }}", "{{ 'a' + 1 }}", "{{ 1 / 0 }}", "{{ raise_exception('no\nway') }}", "{{ 'x'.nothing() }}", "{% if %}", "{{ 1 +", "{% for x in words %}",
    "{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 4 / 2 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ 1 + 2.0 }} {{ 3 * 'ab' }} {{ [1] * 3 }} {{ [1] + [2] }} {{ 'a' * -1 }} {{ 10 - 2 - 3 }} {{ -n }}",
    "{{ text|trim }}|{{ text.strip() }}|{{ text.split() }}|{{ text.split(' ') }}|{{ text.splitlines() }}|{{ text.splitlines(true) }}|{{ text.lstrip() }}|{{ text.rstrip() }}",
    "{{ 'a,b,,c'.split(',') }} {{ 'a,b,,c'.split(',', 1) }} {{ 'a,b,,c'.rsplit(',', 1) }} {{ ' a b  c '.rsplit(none, 1) }} {{ ' a b  c '.split(none, 1) }} {{ 'xxaxx'.strip('x') }} {{ 'abcab'.rstrip('ab') }} {{ 'abc'.partition('b') }} {{ 'abcb'.rpartition('b') }} {{ 'abc'.partition('z') }}",
    "{{ 'ab'.upper() }} {{ 'AB'|lower }} {{ 'hello world'|title }} {{ 'hello world'.title() }} {{ 'hello World'|capitalize }} {{ 'abc'.startswith('a') }} {{ 'abc'.endswith(('x', 'c')) }} {{ 'abcabc'.replace('b', 'X', 1) }} {{ 'abc'|replace('b', 'X') }} {{ 'abc'.find('c') }} {{ 'abc'.find('z') }} {{ 'aXbX'.count('X') }}",
    "{{ 'abc'.removeprefix('a') }} {{ 'abc'.removesuffix('c') }} {{ '12'.isdigit() }} {{ 'a1'.isalnum() }} {{ '-'.join(words) }} {{ 'abc'[::-1] }} {{ 'abc'[1:] }} {{ 'abcdef'[-3:-1] }} {{ words[1:] }} {{ words[-1] }} {{ words[::-1] }} {{ 'héllo'[1] }} {{ words[:2]|length }}",
    "{{ words|sort }} {{ words|sort(reverse=true) }} {{ words|sort(case_sensitive=true) }} {{ words|first }} {{ words|last }} {{ words|length }} {{ words|reverse|list }} {{ [3, 1, 2]|max }} {{ [3, 1, 2]|min }} {{ [1, 2, 3]|sum }} {{ [1, 1, 2]|unique|list }}",
    "{{ rows|selectattr('b', 'equalto', 'x')|map(attribute='a')|list }} {{ rows|rejectattr('b', '==', 'x')|list|length }} {{ rows|map(attribute='b')|join(',') }} {{ words|map('upper')|list }} {{ [0, 1, 2]|select|list }} {{ [0, 1]|reject|list }} {{ [1, 2, 3]|select('odd')|list }} {{ rows|selectattr('a')|list|length }}",
    "{{ rows|groupby('b')|length }} {% for k, v in rows|groupby('b') %}{{ k }}={{ v|length }};{% endfor %} {{ nested|items|list }} {{ nested|dictsort }} {{ nested.items()|list }} {{ nested.keys()|list }} {{ nested.get('k') }} {{ nested.get('q', 'd') }} {% for k, v in nested.items() %}{{ k }};{% endfor %}",
    "{{ '5'|int }} {{ 'x'|int }} {{ 'x'|int(3) }} {{ 5.9|int }} {{ '2.5'|float }} {{ 2.567|round(1) }} {{ 2.5|round }} {{ 3|round }} {{ -3|abs }} {{ 'abc'|list }} {{ nested|list }} {{ nested|length }}",
    "{{ 'a\nb\n\nc'|indent }}|{{ 'a\nb'|indent(2, true) }}|{{ 'a\n\nb'|indent(2, blank=true) }}|{{ 'a\nb\n'|indent(first=true, width=1) }}|{{ ''|indent }}|{{ 'a\nb'|indent('>>') }}",
    "{{ '%s is %d or %.2f' % ('x', 3, 2.5) }} {{ '%s!' % n }} {{ '%5s|%-5s|%05d' % ('a', 'b', 42) }}", "{{ '%s-%s'|format('a', 1) }} {{ '{} {}'.format(1, 'x') }} {{ '{0:>5}|{1:<4}|{2:.2f}'.format(1, 'a', 2.555) }}",
    "{% set ns = namespace(x=0, items=[]) %}{% for i in range(5) %}{% if i == 3 %}{% break %}{% endif %}{% if i == 1 %}{% continue %}{% endif %}{% set ns.x = ns.x + i %}{% set ns.items = ns.items + [i] %}{% endfor %}{{ ns.x }} {{ ns.items }}",
    "{% for i in range(3) %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.revindex }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.cycle('a', 'b') }};{% else %}none{% endfor %}{% for i in [] %}{% else %}none{% endfor %}",
    "{% set x = 1 %}{% for i in [1] %}{% set x = 2 %}{% endfor %}{{ x }}{% if true %}{% set x = 3 %}{% endif %}{{ x }}{% with %}{% set x = 4 %}{% endwith %}{{ x }}",
    "{% macro m(a, b='d', c=none) %}[{{ a }}{{ b }}{{ c }}]{% endmacro %}{{ m(1) }}{{ m(1, b=2) }}{{ m(1, 2, 3) }}{{ m() }}",
    "{% macro wrap() %}<{{ caller() }}>{% endmacro %}{% call wrap() %}body{% endcall %} {% filter upper %}shout{% endfilter %} {% set block %}captured {{ n }}{% endset %}{{ block }}|{{ block|length }}",
    "{% macro r(d) %}{{ d }}{% if d > 0 %}{{ r(d - 1) }}{% endif %}{% endmacro %}{{ r(3) }}",
    "{% generation %}assistant{% set inner = 1 %}{% endgeneration %}{{ inner is defined }}\n  {%- generation -%}  x  {%- endgeneration %}\n{% generation %}\n y\n{% endgeneration %}\n",
    "a\n  {% if true %}  \n  b\n  {% endif %}\nc {#- comment -#}  d\n{%- set q = 1 %}\n  {{- q }}\n{% raw %}{{ raw }}{% endraw %}\n",
    "{{ 'a' if n > 5 else 'b' }} {{ 'a' if n > 50 }} {{ n in [7] }} {{ 'x' not in 'xyz' }} {{ not n }} {{ n == 7 and g or 3 }} {{ 1 < 2 < 3 }} {{ 'k' in nested }} {{ n is divisibleby(7) }} {{ n is odd }} {{ words is not string }} {{ 'a' is in words }}",
    "{{ messages[1].tool_calls[0].function.arguments|tojson }} {{ messages[1].tool_calls[0].function.arguments }} {{ messages[1] }} {{ messages|length }} {{ messages[-1]['content'] }} {{ tools[0] }} {{ documents }}",
    "{{ ('<b>'|safe) + '<i>' }} {{ '<b>'|escape }} {{ '<b>'|e + '<' }} {{ '<b>' ~ '&' }} {{ '<b>'|string }}",
    "{{ words|batch(2)|list }} {{ words|slice(2)|list }} {{ dict(a=1, b='x') }} {{ [[1, 2], [3]]|sum(start=[]) }} {{ range(1, 10, 3)|list }} {{ [1, 2]|string }} {{ true|string }} {{ none|string }} {{ [none, true, 1.0]|tojson }}",
    "{{ strftime_now('%Y') }} {{ strftime_now('%d %b %Y')|length }} {{ strftime_now('%B %A %j %H%%') }} {{ strftime_now('%-d/%-m/%y %I %p') }}",
    "{{ 'ß'.upper() }} {{ 'İ'.lower() }} {{ 'x'.isspace() }} {{ '\u2003'.isspace() }} {{ 'ΑΣ'.lower() }} {{ 'Ⅷ'.isnumeric() }} {{ '²'.isdigit() }}",
    "{{ nested.k[2].x }} {{ nested['k'][1] }} {{ nested.k|last }} {{ rows[0]['a'] }} {{ rows[10] is defined }} {{ words.0 }}",
    "{% if messages[0].role == 'user' and messages[0]['content'] is string %}yes{% elif false %}no{% else %}never{% endif %}{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set x = {'y': 1} %}{{ x.y }}{{ x['y'] }}",
    "{{ u|length }}{{ u|list }}{{ u|items|list }}{{ u|first is defined }}{{ [u] }}{{ u|map('upper')|list }}{{ none|select|list }}", "{{ none|list }}", "{{ none|first }}", "{{ none|join }}", "{{ 5|length }}",
    "{{ nested.items is defined }}{{ nested['items'] is defined }}{{ nested['keys']['x'] is defined }}{% set f = text.split %}{{ f() }}{{ f is callable }}{{ nested|attr('k') }}",
    "{{ '%5s|%-5s|%.2s|%r|%(a)s' % {'a': 1} }}", "{{ '%5s|%-5s|%.2s|%r' % ('é', 'ü', 'äöü', ['x']) }}{{ '%+d|% d|%x|%#o|%e|%g|%G|%*d|%.3d' % (1, 2, 255, 8, 1234.5, 1e-7, 1e20, 4, 5, 6) }}{{ '%s' % [1, none] }}", "{{ '%s' % () }}", "{{ 'x' % 1 }}", "{{ '%d' % 'x' }}",
    "{{ '{:>5}|{:*^7}|{:,}|{:_}|{:+.1f}|{:#x}|{:08.3f}|{:.1%}|{!r}|{:.3}|{:g}'.format('é', 'x', 1234567, 1234567, 2.25, 255, 3.14159, 0.256, 'q', 12.0, 1e-5) }}{{ '{a[k]} {0[1]} {b:{w}}{{}}'.format([1, 2], a={'k': 3}, b=1, w=4) }}",
    "{{ 'aXß'.swapcase() }}{{ 'a\\tb'.expandtabs(4) }}{{ 'Straße'.casefold() }}{{ 'ab'.center(5, '*') }}{{ '-4'.zfill(5) }}{{ 'abcb'.rindex('b') }}{{ 'abcb'.find('b', 2) }}{{ \"they're 3rd\".title() }}{{ \"they're (3rd)-x\"|title }}{{ 'abc'.startswith('b', 1) }}", "{{ 'abc'.index('z') }}", "{{ words.append(1) }}",
    "{{ '0x1f'|int(base=16) }}{{ '1_0'|int }}{{ 'z'|int(default=3) }}{{ '4.7'|int }}{{ {'b': 1, 'A': 3}|dictsort(true) }}{{ {'b': 1, 'A': 3}|dictsort(by='value', reverse=true) }}{{ rows|sort(attribute='b,a', reverse=true) }}{{ rows|max(attribute='a') }}{{ words|unique|list }}",
    "{{ 'foo bar baz qux'|truncate(9) }}{{ 'foo bar'|truncate(5, true, '>', 0) }}{{ 'a b_c'|wordcount }}{{ 'x'|center(9) }}|{{ 'well-known fact abcdefghijk'|wordwrap(6) }}{{ 'a/b é'|urlencode }}{{ {'a b': 'é/'}|urlencode }}{{ '<'|safe|forceescape }}{{ {'a': '<', 'b': none}|xmlattr }}",
    "{% set c = cycler(1, 2) %}{{ c.next() }}{{ c.next() }}{{ c.current }}{% set j = joiner('|') %}{{ j() }}{{ j() }}{{ dict([('a', 1)], b=2) }}{{ raise_exception is callable }}",
    "{% macro m(a, b=2) %}{{ a }}{{ b }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 3, 4, x=5) }}{{ m(*[1, 2, 3], **{'y': 4}) }}{{ m(b=1) }}",
    "{{ '{% generation %}' }}{% raw %}{% endgeneration %}{% endraw %}{# {% generation %} #}{{ '\\/' }}{{ '\\x41\\101\\v'|tojson }}", "a\r\n{% if true %}\r\nb\rc{% endif %}{% raw %}\nx{% endraw %}",
    "{{ 'abcdef'[4:1:-2] }}{{ (1, 2, 3)[::-1] }}{{ words[-1:] }}{{ [1, none] < [1, none, 2] }}{{ 1 == true }}{{ (1,) + (2,) }}{% for c in 'ab' %}{{ loop.revindex }}{% endfor %}", "{{ none_value[1:] }}", "{{ [1, 'a']|sort }}", "{{ {[1]: 2} }}", "{{ [1] + (2,) }}", "{{ none_value < n }}",
]


def check_snippets(probe, tally):
    for snippet in SNIPPETS:
        variant = {"add_generation_prompt": True, "tools": TOOLS, "kwargs": VARIABLES}
        expected, error = reference_render(snippet, CONVERSATIONS["call"], variant)
        got = render(probe, snippet, CONVERSATIONS["call"], variant)
        if expected is None:
            tally.equal(f"{snippet[:80]!r}: raises {error}", "error" in got, True)
        else:
            tally.equal(f"{snippet[:80]!r}", got.get("text", got), expected)


HISTORY = "{% set messages = history %}"
"""Before a template: it gets the messages as they are. Those that Saker is given as messages are fitted to it first."""


def with_history(messages, variant):
    return {**variant, "kwargs": {**variant["kwargs"], "history": messages}}


def render(probe, source, messages, variant, special_tokens=SPECIAL_TOKENS):
    return probe.ask(op="render", template=HISTORY + source, special_tokens=special_tokens, messages=CONVERSATIONS["one"], **with_history(messages, variant))


def reference_render(source, messages, variant, special_tokens=SPECIAL_TOKENS):
    """What apply_chat_template does once it has the template's text: (text, None), or (None, why it raises)."""
    variant = with_history(messages, variant)
    try:
        rendered, _ = render_jinja_template(
            conversations=[CONVERSATIONS["one"]], tools=variant["tools"], chat_template=HISTORY + source,
            add_generation_prompt=variant["add_generation_prompt"], **{**special_tokens, **variant["kwargs"]})
    except Exception as error:  # Any failure of the reference must be an error of ours.
        return None, repr(error)
    return rendered[0], None


def long_histories():
    """600 turns, and a turn with 1 000 tool calls, as agents have them."""
    turns = []
    for number in range(600):
        turns += [{"role": "user", "content": f"question {number} " + "x y " * 50}, {"role": "assistant", "content": f"answer {number} " + "z w " * 50}]
    calls = [{"role": "user", "content": "Weather?"}]
    for number in range(1000):
        call = {"id": f"call{number:05}", "type": "function", "function": {"name": "get_weather", "arguments": {"city": f"Zürich {number}", "days": number}}}
        calls += [{"role": "assistant", "content": "", "tool_calls": [call]}, {"role": "tool", "tool_call_id": f"call{number:05}", "name": "get_weather", "content": f"{number} degrees"}]
    return {"600 turns": turns + [{"role": "user", "content": "last"}], "1 000 calls": calls}


def check_long(probe, tally, name, source, slowest):
    """Long histories render as in transformers, each within a second of processor time."""
    for title, messages in long_histories().items():
        variant = {"add_generation_prompt": True, "tools": TOOLS if "calls" in title else None, "kwargs": {}}
        begin = probe.processor_seconds()
        got = render(probe, source, messages, variant)
        seconds = probe.processor_seconds() - begin
        expected, error = reference_render(source, messages, variant)
        if expected is None:
            tally.equal(f"{name}, {title}: raises {error}"[:300], "error" in got, True)
        else:
            tally.equal(f"{name}, {title}", got.get("text", got), expected)
            slowest[f"{name}, {title}"] = seconds


def check_random(probe, tally, seed, count):
    for source in random_templates.templates(seed, count):
        variant = {"add_generation_prompt": True, "tools": None, "kwargs": random_templates.VARIABLES}
        expected, error = reference_render(source, CONVERSATIONS["one"], variant, special_tokens={})
        got = render(probe, source, CONVERSATIONS["one"], variant, special_tokens={})
        if expected is None:
            tally.equal(f"{source!r}: raises {error}", "error" in got, True)
        else:
            tally.equal(repr(source), random_templates.comparable(got.get("text", str(got))), random_templates.comparable(expected))


def check_numbers(probe, tally, count):
    """Long floats and integers through `tojson` and back."""
    rng = random.Random("numbers 1")
    numbers = [rng.choice([rng.uniform(-1e3, 1e3), rng.random(), rng.uniform(1e9, 2e9), rng.getrandbits(rng.randint(1, 900)), -rng.getrandbits(200), rng.random() * 10.0 ** rng.randint(-300, 300)]) for _ in range(count)]
    got = probe.ask(op="render", template="{{ numbers|tojson }}", special_tokens={}, messages=CONVERSATIONS["one"], tools=None, kwargs={"numbers": numbers}, add_generation_prompt=True)
    tally.equal("numbers", got.get("text", got), json.dumps(numbers))


def check_template(probe, tally, name, source):
    rendered = 0
    for title, messages in CONVERSATIONS.items():
        for number, variant in enumerate(VARIANTS):
            expected, error = reference_render(source, messages, variant)
            got = render(probe, source, messages, variant)
            if expected is None:
                tally.equal(f"{name}, {title}, variant {number}: raises {error[:200]}", "error" in got, True)
            else:
                rendered += 1
                tally.equal(f"{name}, {title}, variant {number}", got.get("text", got), expected)
    return rendered > 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=pathlib.Path, required=True, help="the folder of fetch_real_text.py")
    parser.add_argument("--probe", required=True, help="the program text_probe")
    parser.add_argument("--seeds", type=int, default=5, help="of 2 000 random templates each")
    parser.add_argument("--rounds", type=int, default=150, help="random texts per tokenizer")
    args = parser.parse_args()

    probe, tally = Probe(args.probe), Tally()
    folders = sorted((args.data / "tokenizers").iterdir())
    for folder in folders:
        before = tally.failures
        check_tokenizer(probe, tally, folder.name, folder, args.rounds)
        print(f"tokenizer {folder.name}: {tally.failures - before} differences")
    known = [file for file in sorted((args.data / "vocabularies").glob("*.gguf"))
             if check_vocabulary(probe, tally, file, args.data / "vocabularies" / file.stem, args.rounds // 10)]
    print(f"vocabularies: {', '.join(file.stem.removeprefix('ggml-vocab-') for file in known)}")
    check_snippets(probe, tally)
    check_numbers(probe, tally, 5000)
    warnings.simplefilter("ignore")
    for seed in range(args.seeds):
        before = tally.failures
        check_random(probe, tally, seed, 2000)
        print(f"random templates, seed {seed}: {tally.failures - before} differences")
    files = sorted((args.data / "templates").glob("*.jinja"))
    slowest, living = {}, 0
    for file in files:
        before = tally.failures
        source = file.read_text(encoding="utf-8")
        living += check_template(probe, tally, file.stem, source)
        check_long(probe, tally, file.stem, source, slowest)
        if tally.failures > before:
            print(f"template {file.stem}: {tally.failures - before} differences")
    # Some are pieces of others, or want variables that nobody knows.
    tally.equal("most templates render something", living > 0.9 * len(files), True)
    times = sorted(((seconds, title) for title, seconds in slowest.items()), reverse=True)
    print(f"{len(times)} long histories; those that take longest:")
    for seconds, title in times[:10]:
        print(f"{seconds:.2f} s, {title}")
    tally.equal("long histories of a second or more", [title for seconds, title in times if seconds >= 1], [])
    print(f"{len(folders) + len(known)} tokenizers, {len(files)} templates, {tally.checks} checks, {tally.failures} failures")
    return 1 if tally.failures or not folders or not known or not files else 0


if __name__ == "__main__":
    sys.exit(main())
