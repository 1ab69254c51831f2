# SPDX-License-Identifier: Apache-2.0
"""Every option of every command stands in its help, its manual page, its completion and docs/commands.md; manual pages are clean roff."""

import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ["SAKER_PROGRAM"]
MOST_SECONDS = 0.05


def saker(*words):
    return subprocess.run([PROGRAM, *words], capture_output=True, text=True, check=True).stdout


def processor_seconds():
    """Of programs that have ended: what others do meanwhile does not count."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Reference(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.table = json.loads(saker("man", "--json"))
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.pages = pathlib.Path(folder.name)
        saker("man", "--directory", str(cls.pages))
        cls.docs = (TOP / "docs" / "commands.md").read_text().split("\n## ")

    def test_every_option_is_everywhere(self):
        self.assertGreater(len(self.table["commands"]), 25)
        for command in self.table["commands"]:
            words = command["name"].split()[1:]
            manual = (self.pages / f"{command['page']}.1").read_text().replace("\\-", "-")
            shown = re.sub(r"\s+", " ", saker(*words, "--help"))
            offered = set(line.split("\t")[0] for line in saker("completions", "words", "--", *words, "--").splitlines())
            section = next(part for part in self.docs if part.startswith(command["name"] + "\n"))
            for row in (row for section_ in command["sections"] for row in section_["rows"]):
                names = re.findall(r"(?<![\w-])--?[a-zA-Z][a-z0-9-]*", row["name"])
                with self.subTest(command=command["name"], row=row["name"]):
                    self.assertIn(row["text"], shown)
                    self.assertLessEqual({name for name in names if name.startswith("--")}, offered)
                    for name in names or [row["name"].split()[0]]:
                        self.assertIn(f"`{name}", section.replace("\\|", "|"))
                        self.assertRegex(manual, rf"\\f[BI]{re.escape(name)}\\fR")

    def test_manual_pages_are_clean(self):
        pages = sorted(map(str, self.pages.glob("*.1")))
        self.assertEqual(len(pages), len(self.table["commands"]))
        if shutil.which("mandoc"):
            done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", *pages], capture_output=True, text=True, check=False)
            self.assertEqual(done.stdout, "")
        if shutil.which("groff"):
            for page in pages:
                done = subprocess.run(["groff", "-man", "-ww", "-z", "-Tutf8", page], capture_output=True, text=True, check=False)
                self.assertEqual(done.stderr, "", page)

    def test_variables_are_explained(self):
        text = (TOP / "docs" / "cli.md").read_text()
        for variable in self.table["environment"]:
            self.assertIn(f"`{variable['name']}`", text)

    @unittest.skipUnless(os.environ.get("SAKER_OPTIMIZED") == "1", "no release build")
    def test_completion_takes_no_time(self):
        took = []
        for _ in range(7):
            began = processor_seconds()
            saker("completions", "words", "--", "run", "--m")
            took.append(processor_seconds() - began)
        self.assertLess(min(took), MOST_SECONDS, took)


if __name__ == "__main__":
    unittest.main()
