# SPDX-License-Identifier: Apache-2.0
"""tools/make_option_pages.py on a small tree: pages that differ are named, and written."""

import ast
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "make_option_pages.py"
TABLE = sys.argv.pop(1)
PAGE = "before\n<!-- options -->\nstale words\n<!-- end of options -->\nafter\n"


class OptionPages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = pathlib.Path(folder.name)
        for name in ("docs/cli.md", "docs/python.md", "python/saker/generate_options.py"):
            path = self.top / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(PAGE)

    def run_tool(self, *options):
        command = [sys.executable, TOOL, "--top", self.top, "--table", TABLE, *options]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def test_stale_pages_are_named_and_written(self):
        checked = self.run_tool("--check")
        self.assertEqual((checked.returncode, len(checked.stdout.splitlines())), (1, 3), checked.stderr)
        self.assertEqual(self.run_tool().returncode, 0)
        self.assertEqual(self.run_tool("--check").returncode, 0)
        page = (self.top / "docs/cli.md").read_text()
        self.assertTrue(page.startswith("before\n<!-- options -->\n") and page.endswith("<!-- end of options -->\nafter\n"))
        self.assertIn("| `--temperature`, `--temp` | number, 0 to 100 |", page)
        self.assertIn("only)", page)
        self.assertNotIn("stale words", page)
        (self.top / "docs/cli.md").write_text(page.replace("0 to 100", "0 to 10"))
        self.assertIn("docs/cli.md: differs", self.run_tool("--check").stdout)

    def test_the_module_is_python(self):
        self.run_tool()
        text = (self.top / "python/saker/generate_options.py").read_text()
        ast.parse(text)
        self.assertIn('"temp": "temperature"', text)
        self.assertLessEqual(max(map(len, text.splitlines())), 140)

    def test_a_page_without_marks_is_an_error(self):
        (self.top / "docs/cli.md").write_text("nothing")
        self.assertIn("are missing", self.run_tool().stderr)


if __name__ == "__main__":
    unittest.main()
