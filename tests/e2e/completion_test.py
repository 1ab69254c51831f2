# SPDX-License-Identifier: Apache-2.0
"""Completion of command lines, by the shells themselves."""
import os
import pathlib
import shutil
import subprocess
import time
import unittest

from pseudo_terminal import Terminal, plain
from saker import PROGRAM, SakerTest


class Completion(SakerTest):
    def setUp(self):
        super().setUp()
        path = f"{pathlib.Path(PROGRAM).parent}:{os.environ['PATH']}"
        self.environment = {**os.environ, "PATH": path, "HF_HUB_CACHE": str(self.folder / "hub"), "SAKER_MODELS": str(self.folder / "named"),
                            "HOME": str(self.folder), "XDG_CONFIG_HOME": str(self.folder), "XDG_DATA_HOME": str(self.folder)}
        self.work = self.folder / "work"
        (self.work / "folder").mkdir(parents=True)
        (self.work / "generic.txt").touch()

    def shell(self, *command):
        done = subprocess.run(command, capture_output=True, timeout=60, check=True, cwd=self.work, env=self.environment)
        return done.stdout.decode()

    def script(self, shell):
        return self.write(f"saker.{shell}", self.ok("completion", shell).decode())

    def test_other_shells(self):
        self.fails("completion", "tcsh", says="got 'tcsh', expected bash, zsh or fish", code=2)

    def bash(self, *words):
        quoted = " ".join(f"'{word}'" for word in words)
        lines = f"source {self.script('bash')}; COMP_WORDS=(saker {quoted}); COMP_CWORD={len(words)}; _saker; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        return self.shell("bash", "-c", lines).split()

    def test_bash(self):
        self.assertEqual(self.bash("gen"), ["generate"])
        self.assertEqual(self.bash("cache", ""), ["save", "info", "convert"])
        self.assertEqual(self.bash("run", "--max-t"), ["--max-tokens"])
        self.assertEqual(self.bash("run", "--device", "g"), ["gpu"])
        self.assertEqual(self.bash("run", "--device", "=", "g"), ["gpu"])
        self.assertEqual(self.bash("run", "model", ""), [])

    def fish(self, line):
        found = self.shell("fish", "--no-config", "-c", f"source {self.script('fish')}; complete -C '{line}'")
        return [candidate.split("\t")[0] for candidate in found.splitlines()]

    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_fish(self):
        self.assertEqual(self.fish("saker gen"), ["generate"])
        self.assertEqual(sorted(self.fish("saker cache ")), ["convert", "info", "save"])
        self.assertEqual(self.fish("saker run --max-t"), ["--max-tokens"])
        self.assertEqual(self.fish("saker run --device g"), ["gpu"])
        self.assertEqual(self.fish("saker run --device=g"), ["--device=gpu"])
        self.assertEqual(sorted(self.fish("saker run --kv-bits ")), ["16", "32", "4", "8"])
        self.assertEqual(sorted(self.fish("saker inspect ")), ["folder/", "generic.txt"])
        self.assertEqual(self.fish("saker generate model -f gen"), ["generic.txt"])
        self.assertEqual(self.fish("saker pull "), [])

    def zsh(self, *setup):
        """A shell in which Ctrl-T writes the line to a file and clears it."""
        typed = Terminal("-f", program="zsh", state=self.folder, columns=100, env=self.environment, cwd=self.work)
        self.addCleanup(typed.close)
        lines = ['PS1="> "', f"take() {{ print -r -- $BUFFER > {self.folder}/new; mv {self.folder}/new {self.folder}/line; BUFFER= }}",
                 "zle -N take", "bindkey '^T' take", *setup]
        self.write("setup.zsh", "\n".join(lines))
        typed.type(f"source {self.folder}/setup.zsh; echo rea''dy\r")
        typed.expect("ready\r\n")
        typed.expect("> ")
        return typed

    def completed(self, terminal, line):
        """What the line becomes after a tab."""
        found = self.folder / "line"
        found.unlink(missing_ok=True)
        terminal.type(line + "\t\x14")
        end = time.monotonic() + 60
        while not found.exists() and time.monotonic() < end:
            time.sleep(0.02)
        return found.read_text().removesuffix("\n")

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh(self):
        terminal = self.zsh(f"source {self.script('zsh')}")
        for line, whole in (
            ("gen", "generate "), ("run --max-t", "run --max-tokens "), ("run --device g", "run --device gpu "), ("run --device=g", "run --device=gpu "),
            ("inspect gen", "inspect generic.txt "), ("inspect fo", "inspect folder/"), ("generate --draft=fo", "generate --draft=folder/"),
            ("pull fo", "pull fo"),
        ):
            self.assertEqual(self.completed(terminal, "saker " + line), "saker " + whole)
        terminal.type("echo list''ed\r")
        terminal.expect("listed\r\n")
        terminal.type("saker cache \t")
        shown = plain(terminal.expect("Describe a prompt-cache file")) + plain(terminal.expect("save"))
        self.assertIn("convert", shown)
        self.assertNotIn("generic", shown)

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh_with_a_file_of_functions(self):
        self.script("zsh").rename(self.folder / "_saker")
        terminal = self.zsh(f"fpath=({self.folder} $fpath)", "autoload -Uz compinit", "compinit -i -D")
        self.assertEqual(self.completed(terminal, "saker gen"), "saker generate ")


if __name__ == "__main__":
    unittest.main()
