# SPDX-License-Identifier: Apache-2.0
"""The ABI of the C interface: the library exports what saker/capi/symbols.txt lists, and saker.h declares what declarations.txt
holds. Lines are added to both with a new SAKER_API_VERSION; none changes.

`python3 abi_test.py --write` adds new declarations.
"""

import os
import pathlib
import re
import subprocess
import sys
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
FROZEN = pathlib.Path(__file__).with_name("declarations.txt")
COMPILER = os.environ.get("SAKER_COMPILER", "c++")
SIZES = """
#include <saker.h>
_Static_assert(sizeof(SakerStatus) == 4 && sizeof(SakerEventKind) == 4, "statuses and kinds are ints");
"""


def listed() -> dict[str, str]:
    """The version of each function."""
    lines = (TOP / "saker/capi/symbols.txt").read_text().splitlines()
    return {name: version for version, name in (line.split() for line in lines if not line.startswith("#"))}


def compiled(text: str, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [COMPILER, "-Wall", "-Wextra", "-pedantic", "-Werror", f"-I{TOP / 'include'}", *flags, "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def declared() -> list[str]:
    """The declarations of the header, a line each."""
    text = compiled("#include <saker.h>\n", "-x", "c", "-E", "-P").stdout
    text = re.sub(r"__attribute__\s*\(\(.*?\)\)\)", "", text[text.index("typedef enum SakerStatus") :])
    parts = re.findall(r"[^;{]*(?:\{[^}]*\}[^;]*)?;", text)
    tidy = (re.sub(r"\s+", " ", part).strip() for part in parts)
    return [re.sub(r" ?([(){},*]) ?", r"\1", part) for part in tidy]


class Abi(unittest.TestCase):
    def exported(self) -> set[tuple[str, str]]:
        command = [os.environ.get("SAKER_NM", "nm"), "-D", "--defined-only", os.environ["SAKER_C_LIBRARY"]]
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
        found = (re.fullmatch(r"\w+ [A-Za-z] (\w+)(?:@@SAKER_(\d+))?", line) for line in lines)
        return {(match[1], match[2] or "") for match in found if match and not re.fullmatch(r"SAKER_\d+", match[1])}

    def test_the_library_exports_what_is_listed(self) -> None:
        self.assertEqual(self.exported(), set(listed().items()))

    def test_the_soname_has_the_version_of_the_abi(self) -> None:
        command = ["readelf", "-d", os.environ["SAKER_C_LIBRARY"]]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        self.assertIn("soname: [libsaker_c.so.1]", text)

    def test_the_header_declares_what_is_listed(self) -> None:
        functions = {match[1] for line in declared() if (match := re.search(r"\b(saker_\w+)\(", line))}
        self.assertEqual(functions, set(listed()))

    def test_declarations_are_frozen(self) -> None:
        self.assertEqual(declared(), FROZEN.read_text().splitlines())

    def test_the_version_is_that_of_the_newest_function(self) -> None:
        version = re.search(r"#define SAKER_API_VERSION (\d+)", (TOP / "include/saker.h").read_text())
        self.assertEqual(version and version[1], max(listed().values(), key=int))

    def test_the_header_compiles_alone(self) -> None:
        for flags in (("-x", "c", "-std=c99"), ("-x", "c", "-std=c17"), ("-x", "c++", "-std=c++11"), ("-x", "c++", "-std=c++20")):
            with self.subTest(flags):
                done = compiled("#include <saker.h>\n", *flags, "-fsyntax-only")
                self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(compiled(SIZES, "-x", "c", "-std=c11", "-fsyntax-only").stderr, "")


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        FROZEN.write_text("\n".join(declared()) + "\n")
    else:
        unittest.main()
