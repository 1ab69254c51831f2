# SPDX-License-Identifier: Apache-2.0
"""Each public header compiles alone from include/, and none but the cache classes' needs MLX: `public_headers_test.py COMPILER`."""

import os
import pathlib
import subprocess
import sys
import unittest
from concurrent.futures import ThreadPoolExecutor

TOP = pathlib.Path(__file__).resolve().parents[2]
INCLUDE = TOP / "include"
COMPILER = sys.argv.pop(1) if len(sys.argv) > 1 else "c++"
OVER_ARRAYS = ("saker/cache/", "saker/caches/", "saker/kernels/")  # Programs that link libsaker_caches have MLX.


def compiled_alone(header: str) -> subprocess.CompletedProcess[str]:
    command = [COMPILER, "-std=c++20", "-fsyntax-only", "-I", str(INCLUDE), "-x", "c++", "-"]
    return subprocess.run(command, input=f'#include "{header}"\n', capture_output=True, text=True, check=False)


class PublicHeaders(unittest.TestCase):
    def test_compile_alone_without_mlx(self) -> None:
        every = sorted(path.relative_to(INCLUDE).as_posix() for path in INCLUDE.rglob("*.h"))
        headers = [header for header in every if not header.startswith(OVER_ARRAYS)]
        self.assertGreater(len(headers), 20)
        with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
            results = list(pool.map(compiled_alone, headers))
        for header, result in zip(headers, results, strict=True):
            with self.subTest(header):
                self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_arrays_and_private_headers_are_out_of_reach(self) -> None:
        for header in ("saker/kernels/mx.h", "saker/engine/runner.h"):
            with self.subTest(header):
                self.assertNotEqual(compiled_alone(header).returncode, 0)


if __name__ == "__main__":
    unittest.main()
