# SPDX-License-Identifier: Apache-2.0
"""Chat templates out of unpacked packages: collect_templates.py FOLDER OUT writes each distinct one as OUT/NAME.jinja.

Templates lie there as files of their own, in tokenizer_config.json, and as strings of Python and JavaScript sources.
"""
import ast
import hashlib
import json
import pathlib
import re
import sys

SUFFIXES = {".jinja", ".jinja2", ".j2"}
# A template literal or string of JavaScript that holds a tag.
JAVASCRIPT = re.compile(r"`((?:[^`\\]|\\.)*\{%(?:[^`\\]|\\.)*)`|\"((?:[^\"\\\n]|\\.)*\{%(?:[^\"\\\n]|\\.)*)\"")


def is_chat_template(text):
    return "messages" in text and "{%" in text and len(text) < 1 << 18


def of_config(value):
    template = value.get("chat_template") if isinstance(value, dict) else None
    if isinstance(template, list):
        return [entry.get("template") for entry in template if isinstance(entry, dict)]
    return [template]


def of_python(text):
    """String constants, with those that are added or joined by the parser as one."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return []
    found = []

    def joined(node):
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            left, right = joined(node.left), joined(node.right)
            return None if left is None or right is None else left + right
        return None

    def visit(node):
        whole = joined(node)
        if whole is not None:
            found.append(whole)
            return
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(tree)
    return found


def of_javascript(text):
    found = []
    for literal, string in JAVASCRIPT.findall(text):
        try:
            found.append(json.loads(f'"{string}"') if string else literal)
        except ValueError:
            continue
    return found


def templates_of(path):
    text = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix in SUFFIXES:
        return [text]
    if path.name in ("tokenizer_config.json", "chat_template.json"):
        try:
            return of_config(json.loads(text))
        except ValueError:
            return []
    if path.suffix == ".py":
        return of_python(text) if "{%" in text else []
    if path.suffix in (".js", ".ts", ".mjs"):
        return of_javascript(text) if "{%" in text else []
    return []


def main():
    folder, out = map(pathlib.Path, sys.argv[1:])
    out.mkdir(parents=True, exist_ok=True)
    known = {hashlib.sha256(path.read_bytes()).digest() for path in out.glob("*.jinja")}
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and p.stat().st_size < 1 << 24):
        for number, text in enumerate(filter(None, templates_of(path))):
            digest = hashlib.sha256(text.encode("utf-8", "replace")).digest()
            if is_chat_template(text) and digest not in known and "\ufffd" not in text:
                known.add(digest)
                name = re.sub(r"[^\w.-]+", "_", f"{path.relative_to(folder)}-{number}")[-120:]
                (out / f"{name}.jinja").write_text(text, encoding="utf-8")
    print(f"{len(list(out.glob('*.jinja')))} templates")


if __name__ == "__main__":
    main()
