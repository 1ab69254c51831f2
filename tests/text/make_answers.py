#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes golden/answers.json: answers with tool calls in every format that Saker reads, as the formats' own templates and
model cards show them. The writers below share nothing with Saker's.

    python3 tests/text/make_answers.py
"""

import json
from pathlib import Path

WEATHER = ("get_weather", {"city": "Paris", "days": 3})
TIME = ("get_time", {"zone": "Europe/Rome"})
TRICKY = (
    "run_code",
    {
        "code": 'if (a < b && c > d) {\n\ts = "</think> [ARGS] \\\\n {x}";\n}\n// Grüße, 東京 ✓ 🙂',
        "label": "007",
        "flag": True,
        "sizes": [1, 2.5, -3e2],
        "options": {"deep": {"er": [None, "a, b"]}},
    },
)
# Gemma's strings have no escapes.
DSML = "｜DSML｜"


def spaced(value):
    return json.dumps(value, ensure_ascii=False)


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def raw(value):
    return value if isinstance(value, str) else spaced(value)


def objects(calls, name="name", arguments="arguments", dump=spaced):
    return [dump({name: f, arguments: a}) for f, a in calls]


def tagged_objects(opens, closes, **keys):
    return lambda calls: "\n".join(opens + text + closes for text in objects(calls, **keys))


def listed(opens, closes, **keys):
    return lambda calls: opens + "[" + ", ".join(objects(calls, **keys)) + "]" + closes


def python(opens, closes, brackets=True, separator=", "):
    def write(calls):
        texts = [f"{f}({', '.join(f'{k}={v!r}' for k, v in a.items())})" for f, a in calls]
        inner = separator.join(texts)
        return opens + (f"[{inner}]" if brackets else inner) + closes

    return write


def function_tags(opens, closes, gap="\n"):
    def one(f, a):
        values = "".join(f"<parameter={k}>{gap}{raw(v)}{gap}</parameter>{gap}" for k, v in a.items())
        return f"<function={f}>{gap}{values}</function>"

    return lambda calls: "\n".join(f"{opens}{gap}{one(f, a)}{gap}{closes}" for f, a in calls)


def seed_tags(calls):
    return "<seed:tool_call>\n" + function_tags("", "")(calls).strip("\n") + "\n</seed:tool_call>"


def argument_tags(gap="\n", suffix=""):
    def one(f, a):
        values = "".join(
            f"<arg_key{suffix}>{k}</arg_key{suffix}>{gap}<arg_value{suffix}>{raw(v)}</arg_value{suffix}>{gap}"
            for k, v in a.items()
        )
        return f"<tool_call{suffix}>{f}{gap}{values}</tool_call{suffix}>"

    return lambda calls: gap.join(one(f, a) for f, a in calls)


def hunyuan3(suffix):
    def write(calls):
        inner = argument_tags("\n", suffix)(calls)
        for f, _ in calls:
            inner = inner.replace(f"<tool_call{suffix}>{f}\n", f"<tool_call{suffix}>{f}<tool_sep{suffix}>\n")
        return f"<tool_calls{suffix}>\n{inner}\n</tool_calls{suffix}>"

    return write


def invoke_tags(opens, closes, tag="invoke", parameter="parameter", before="", after=""):
    def write(calls):
        texts = []
        for f, a in calls:
            values = "".join(f'<{parameter} name="{k}">{raw(v)}</{parameter}>\n' for k, v in a.items())
            texts.append(f'{before}<{tag} name="{f}">\n{values}</{tag}>{after}')
        return opens + "\n".join(texts) + closes

    return write


def dsml(section):
    def write(calls):
        texts = []
        for f, a in calls:
            values = "".join(
                f'<{DSML}parameter name="{k}" string="{"true" if isinstance(v, str) else "false"}">{raw(v)}'
                f"</{DSML}parameter>\n"
                for k, v in a.items()
            )
            texts.append(f'<{DSML}invoke name="{f}">\n{values}</{DSML}invoke>')
        return f"<{DSML}{section}>\n" + "\n".join(texts) + f"\n</{DSML}{section}>"

    return write


def nested(value, mark):
    if isinstance(value, dict):
        return "".join(f"{mark}<{k}>{nested(v, mark)}{mark}</{k}>" for k, v in value.items())
    if isinstance(value, list):
        return "".join(f"{mark}<item>{nested(v, mark)}{mark}</item>" for v in value)
    return raw(value)


def minimax_m3(calls):
    mark = "]<]minimax[>["
    inner = "".join(f'{mark}<invoke name="{f}">{nested(a, mark)}{mark}</invoke>\n' for f, a in calls)
    return f"{mark}<tool_call>\n{inner}{mark}</tool_call>"


def kimi_k3(calls):
    kinds = {str: "string", bool: "boolean", int: "number", float: "number", list: "array", dict: "object"}
    inner = ""
    for i, (f, a) in enumerate(calls):
        inner += f'<|open|>call tool="{f}" index="{i + 1}"<|sep|>'
        for k, v in a.items():
            inner += f'<|open|>argument key="{k}" type="{kinds[type(v)]}"<|sep|>{raw(v)}<|close|>argument<|sep|>'
        inner += "<|close|>call<|sep|>"
    return f"<|open|>tools<|sep|>{inner}<|close|>tools<|sep|>"


def deepseek(kind, before, after):
    def write(calls):
        texts = [f"<｜tool▁call▁begin｜>{kind(f)}{before}{spaced(a)}{after}<｜tool▁call▁end｜>" for f, a in calls]
        return "<｜tool▁calls▁begin｜>" + "\n".join(texts) + "<｜tool▁calls▁end｜>"

    return write


def kimi_k2(calls):
    inner = "".join(
        f"<|tool_call_begin|>functions.{f}:{i}<|tool_call_argument_begin|>{spaced(a)}<|tool_call_end|>"
        for i, (f, a) in enumerate(calls)
    )
    return f"<|tool_calls_section_begin|>{inner}<|tool_calls_section_end|>"


def gemma(opens, closes, quote):
    def value(v):
        if isinstance(v, dict):
            return "{" + ",".join(f"{k}:{value(x)}" for k, x in v.items()) + "}"
        if isinstance(v, list):
            return "[" + ",".join(map(value, v)) + "]"
        return f"{quote}{v}{quote}" if isinstance(v, str) else compact(v)

    return lambda calls: "".join(f"{opens}call:{f}{value(a)}{closes}" for f, a in calls)


def harmony(calls):
    return "<|call|><|start|>assistant".join(
        f"<|channel|>commentary to=functions.{f} <|constrain|>json<|message|>{spaced(a)}" for f, a in calls
    )


FORMATS = {
    "hermes": tagged_objects("<tool_call>\n", "\n</tool_call>"),
    "qwen3_coder": function_tags("<tool_call>", "</tool_call>"),
    "qwen3_coder without lines": function_tags("<tool_call>", "</tool_call>", ""),
    "seed_oss": seed_tags,
    "llama3": lambda calls: "; ".join(objects(calls, arguments="parameters")),
    "llama3 with a tag": lambda calls: "<|python_tag|>" + "; ".join(objects(calls, arguments="parameters")),
    "llama4": python("", ""),
    "llama4 with tags": python("<|python_start|>", "<|python_end|>"),
    "olmo3": python("<function_calls>", "</function_calls>", False, "\n"),
    "lfm2": python("<|tool_call_start|>", "<|tool_call_end|>"),
    "lfm2 with json": listed("<|tool_call_start|>", "<|tool_call_end|>"),
    "mistral_list": listed("[TOOL_CALLS]", ""),
    "mistral": lambda calls: "".join(f"[TOOL_CALLS]{f}[ARGS]{spaced(a)}" for f, a in calls),
    "mistral with ids": lambda calls: "".join(
        f"[TOOL_CALLS]{f}[CALL_ID]a1B2c3D4{i}[ARGS]{spaced(a)}" for i, (f, a) in enumerate(calls)
    ),
    "deepseek_v3": deepseek(lambda f: f"function<｜tool▁sep｜>{f}", "\n```json\n", "\n```"),
    "deepseek_v31": deepseek(lambda f: f, "<｜tool▁sep｜>", ""),
    "deepseek_v32": dsml("function_calls"),
    "deepseek_v4": dsml("tool_calls"),
    "deepseek_v41": dsml(" calls"),
    "glm": argument_tags("\n"),
    "glm without lines": argument_tags(""),
    "kimi_k2": kimi_k2,
    "kimi_k3": kimi_k3,
    "gpt_oss": harmony,
    "functiongemma": gemma("<start_function_call>", "<end_function_call>", "<escape>"),
    "gemma4": gemma("<|tool_call>", "<tool_call|>", '<|"|>'),
    "granite3": listed("<|tool_call|>", ""),
    "phi4_mini": listed("<|tool_call|>", "<|/tool_call|>"),
    "phi4_mini with functools": listed("functools", ""),
    "firefunction": listed("functools", ""),
    "minimax_m2": invoke_tags("<minimax:tool_call>\n", "\n</minimax:tool_call>"),
    "minimax_m3": minimax_m3,
    "command_r7b": listed("<|START_ACTION|>", "<|END_ACTION|>", name="tool_name", arguments="parameters"),
    "hunyuan": listed("<tool_calls>", "</tool_calls>"),
    "hunyuan3": hunyuan3(""),
    "hunyuan3_opensource": hunyuan3(":opensource"),
    "ernie45": tagged_objects("<tool_call>\n", "\n</tool_call>"),
    "nemotron_v2": listed("<TOOLCALL>", "</TOOLCALL>"),
    "apertus": lambda calls: "<|tools_prefix|>" + spaced([{f: a} for f, a in calls]) + "<|tools_suffix|>",
    "xlam": listed("", ""),
    "xlam with a fence": listed("```json\n", "\n```"),
    "step3": invoke_tags(
        "<｜tool_calls_begin｜>",
        "<｜tool_calls_end｜>",
        "steptml:invoke",
        "steptml:parameter",
        "<｜tool_call_begin｜>function<｜tool_sep｜>",
        "<｜tool_call_end｜>",
    ),
    "internlm": tagged_objects("<|action_start|><|plugin|>", "<|action_end|>", arguments="parameters"),
    "jamba": listed("<tool_calls>", "</tool_calls>"),
    "longcat": tagged_objects("<longcat_tool_call>\n", "\n</longcat_tool_call>"),
    "minicpm5": invoke_tags("", "", "function", "param"),
    "functionary31": lambda calls: "".join(f"<function={f}>{spaced(a)}</function>" for f, a in calls),
    "functionary32": lambda calls: "".join(f">>>{f}\n{spaced(a)}" for f, a in calls),
}


def answers():
    for name, write in FORMATS.items():
        yield {
            "format": name.split(" ")[0],
            "name": name,
            "one": write([WEATHER]),
            "two": write([WEATHER, TIME]),
            "tricky": write([TRICKY]),
        }


def main():
    data = {
        "calls": [{"name": f, "arguments": a} for f, a in (WEATHER, TIME, TRICKY)],
        "answers": list(answers()),
    }
    path = Path(__file__).parent / "golden" / "answers.json"
    path.write_text(json.dumps(data, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
