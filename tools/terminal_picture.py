#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draw a chat with the bundled model as README shows it: `tools/terminal_picture.py build/release/saker [docs/terminal.svg]`.

The program runs on a terminal of its own, LINES are typed, and what appears becomes text of an SVG in the terminal's styles.
tests/e2e/chat_test.py compares the picture with the program.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from html import escape
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
LINES = ("Who are you?", "What does a fox eat?", "Tell me a story about a fox.", "/undo", "/quit")
COLUMNS, ADVANCE, LINE, MARGIN = 88, 8.43, 20, 16
STYLES = {"1;36": "p", "2": "d", "0": "", "": ""}  # Orders of the terminal (SGR) and classes of the picture.
HEAD = """<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">
<title>A chat with the bundled model of Saker</title>
<style>
text {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: 14px }}
text {{ fill: #d7dce5; white-space: pre }}
.p {{ fill: #5fd7d7; font-weight: bold }}
.d {{ fill: #8b93a5 }}
</style>
<rect width="{width}" height="{height}" rx="8" fill="#171b24"/>
"""


def record(program: str) -> str:
    """All that is shown, with the orders that set styles."""
    os.environ |= {"SAKER_PROGRAM": str(Path(program).resolve()), "SAKER_CONFIG": ""}
    sys.path.insert(0, str(TOP / "tests" / "e2e"))
    from pseudo_terminal import Terminal, plain

    with tempfile.TemporaryDirectory() as state:
        terminal = Terminal("run", "models/demo", state=state, columns=COLUMNS, env={"NO_COLOR": ""}, cwd=TOP)
        try:
            shown = "\x1b[1;36m$ \x1b[0msaker run models/demo\n"
            for line in LINES:
                terminal.read_until(lambda: plain("\n" + terminal.output).endswith("\n> "), "a prompt", 60)
                shown += terminal.output + line + "\n"
                terminal.output = ""
                terminal.type(line + "\r")
                terminal.expect("\n")
            terminal.process.wait(60)
        finally:
            terminal.close()
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-ln-z]|\r", "", shown)  # All orders but styles.


def spans(line: str) -> Iterator[str]:
    """A line's pieces, each in its style; a style ends with its line."""
    style = ""
    for order, text in re.findall(r"(?:\x1b\[([0-9;]*)m)?([^\x1b]*)", line):
        style = STYLES[order]
        if text:
            yield f'<tspan class="{style}">{escape(text, quote=False)}</tspan>' if style else escape(text, quote=False)


def draw(shown: str) -> str:
    lines = shown.splitlines()
    width, height = round(COLUMNS * ADVANCE) + 2 * MARGIN, len(lines) * LINE + 2 * MARGIN
    texts = [
        f'<text x="{MARGIN}" y="{MARGIN + (i + 1) * LINE - 6}">{"".join(spans(line))}</text>' for i, line in enumerate(lines)
    ]
    return HEAD.format(width=width, height=height) + "\n".join(texts) + "\n</svg>\n"


def main(arguments: list[str]) -> int:
    if len(arguments) not in (1, 2):
        print(__doc__, file=sys.stderr)
        return 2
    target = Path(arguments[1]) if len(arguments) == 2 else TOP / "docs" / "terminal.svg"
    target.write_text(draw(record(arguments[0])), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
