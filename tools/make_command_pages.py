#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/commands.md, the page of all commands and their options, from the program's table (`saker man --json`).

    tools/make_command_pages.py            writes the page
    tools/make_command_pages.py --check    says if the page differs from the table; exit 1 then

`--program` names the program, `--top` the checkout.
"""

import argparse
import json
import pathlib
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = "build/release/saker"
PAGE = "docs/commands.md"
HEAD = """# All commands and options

`tools/make_command_pages.py` writes this page from the program's table of commands and options. Help, manual pages and completions come
from the same table. [cli.md](cli.md) explains what the options do together. Brackets show the default.
"""


def cell(text):
    return text.replace("|", "\\|").replace("<", "&lt;")


def name(row):
    """`-n`, `--max-tokens INT`"""
    return ", ".join(f"`{cell(one)}`" for one in row["name"].split(", "))


def command(entry):
    lines = [f"## {entry['name']}", "", f"    {entry['usage']}", "", entry["text"].rstrip(".") + "."]
    if entry["aliases"]:
        lines[-1] += f" Also called `{'`, `'.join(entry['aliases'])}`."
    for section in entry["sections"]:
        lines += ["", f"| {section['title']} | |", "|---|---|"]
        lines += [f"| {name(row)} | {cell(row['text'])} |" for row in section["rows"]]
    return "\n".join([*lines, ""])


def page(table):
    parts = [HEAD, *(command(entry) for entry in table["commands"])]
    rows = [f"| `{row['name']}` | {cell(row['text'])} |" for row in table["environment"]]
    first = "| `SAKER_` and an option's name | The default of that option, as in `SAKER_MAX_TOKENS`. |"
    parts.append("\n".join(["## Environment", "", "| variable | effect [default] |", "|---|---|", first, *rows, ""]))
    return "\n".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--program", type=pathlib.Path)
    parser.add_argument("--top", type=pathlib.Path, default=TOP)
    options = parser.parse_args()
    program = options.program or options.top / PROGRAM
    table = json.loads(subprocess.run([program, "man", "--json"], capture_output=True, check=True).stdout)
    wanted = page(table)
    path = options.top / PAGE
    if path.exists() and path.read_text() == wanted:
        return 0
    if options.check:
        print(f"{PAGE}: differs from the program's table: tools/make_command_pages.py writes it")
        return 1
    path.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
