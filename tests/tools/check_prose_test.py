# SPDX-License-Identifier: Apache-2.0
"""tools/check_prose.py finds links that lead nowhere."""

import pathlib
import sys
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tools"))
import check_prose  # noqa: E402


def broken(**pages: str) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        top = pathlib.Path(folder)
        for name, text in pages.items():
            path = top / name.replace("__", "/")
            path = path.with_suffix(".md")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return list(check_prose.broken_links(top))


class Links(unittest.TestCase):
    def test_links_that_lead_somewhere(self) -> None:
        page = "# It's `one` page\n\n[here](#its-one-page), [there](docs/b.md#b), [out](https://example.org/x#y)\n"
        self.assertEqual(broken(README=page, docs__b="## B\n\n[up](../README.md), ![folder](adr)\n", docs__adr__c="c\n"), [])

    def test_no_file(self) -> None:
        self.assertEqual(broken(docs__a="[b](b.md)\n"), ["docs/a.md: b.md leads to no file"])

    def test_no_heading(self) -> None:
        found = broken(docs__a="[b](b.md#c), [self](#x)\n", docs__b="# B\n```sh\n# C\n```\n")
        self.assertEqual(found, ["docs/a.md: b.md#c leads to no heading", "docs/a.md: #x leads to no heading"])

    def test_code_has_no_links(self) -> None:
        self.assertEqual(broken(docs__a="`[a](b)` and\n```cpp\nf[1](x)\n```\n"), [])

    def test_decisions_and_archives_count(self) -> None:
        self.assertEqual(len(broken(docs__adr__a="[b](b.md)\n", docs__performance__archive__c="[d](d.md)\n")), 2)


if __name__ == "__main__":
    unittest.main()
