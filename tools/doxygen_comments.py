#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Print a header with doxygen's comments: `tools/doxygen_comments.py HEADER`, the input filter of docs/Doxyfile.

Comments of the project are plain `//`. The first one of a header describes the file, one above code describes that code, one
behind code describes that code, and indented lines are a table or code. Data members, enumerators, constants, accessors of
one line, const functions without arguments, moves, defaulted and pure virtual functions may say all by their names: without a
comment they get the name as one, since doxygen warns of what has none. So do classes, enumerations and aliases, which the
comment of a file may describe. Lines keep their numbers. A page of Markdown loses its links, whose targets doxygen does not know.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ALONE = re.compile(r"(\s*)// ?(.*)")
BEHIND = re.compile(r"(.*[;,)}]|\s*k\w+(?: = \w+)?)(\s+)// (.*)")
MEMBER = re.compile(
    r"\s+(?!return|using|friend|throw|class|struct|const override)[\w:]+(?:<.*>)?[ *&]+(\w+)\b(?<!_)(?: = .+)?;"
    r"|\s+(k[A-Z]\w*)(?: = \w+)?,"
)
ACCESSOR = re.compile(r"\s+.*[ &*](\w+)\(\) const \{ return .*; \}|\s+.*(\w+|operator==?)\(.*\).* = default;")
DECLARED = re.compile(r"\s+.*[ &*](\w+|operator=)\((?:.*\) const = 0|.*\) = 0|\) const|\w+&&\) noexcept);")
CONSTANT = re.compile(r"inline constexpr .*?(k[A-Z]\w*) = .*")
TYPE = re.compile(r"\s*(?:(?:class|struct|enum class) (\w+)\b[^;]*\{.*|using (\w+) =.*)")
NO_COMMENT = ("SPDX", "NOLINT", "clang-format", "namespace")


def escaped(text: str) -> str:
    """Signs that are orders to doxygen, outside of code in backticks and of quotations, where it takes no orders."""
    parts = re.split(r'(`[^`]*`|"[^"]*")', text)
    return "".join(re.sub(r"([@\\<>#&])", r"\\\1", part) if i % 2 == 0 else part for i, part in enumerate(parts))


def block(lines: list[str], mark: str) -> Iterator[str]:
    """A comment's lines; those with two more spaces stay as they are."""
    indented = [text.startswith("  ") for text in lines]
    for i, text in enumerate(lines):
        if not indented[i]:
            yield f"{mark} {escaped(text)}".rstrip()
            continue
        begin = "@verbatim " if i == 0 or not indented[i - 1] else ""
        end = " @endverbatim" if i + 1 == len(lines) or not indented[i + 1] else ""
        yield f"{mark} {begin}{text}{end}"


def translated(text: str) -> Iterator[str]:
    lines = text.splitlines()
    first = next((i for i, line in enumerate(lines) if ALONE.fullmatch(line) and i > 0), 0)
    i = 0
    while i < len(lines):
        alone = ALONE.fullmatch(lines[i])
        behind = None if alone else BEHIND.fullmatch(lines[i])
        if i + 1 == first and not lines[i]:
            yield "/// @file"
        elif alone and not alone[2].startswith(NO_COMMENT):
            comment = []
            while i < len(lines) and (found := ALONE.fullmatch(lines[i])):
                comment.append(found[2])
                i += 1
            yield from block(comment, alone[1] + "///")
            continue
        elif behind and not behind[3].startswith(NO_COMMENT):
            yield f"{behind[1]}{behind[2]}///< {escaped(behind[3])}"
        elif (member := MEMBER.fullmatch(lines[i]) or ACCESSOR.fullmatch(lines[i])) and not ALONE.fullmatch(lines[i - 1]):
            yield f"{lines[i]}  ///< {(member[1] or member[2]).replace('_', ' ')}"
        elif (named := DECLARED.fullmatch(lines[i]) or TYPE.fullmatch(lines[i])) and not ALONE.fullmatch(lines[i - 1]):
            yield f"/** {named[named.lastindex or 0]} */ {lines[i]}"
        elif (constant := CONSTANT.fullmatch(lines[i])) and not ALONE.fullmatch(lines[i - 1]):
            yield f"/** {constant[1]} */ {lines[i]}"
        else:
            yield lines[i]
        i += 1


if __name__ == "__main__":
    content = Path(sys.argv[1]).read_text(encoding="utf-8")
    if sys.argv[1].endswith(".md"):
        content = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", content)
    else:
        content = "\n".join(translated(content)) + "\n"
    sys.stdout.write(content)
