#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lines that ran, by folder, from what gcovr counted: tools/coverage.sh calls it.

    tools/coverage_table.py SUMMARY.json            prints the tables
    tools/coverage_table.py SUMMARY.json --publish  writes docs/coverage.md too

Exit 1 when a folder is below 90 %.
"""

import collections
import json
import pathlib
import sys

LEAST = 90.0
LOWEST = 15  # Files that are listed.
PAGE = """# Line coverage

Lines of the folders that read what comes from outside, and how many of them run in the tests of these six folders and of
the program (`tools/coverage.sh --publish` writes this page; it fails below {least:.0f} %). Lines of C++ only: the Rust library
has tests and fuzz targets (`docs/fuzzing.md`), and no counters here.

{folders}

The files with the smallest part:

{files}
"""


def percent(counts: list[int]) -> float:
    return 100.0 * counts[1] / counts[0] if counts[0] else 100.0


def table(head: str, rows: list[tuple[str, list[int]]]) -> str:
    lines = [f"| {head} | lines | run | % |", "|---|---:|---:|---:|"]
    lines += [f"| {name} | {c[0]} | {c[1]} | {percent(c):.1f} |" for name, c in rows]
    return "\n".join(lines)


def main() -> int:
    summary = json.loads(pathlib.Path(sys.argv[1]).read_text())
    folders = collections.defaultdict(lambda: [0, 0])
    files = []
    for file in summary["files"]:
        counts = [file["line_total"], file["line_covered"]]
        folder = "/".join(file["filename"].split("/")[:2])
        folders[folder] = [a + b for a, b in zip(folders[folder], counts)]
        files.append((f"`{file['filename']}`", counts))
    rows = [(f"`{name}`", counts) for name, counts in sorted(folders.items())]
    all_of_them = [sum(counts[i] for _, counts in rows) for i in range(2)]
    files = sorted((f for f in files if f[1][0] > 0), key=lambda file: percent(file[1]))[:LOWEST]
    page = PAGE.format(
        least=LEAST, folders=table("folder", [*rows, ("all", all_of_them)]), files=table("file", files)
    )
    print(page.split("\n\n", 2)[2])
    if "--publish" in sys.argv:
        (pathlib.Path(__file__).parents[1] / "docs" / "coverage.md").write_text(page)
    low = [name for name, counts in rows if percent(counts) < LEAST]
    for name in low:
        print(f"{name}: below {LEAST:.0f} %", file=sys.stderr)
    return 1 if low or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
