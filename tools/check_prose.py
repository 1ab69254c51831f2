#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check the English of comments and documentation: `tools/check_prose.py [-v] [TOP]`.

A sentence does not open with What, Of, Whether, Those or The same: its subject comes first. Public headers have no such
opening, all comments together fewer than 50. Nine sentences in ten, in headers and in docs, have at most 25 words. Lines of
docs have at most 140 characters, but for tables and code. Relative links of Markdown lead to a file, and to a heading in it. With -v
every finding is a line, else only what fails.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PUBLIC = ("include/**/*.h",)
DOCS = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/*.md")
LINKING = (*DOCS, "docs/**/*.md", "models/*/README.md")
MAX_OPENINGS, MAX_WORDS, SHARE, MAX_COLUMNS = 49, 25, 0.9, 140
OPENING = re.compile(r"(What|Of|Whether|Those|The same)\b")
SENTENCE_END = re.compile(r"(?<=[.!?;:])\s+(?=[A-Z`\"'(])")
WORD = re.compile(r"[A-Za-z][\w'-]*")
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^()\s]+)\)")


@dataclass(frozen=True)
class Sentence:
    path: Path
    line: int
    text: str

    def words(self) -> int:
        return len(WORD.findall(re.sub(r"`[^`]*`|\([^)]*\)", " x ", self.text)))

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text[:100]}"


def comment_blocks(text: str) -> Iterator[tuple[int, list[str]]]:
    """Comments of C++: lines of // one below the other, without what is indented as a table, and comments behind code."""
    block: list[str] = []
    start = 0
    for number, line in enumerate(text.splitlines(), 1):
        alone = re.match(r"\s*// ?(.*)", line)
        behind = None if alone else re.search(r"[;,{(}\w)]\s+// (.*)", line)
        if alone and not alone[1].startswith(("SPDX", "NOLINT")):
            if alone[1].startswith("  ") or not alone[1]:  # A table, or a new paragraph.
                yield start, block
                block = []
                continue
            start = start if block else number
            block.append(alone[1])
            continue
        yield start, block
        block = []
        if behind:
            yield number, [behind[1]]
    yield start, block


def paragraphs(text: str) -> Iterator[tuple[int, list[str]]]:
    """Prose of Markdown: no code, tables or headings. An item of a list is a paragraph."""
    block: list[str] = []
    start, in_code = 0, False
    for number, line in enumerate([*text.splitlines(), ""], 1):
        stripped = line.strip()
        if stripped.startswith("```"):
            in_code = not in_code
        is_prose = stripped and not in_code and not stripped.startswith(("|", "#", "```")) and not line.startswith("    ")
        item = re.match(r"(?:[-*]|\d+\.)\s+(.*)", stripped)
        if block and (not is_prose or item):
            yield start, block
            block = []
        if is_prose:
            start = start if block else number
            block.append(item[1] if item else stripped)


def sentences(path: Path, blocks: Iterator[tuple[int, list[str]]]) -> Iterator[Sentence]:
    for start, block in blocks:
        for text in SENTENCE_END.split(" ".join(block)):
            if WORD.search(text):
                yield Sentence(path, start, text)


def long_lines(path: Path, text: str) -> Iterator[str]:
    in_code = False
    for number, line in enumerate(text.splitlines(), 1):
        in_code ^= line.startswith("```")
        if len(line) > MAX_COLUMNS and not in_code and not line.lstrip().startswith("|"):
            yield f"{path}:{number}: {len(line)} characters, at most {MAX_COLUMNS} expected"


def anchors(text: str) -> set[str]:
    """The names by which GitHub links to a page's headings."""
    headings = re.findall(r"^#+ +(.+)", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def broken_links(top: Path) -> Iterator[str]:
    for path in sorted({path for pattern in LINKING for path in top.glob(pattern)}):
        for link in LINK.findall(CODE.sub("`", path.read_text(encoding="utf-8"))):
            if "://" in link or link.startswith("mailto:"):
                continue
            name, _, anchor = link.partition("#")
            target = path.parent / name if name else path
            if not target.exists():
                yield f"{path.relative_to(top)}: {link} leads to no file"
            elif anchor and anchor not in anchors(target.read_text(encoding="utf-8")):
                yield f"{path.relative_to(top)}: {link} leads to no heading"


def quantile(found: list[Sentence]) -> int:
    counts = sorted(sentence.words() for sentence in found)
    return counts[min(len(counts) - 1, int(SHARE * len(counts)))] if counts else 0


def read(top: Path, patterns: tuple[str, ...], blocks) -> list[Sentence]:  # noqa: ANN001
    paths = sorted({path for pattern in patterns for path in top.glob(pattern)})
    return [s for path in paths for s in sentences(path.relative_to(top), blocks(path.read_text(encoding="utf-8")))]


def main(arguments: list[str]) -> int:
    verbose = "-v" in arguments
    top = Path(next((a for a in arguments if a != "-v"), Path(__file__).resolve().parent.parent))
    code = read(top, ("include/**/*.h", "saker/**/*.h", "saker/**/*.cpp"), comment_blocks)
    docs = read(top, DOCS, paragraphs)
    public = {path.relative_to(top) for pattern in PUBLIC for path in top.glob(pattern)}
    openings = [s for s in code + docs if OPENING.match(s.text)]
    in_public = [s for s in openings if s.path in public]
    lines = [line for pattern in DOCS for path in sorted(top.glob(pattern)) for line in long_lines(path.relative_to(top), path.read_text())]
    headers = [s for s in code if s.path.suffix == ".h"]
    failures = [f"{s} (an opening in a public header)" for s in in_public] + lines + list(broken_links(top))
    if len(openings) > MAX_OPENINGS:
        failures.append(f"{len(openings)} sentences open with What, Of, Whether, Those or The same, at most {MAX_OPENINGS} expected")
    for name, found in (("headers", headers), ("docs", docs)):
        if quantile(found) > MAX_WORDS:
            failures.append(f"nine sentences in ten of {name} have up to {quantile(found)} words, {MAX_WORDS} expected")
    if verbose:
        longest = [s for s in headers + docs if s.words() > MAX_WORDS]
        print(*(f"{s} (an opening)" for s in openings), *(f"{s} ({s.words()} words)" for s in longest), sep="\n")
    print(*failures, sep="\n" if failures else "")
    print(f"{len(openings)} openings ({len(in_public)} public), nine in ten sentences: headers {quantile(headers)}, docs {quantile(docs)} words")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
