#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the pages that list the options of a request, from the table in saker/engine/options/request_option.cpp.

    tools/make_option_pages.py            writes the tables of docs/cli.md and docs/python.md, and python/saker/generate_options.py
    tools/make_option_pages.py --check    names the files that differ from the table; exit 1 if there is one

`--table` names the program that prints the table, `--top` the checkout. `tools/build.sh release option_table` builds the program.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parent.parent
TABLE = "build/release/tests/tools/option_table"
MARKED = re.compile(r"(?<=<!-- options -->\n).*?(?=<!-- end of options -->)", re.DOTALL)
WIDTH = 120
TYPES = {
    "integer": "int",
    "number": "float",
    "flag": "bool",
    "text": "str",
    "texts": "str | list[str]",
    "object": "dict[str, Any]",
    "integer_or_auto": 'int | Literal["auto"]',
    "switch": 'bool | Literal["auto"] | None',
    "path": "str | os.PathLike[str]",
    "json": "list[dict[str, Any]]",
    "schema": "dict[str, Any] | bool",
    "text_file": "str",
    "list": "list[Any]",
}
KEYS_ARE_TOKENS = {"logit_bias"}
WORDS = {"flag": "", "text": "text", "texts": "text", "object": "JSON object", "switch": "`on`, `off`, `auto`", "path": "path", "json": "JSON", "schema": "JSON schema", "text_file": "text", "list": "JSON list"}
DOORS = {"run": "`run`", "generate": "`generate`", "record": "records", "setting": "settings", "keyword": "Python"}

Option = dict[str, Any]


def flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def names_of_flags(text: str, quote: str) -> str:
    """Flags in a text as names of options: `--dynatemp-range` becomes `dynatemp_range`."""
    return re.sub(r"--([a-z][a-z-]*)", lambda found: quote + found[1].replace("-", "_") + quote, text)


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def values(option: Option) -> str:
    if "|" in option["values"]:
        return ", ".join(f"`{word}`" for word in option["values"].split("|"))
    if option["kind"] not in ("integer", "number", "integer_or_auto"):
        return WORDS[option["kind"]]
    noun = "number" if option["kind"] == "number" else "integer"
    low, high = option["low"], option["high"]
    ends = f"{low:g} to {high:g}" if high is not None else f"{low:g} or more" if low is not None else ""
    auto = ", or `auto`" if option["kind"] == "integer_or_auto" else ""
    return f"{noun}{', ' if ends else ''}{ends}{auto}"


def default(option: Option) -> str:
    return f" [{option['fallback']}]" if option["fallback"] else ""


def default_of_programs(option: Option) -> str:
    """Without the default of a command: `256; run: -1` becomes `256`."""
    return default({"fallback": option["fallback"].split(";")[0]})


def doors(option: Option) -> str:
    """Says where an option can be given, unless that is everywhere."""
    missing = [word for door, word in DOORS.items() if door not in option["doors"]]
    if len(missing) < 2:
        return f" (not in {missing[0]})" if missing else ""
    return f" ({', '.join(DOORS[door] for door in option['doors'])} only)"


def command_line(table: list[Option]) -> str:
    lines = []
    for group in dict.fromkeys(option["group"] for option in table):
        lines += [f"| {group} | values | effect [default] |", "|---|---|---|"]
        for option in (option for option in table if option["group"] == group):
            is_flag = {"run", "generate"} & set(option["doors"])
            names = [flag(name) if is_flag else name for name in (option["name"], *option["aliases"])]
            shown = ", ".join(f"`{name}`" for name in names)
            lines.append(f"| {shown} | {values(option)} | {cell(option['help'] + default(option) + doors(option))} |")
        lines.append("")
    return "\n".join(["", *lines])


def python_page(table: list[Option]) -> str:
    lines = ["| keyword | type | effect [default] |", "|---|---|---|"]
    for option in table:
        names = ", ".join(f"`{name}`" for name in (option["name"], *option["aliases"]))
        effect = cell(names_of_flags(option["program_help"], "`") + default_of_programs(option))
        lines.append(f"| {names} | `{cell(type_of(option))}` | {effect} |")
    return "\n".join(["", *lines, "", ""])


def type_of(option: Option) -> str:
    return "dict[int, float]" if option["name"] in KEYS_ARE_TOKENS else TYPES[option["kind"]]


def docstring(text: str) -> list[str]:
    return textwrap.wrap(f'"""{text}"""', WIDTH, initial_indent="    ", subsequent_indent="    ")


def python_module(table: list[Option]) -> str:
    lines = [
        "# SPDX-License-Identifier: Apache-2.0",
        "# tools/make_option_pages.py writes this file.",
        '"""The options of ``generate`` and ``stream`` with their types, and other names of options."""',
        "",
        "import os",
        "from typing import Any, Literal, TypedDict",
        "",
        "",
        "class GenerateOptions(TypedDict, total=False):",
        '    """How a prompt is continued. An option that is left out has its default."""',
        "",
    ]
    for option in table:
        words = f" Values: {', '.join(option['values'].split('|'))}." if "|" in option["values"] else ""
        lines.append(f"    {option['name']}: {type_of(option)}")
        lines += docstring(names_of_flags(option["program_help"], "``") + default_of_programs(option) + "." + words)
        for other in option["aliases"]:
            lines += [f"    {other}: {type_of(option)}", *docstring(f"Another name of ``{option['name']}``.")]
    lines += ["", "", "OTHER_NAMES = {"]
    lines += [f'    "{other}": "{option["name"]}",' for option in table for other in option["aliases"]]
    lines += ["}", '"""Former names and names of other programs, and ours."""', ""]
    return "\n".join(lines)


def pages(top: Path, table: list[Option]) -> dict[Path, str]:
    """The files by their path, as the table wants them."""
    keywords = [option for option in table if "keyword" in option["doors"]]
    found = {top / "python/saker/generate_options.py": python_module(keywords)}
    for name, rows in (("cli", command_line(table)), ("python", python_page(keywords))):
        page = top / f"docs/{name}.md"
        text = page.read_text(encoding="utf-8")
        if not MARKED.search(text):
            raise SystemExit(f"{page}: the lines <!-- options --> and <!-- end of options --> are missing")
        found[page] = MARKED.sub(lambda _, rows=rows: rows, text)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--top", type=Path, default=TOP, help="the checkout")
    parser.add_argument("--table", type=Path, help=f"the program that prints the table [{TABLE}]")
    options = parser.parse_args()
    program = options.table or options.top / TABLE
    table = json.loads(subprocess.run([program], capture_output=True, check=True).stdout)
    stale = []
    for path, text in pages(options.top, table).items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(path)
            if not options.check:
                path.write_text(text, encoding="utf-8")
    for path in stale:
        print(f"{path}: {'differs from the table of options; tools/make_option_pages.py writes it' if options.check else 'written'}")
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
