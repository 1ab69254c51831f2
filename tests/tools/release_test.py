# SPDX-License-Identifier: Apache-2.0
"""The tools of a release: its changelog, archives with the same bytes each time, and the wheel of this build, installed."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
import zipfile

TOP = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["SAKER_BUILD"])
MOST_BYTES = 40_000_000
MOST_IMPORT_SECONDS = 0.15
sys.path.insert(0, str(TOP / "tools" / "release"))
os.environ["SOURCE_DATE_EPOCH"] = "1800000000"
import packing  # noqa: E402


class Packing(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_the_changelog_has_this_version(self):
        packing.check_changelog()
        for text, says in (("# Changelog\n", "no release"), ("## [9.9.9] - 2026-01-01\n", "9.9.9 of 2026-01-01")):
            (self.folder / "CHANGELOG.md").write_text(text)
            shutil.copyfile(TOP / "CMakeLists.txt", self.folder / "CMakeLists.txt")
            with self.assertRaisesRegex(packing.ReleaseError, says):
                packing.check_changelog(self.folder)

    def test_tars_have_the_same_bytes(self):
        made = []
        for name in ("a", "b"):
            folder = self.folder / name
            (folder / "bin").mkdir(parents=True)
            for file in ("z", "bin/y", "x") if name == "a" else ("x", "bin/y", "z"):
                (folder / file).write_text(file)
                os.utime(folder / file, (len(made), len(made)))
            made.append(packing.tar_bytes(folder, "saker-1"))
        self.assertEqual(*made)

    def test_names_of_our_own(self):
        self.assertRegex(packing.own_name("libcurl.so.4", b"x"), r"^libcurl-[0-9a-f]{8}\.so\.4$")


@unittest.skipUnless((BUILD / "python" / "program" / "saker").exists() and shutil.which("patchelf"), "no Python package or no patchelf")
class Wheel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        bill = cls.folder / "sbom.json"
        bill.write_text("{}")
        command = [sys.executable, TOP / "tools" / "release" / "make_wheel.py", BUILD, bill, cls.folder]
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        if made.returncode:
            raise AssertionError(made.stderr)
        cls.wheel = pathlib.Path(made.stdout.strip())

    def test_size_and_content(self):
        self.assertLess(self.wheel.stat().st_size, MOST_BYTES)
        self.assertRegex(self.wheel.name, r"^saker-[\d.]+-cp3\d+-cp3\d+-manylinux_2_\d+_\w+\.whl$")
        names = set(zipfile.ZipFile(self.wheel).namelist())
        for name in ("saker/bin/saker", "saker/py.typed", "saker/_native.pyi", "saker/_caches.pyi", "saker/share/saker/models/demo/config.json"):
            self.assertIn(name, names)
        sources = {f"saker/{path.name}" for path in (TOP / "python" / "saker").glob("*.py")}
        self.assertLessEqual(sources, names)
        self.assertFalse([name for name in names if "libmlx" in name])

    def installed(self):
        """An environment with the wheel and the packages that it wants, as the tests' environment has them."""
        root = self.folder / "environment"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", root], check=True)
        site = next((root / "lib").glob("python3*/site-packages"))
        with zipfile.ZipFile(self.wheel) as archive:
            for member in archive.infolist():
                path = pathlib.Path(archive.extract(member, site))
                path.chmod(member.external_attr >> 16)
        script = next(site.glob("saker-*.data/scripts/saker"))
        script.rename(root / "bin" / "saker")
        here = next((BUILD / "python" / "environment" / "lib").glob("python3*/site-packages"))
        for package in [*here.glob("mlx*"), *here.glob("numpy*")]:
            (site / package.name).symlink_to(package)
        return root

    @unittest.skipUnless((BUILD / "python" / "environment").exists(), "the tests' environment is not made yet")
    def test_it_runs_where_it_is_installed(self):
        root = self.installed()
        environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "LD_LIBRARY_PATH")} | {"HOME": str(self.folder)}
        began = time.monotonic()
        done = subprocess.run([root / "bin" / "saker", "run", "-p", "hello", "--max-tokens", "4"], capture_output=True, env=environment, check=True, timeout=60)
        self.assertTrue(done.stdout.strip())
        self.assertLess(time.monotonic() - began, 20)
        shown = subprocess.run([root / "bin" / "saker", "inspect"], capture_output=True, text=True, env=environment, check=True).stdout
        self.assertIn(str(root), shown)
        python = root / "bin" / "python3"
        script = "import saker; m = saker.load(); print(m.path); print(m.generate('Once', max_tokens=3).text); print(m.forward_logits('a b').shape)"
        done = subprocess.run([python, "-c", script], capture_output=True, text=True, env=environment, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(str(root), done.stdout)
        done = subprocess.run([python, "-m", "saker", "--version"], capture_output=True, text=True, env=environment, check=True)
        self.assertIn(packing.version(), done.stdout)
        took = []
        for _ in range(5):
            line = "import time; t = time.process_time(); import saker; print(time.process_time() - t)"
            took.append(float(subprocess.run([python, "-c", line], capture_output=True, text=True, env=environment, check=True).stdout))
        self.assertLess(min(took), MOST_IMPORT_SECONDS, took)

    def test_libraries_are_our_own(self):
        """No other package of a process finds ours by a name that it looks for."""
        libraries = [name for name in zipfile.ZipFile(self.wheel).namelist() if re.match(r"saker/libs/", name)]
        self.assertTrue(libraries)
        for name in libraries:
            self.assertRegex(name, r"-[0-9a-f]{8}\.so")
        program = zipfile.ZipFile(self.wheel).extract("saker/bin/saker", self.folder)
        self.assertRegex(packing.run("readelf", "-d", program), r"RUNPATH.*\[\$ORIGIN/\.\./\.\./mlx/lib:\$ORIGIN/\.\./libs\]")


if __name__ == "__main__":
    unittest.main()
