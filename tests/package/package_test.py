# SPDX-License-Identifier: Apache-2.0
"""Saker as other projects build against it: installed and moved away, found by CMake and by pkg-config; and fetched by a project."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = TOP / "examples"
DEMO = TOP / "models/demo"
CMAKE = os.environ.get("SAKER_CMAKE", "cmake")
COMPILER = os.environ.get("SAKER_COMPILER", "c++")


def ran(*command: str | pathlib.Path, **variables: str) -> str:
    environment = {**os.environ, **variables}
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 0:
        raise AssertionError(f"{command}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def configured(source: pathlib.Path, build: pathlib.Path, *options: str) -> str:
    c = ["-DCMAKE_C_COMPILER=cc"] if shutil.which("cc") else []
    return ran(
        CMAKE, "-S", source, "-B", build, "-G", os.environ["SAKER_GENERATOR"], f"-DCMAKE_CXX_COMPILER={COMPILER}", *c, *options
    )


class Installed(unittest.TestCase):
    """The components c and cxx, at a place that they were not installed to."""

    prefix: pathlib.Path

    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory(dir=os.environ["SAKER_BUILD_FOLDER"])
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        first = cls.folder / "first"
        for component in ("c", "cxx"):
            ran(CMAKE, "--install", os.environ["SAKER_BUILD_FOLDER"], "--component", component, "--prefix", first)
        cls.prefix = cls.folder / "moved/deep"
        cls.prefix.parent.mkdir()
        first.rename(cls.prefix)

    def test_projects_find_it(self) -> None:
        build = self.folder / "build"
        configured(EXAMPLES / "find_package", build, f"-DCMAKE_PREFIX_PATH={self.prefix}")
        ran(CMAKE, "--build", build)
        self.assertIn("berries", ran(build / "stream"))  # The bundled model, beside the library.
        self.assertTrue(ran(build / "hello", DEMO))
        found = ran("readelf", "-d", build / "stream")
        self.assertNotIn(str(self.folder / "first"), found)

    def test_no_installed_file_names_the_checkout(self) -> None:
        for file in self.prefix.rglob("*"):
            if file.suffix in (".cmake", ".pc") or (file.suffix == ".h" and "mlx" not in file.parts):
                with self.subTest(file):
                    self.assertNotIn(str(TOP), file.read_text())

    @unittest.skipUnless(shutil.which("pkg-config"), "there is no pkg-config")
    def test_pkg_config_finds_the_c_interface(self) -> None:
        path = self.prefix / "lib/pkgconfig"
        flags = ran("pkg-config", "--cflags", "--libs", "saker", PKG_CONFIG_PATH=str(path)).split()
        program = self.folder / "by_pkg_config"
        rpath = f"-Wl,-rpath,{self.prefix / 'lib'}"
        ran(COMPILER, "-x", "c", EXAMPLES / "c/stream.c", "-x", "none", *flags, rpath, "-o", program)
        self.assertIn("berries", ran(program, DEMO))

    def test_headers_are_those_that_compile_alone(self) -> None:
        installed = {path.relative_to(self.prefix / "include") for path in (self.prefix / "include").rglob("*.h")}
        public = {path.relative_to(TOP / "include") for path in (TOP / "include").rglob("*.h")}
        self.assertEqual(installed, public)  # tools.public_headers and capi.abi compile each.

    def test_missing_components_and_other_versions_are_refused(self) -> None:
        for wanted, says in (("REQUIRED COMPONENTS Fortran", "Fortran"), ("99 REQUIRED", "version")):
            with self.subTest(wanted):
                source = self.folder / "wrong"
                source.mkdir(exist_ok=True)
                text = f"cmake_minimum_required(VERSION 3.25)\nproject(wrong LANGUAGES NONE)\nfind_package(saker {wanted})\n"
                (source / "CMakeLists.txt").write_text(text)
                with self.assertRaisesRegex(AssertionError, says):
                    configured(source, self.folder / "wrong_build", f"-DCMAKE_PREFIX_PATH={self.prefix}")


class BuiltWith(unittest.TestCase):
    """A project that builds Saker with itself; here it is configured only, since a build takes minutes."""

    def test_fetch_content_configures(self) -> None:
        with tempfile.TemporaryDirectory(dir=os.environ["SAKER_BUILD_FOLDER"]) as folder:
            build = pathlib.Path(folder)
            options = [f"-DFETCHCONTENT_SOURCE_DIR_SAKER={TOP}", "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON"]
            configured(EXAMPLES / "fetch_content", build, *options)
            commands = {row["file"]: row["command"] for row in json.loads((build / "compile_commands.json").read_text())}
            for name in ("c/stream.c", "hello.cpp"):
                self.assertIn(f"-I{TOP / 'include'}", commands[str(EXAMPLES / name)])
            self.assertTrue(any(file.endswith("/engine.cpp") for file in commands))
            self.assertFalse([file for file in commands if file.startswith(str(TOP / "tests"))])


if __name__ == "__main__":
    unittest.main()
