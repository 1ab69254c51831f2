#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when an include goes up the layers, a file names an architecture of saker/models, or a file, function or folder outgrows
its budget.

    tools/check_layers.py [TOP]     one line per finding; exit 1 when there is one
    tools/check_layers.py --fan-in  the ten headers that most files include
    tools/check_layers.py --write   writes the table of rooms into docs/architecture.md

The table is tools/rooms.toml, for top folders and the rooms in them. tools/size_exempt.txt names files that may be longer, one
`path  reason` a line.
"""

from __future__ import annotations

import collections
import dataclasses
import pathlib
import re
import sys
import tomllib

ROOT = "saker"
PUBLIC = "include"  # Public headers of a room lie below include/saker/, and belong to it.


@dataclasses.dataclass(frozen=True)
class Room:
    """A folder below saker/ whose files may include those of `beside`, and of the top folders that its own top includes."""

    path: str
    what: str
    beside: frozenset[str]
    includes: tuple[str, ...]  # Of a top folder, else empty.

    @property
    def top(self) -> str:
        return self.path.split("/")[0]


def read_rooms(file: pathlib.Path) -> dict[str, Room]:
    rows = tomllib.loads(file.read_text(encoding="utf-8"))["room"]
    return {r["path"]: Room(r["path"], r["what"], frozenset(r["beside"]), tuple(r.get("includes", ()))) for r in rows}


ROOMS = read_rooms(pathlib.Path(__file__).resolve().parent / "rooms.toml")
TABLE = re.compile(r"(?<=<!-- rooms -->\n).*?(?=<!-- end of rooms -->)", re.DOTALL)
NO_MLX = {"base", "hub", "text", "cli", "server", "capi"}
HTTP = "server/http"  # The one room that may include Boost.
PYTHON = "python"  # The C++ of its folders includes these; MLX's headers come from saker/kernels/mx.h alone.
BOUND = {"bindings": {"base", "hub", "load", "engine"}, "caches": {"base", "kernels", "cache", "load", "caches"}}
RUST = {"base", "text", "cli"}  # Folders that may call the Rust library.
MAX_LINES, MAX_HEADER, MAX_FUNCTION, MAX_FILES, MAX_DEPTH = 500, 200, 80, 40, 4
FORBIDDEN = {"utils", "util", "common", "helpers", "helper", "misc", "manager", "classes", "types", "core"}
CODE = {".h", ".cpp"}
OTHER = {".py", ".rs", ".sh", ".cmake"}
# Rooms that may name architectures: their own, tables of GGUF's, of tokenizers' and of answers' names, a type of rope, examples of commands,
# a coding agent, models to fetch.
NAMING = {"models", "load/gguf", "load/export", "text", "text/output", "nn", "cli/usage", "cli/launch", "cli/offer"}
ROW = re.compile(r'^\s*Row\{"([a-z]+)', re.M)
SPDX = "SPDX-License-Identifier: Apache-2.0"
INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]', re.M)
NO_FUNCTION = re.compile(r"^\s*(namespace|class|struct|enum|union|extern)\b|=\s*\{$|\]\s*=")


def files(top: pathlib.Path, *folders: str) -> list[pathlib.Path]:
    found = (p for folder in folders for p in (top / folder).rglob("*") if p.is_file())
    return sorted(p for p in found if "build" not in p.parts and "target" not in p.parts)


def table_is_sound(rooms: dict[str, Room]) -> list[str]:
    """Each room names only rooms above it, so that no two rooms include each other, and there is no cycle."""
    order = list(rooms)
    bad = []
    for room in rooms.values():
        for below in (*room.includes, *room.beside):
            if below not in rooms:
                bad.append(f"tools/rooms.toml: {room.path} names {below}, which is no room")
            elif order.index(below) >= order.index(room.path):
                bad.append(f"tools/rooms.toml: {below} is not above {room.path}")
        bad += [f"tools/rooms.toml: {below} is not of {room.top}" for below in room.beside if below.split("/")[0] != room.top]
    return bad


def table(rooms: dict[str, Room]) -> str:
    """The rooms as a table of Markdown."""
    order = list(rooms)
    lines = ["| room | what it is | includes |", "|---|---|---|"]
    for room in rooms.values():
        is_top = room.path == room.top
        own = [path if path == room.top else path.removeprefix(room.top + "/") for path in sorted(room.beside, key=order.index)]
        tops = " ".join(room.includes) if is_top else f"as {room.top}"
        below = ", ".join(filter(None, [tops, *own])) or "–"
        lines.append(f"| `{ROOT}/{room.path}` | {room.what} | {below} |")
    return "\n".join(lines) + "\n"


def documented(top: pathlib.Path) -> list[str]:
    page = top / "docs/architecture.md"
    if not page.exists():
        return []
    found = TABLE.search(page.read_text(encoding="utf-8"))
    if found and found[0] == table(ROOMS):
        return []
    return ["docs/architecture.md: its rooms are not those of tools/rooms.toml; tools/check_layers.py --write writes them"]


def bad_includes(rel: str, text: str) -> list[str]:
    path = rel.removeprefix(ROOT + "/").rpartition("/")[0]
    room = ROOMS.get(path)
    if room is None:
        return [f"{rel}: {path} is not in tools/rooms.toml"]
    bad = []
    for target in INCLUDE.findall(text):
        parts = target.split("/")
        if parts[0] == ROOT:
            other = "/".join(parts[1:-1])
            is_below = other in room.beside if parts[1] == room.top else parts[1] in ROOMS[room.top].includes
            if other != path and not is_below:
                bad.append(f"{rel}: {path} must not include {target}")
        if parts[0] == "mlx" and room.top in NO_MLX:
            bad.append(f"{rel}: {path} must not include MLX")
        if parts[0] == "boost" and path != HTTP:
            bad.append(f"{rel}: {path} must not include {target}; only {HTTP} does")
        if target.startswith("saker_rs") and room.top not in RUST:
            bad.append(f"{rel}: {path} must not include {target}")
    return bad


def private_includes(top: pathlib.Path, rel: str, text: str) -> list[str]:
    ours = (target for target in INCLUDE.findall(text) if target.startswith(ROOT + "/"))
    return [f"{rel}: a public header must not include the private {target}" for target in ours if not (top / PUBLIC / target).exists()]


def architectures(top: pathlib.Path) -> re.Pattern[str] | None:
    """Names of architectures in code, by the table of saker/models: "qwen3", qwen3_moe(), Qwen3; not the words "seed" and "dots"."""
    registry = top / ROOT / "models/registry.cpp"
    names = sorted(set(ROW.findall(registry.read_text(encoding="utf-8"))) - {"generic", "seed", "dots"}) if registry.exists() else []
    lower, capital = "|".join(names), "|".join(name.capitalize() for name in names)
    return re.compile(rf"\b(?:\w*[^A-Za-z])?(?:{lower})(?![a-z])\w*|\b\w*(?:{capital})(?![a-z])\w*") if names else None


def named_architectures(rel: str, text: str, names: re.Pattern[str] | None) -> list[str]:
    if names is None or rel.removeprefix(ROOT + "/").rpartition("/")[0] in NAMING:
        return []
    bad = []
    for number, line in enumerate(text.splitlines(), 1):
        if found := names.search(line.partition("//")[0]):
            bad.append(f"{rel}:{number}: {found[0]} names an architecture; only saker/models does")
    return bad


def bad_bindings(rel: str, text: str) -> list[str]:
    bad = []
    folder = rel.split("/")[1]
    for target in INCLUDE.findall(text):
        parts = target.split("/")
        if parts[0] == "mlx" or (parts[0] == ROOT and parts[1] not in BOUND.get(folder, set())):
            bad.append(f"{rel}: {PYTHON}/{folder} must not include {target}")
    return bad


def long_functions(rel: str, text: str) -> list[str]:
    """Bodies of formatted code: from a line that ends in `{` to `}` at the same indent."""
    bad = []
    opened: dict[int, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        indent = len(line) - len(line.lstrip())
        if indent > 4:
            continue
        if line.endswith("{") and not NO_FUNCTION.search(line):
            opened[indent] = number
        elif line[indent:].startswith("}") and indent in opened:
            start = opened.pop(indent)
            if number - start - 1 > MAX_FUNCTION:
                bad.append(f"{rel}:{start}: a body of {number - start - 1} lines > {MAX_FUNCTION}")
    return bad


def exempt(top: pathlib.Path) -> tuple[set[str], list[str]]:
    """Paths that may be long, and complaints about the list itself."""
    file = top / "tools/size_exempt.txt"
    lines = file.read_text().splitlines() if file.exists() else []
    rows = [line.split(None, 1) for line in lines if line.strip() and not line.startswith("#")]
    bad = [f"tools/size_exempt.txt: {row[0]} has no reason" for row in rows if len(row) < 2]
    bad += [f"tools/size_exempt.txt: {row[0]} does not exist" for row in rows if not (top / row[0]).exists()]
    return {row[0] for row in rows}, bad


def bad_file(path: pathlib.Path, rel: str, may_be_long: set[str]) -> list[str]:
    bad = []
    text = path.read_text(encoding="utf-8")
    limit = MAX_HEADER if path.suffix == ".h" else MAX_LINES
    if (lines := text.count("\n")) > limit and rel not in may_be_long:
        bad.append(f"{rel}: {lines} lines > {limit}")
    if SPDX not in "\n".join(text.splitlines()[:2]):
        bad.append(f"{rel}: the SPDX line is missing at the top")
    names = {part.lower() for part in pathlib.PurePosixPath(rel).with_suffix("").parts}
    if names & FORBIDDEN:
        bad.append(f"{rel}: the name {(names & FORBIDDEN).pop()} says nothing")
    if path.suffix not in CODE:
        return bad
    if path.suffix == ".h" and "#pragma once" not in text:
        bad.append(f"{rel}: #pragma once is missing")
    if re.search(r"^\s*using namespace\b", text, re.M):
        bad.append(f"{rel}: using namespace")
    return bad + long_functions(rel, text)


def check(top: pathlib.Path) -> list[str]:
    may_be_long, bad = exempt(top)
    names = architectures(top)
    bad += table_is_sound(ROOMS) + documented(top)
    folders: collections.Counter[str] = collections.Counter()
    for path in files(top, ROOT, PUBLIC, PYTHON, "tests", "bench", "examples", "tools", "rust", "cmake"):
        rel = path.relative_to(top).as_posix()
        if path.suffix not in CODE | OTHER:
            continue
        bad += bad_file(path, rel, may_be_long)
        if rel.startswith(PYTHON + "/") and path.suffix in CODE:
            bad += bad_bindings(rel, path.read_text(encoding="utf-8"))
        room = rel.removeprefix(PUBLIC + "/")
        if not room.startswith(ROOT + "/") or path.suffix not in CODE:
            continue
        text = path.read_text(encoding="utf-8")
        bad += bad_includes(room, text) + (private_includes(top, rel, text) if room != rel else [])
        bad += named_architectures(room, text, names)
        folders[path.parent.relative_to(top).as_posix()] += 1
        if room.count("/") > MAX_DEPTH:
            bad.append(f"{rel}: deeper than {MAX_DEPTH} folders")
    bad += [
        f"{folder}: {count} files > {MAX_FILES}"
        for folder, count in folders.items()
        if count > MAX_FILES and folder != "saker/models"
    ]
    return bad


def fan_in(top: pathlib.Path) -> list[str]:
    count: collections.Counter[str] = collections.Counter()
    for path in files(top, ROOT):
        if path.suffix in CODE:
            count.update(t for t in INCLUDE.findall(path.read_text()) if t.startswith(ROOT + "/"))
    return [f"{number:4} {header}" for header, number in count.most_common(10)]


def main(arguments: list[str]) -> int:
    top = pathlib.Path(__file__).resolve().parent.parent
    if arguments == ["--fan-in"]:
        print("\n".join(fan_in(top)))
        return 0
    if arguments == ["--write"]:
        page = top / "docs/architecture.md"
        page.write_text(TABLE.sub(lambda _: table(ROOMS), page.read_text(encoding="utf-8")), encoding="utf-8")
        return 0
    bad = check(pathlib.Path(arguments[0]) if arguments else top)
    print("\n".join(bad) or f"{len(ROOMS)} rooms, no two of which include each other")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
