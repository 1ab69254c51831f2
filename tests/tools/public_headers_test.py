# SPDX-License-Identifier: Apache-2.0
"""Each public header compiles alone, and none but the cache classes' reaches MLX: `public_headers_test.py COMPILER`.

Public headers are those of the reference, docs/Doxyfile.
"""

import os
import pathlib
import re
import subprocess
import sys
import unittest
from concurrent.futures import ThreadPoolExecutor

TOP = pathlib.Path(__file__).resolve().parents[2]
COMPILER = sys.argv.pop(1) if len(sys.argv) > 1 else "c++"
HEADERS = re.findall(r"saker/[a-z0-9_/]+\.h", (TOP / "docs/Doxyfile").read_text(encoding="utf-8"))
OVER_ARRAYS = "saker/caches/"  # Programs that link libsaker_caches have MLX.


def compiled_alone(text: str) -> subprocess.CompletedProcess[str]:
    command = [COMPILER, "-std=c++20", "-fsyntax-only", "-I", str(TOP), "-x", "c++", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


class PublicHeaders(unittest.TestCase):
    def test_compile_alone_without_mlx(self) -> None:
        headers = [header for header in HEADERS if not header.startswith(OVER_ARRAYS)]
        self.assertGreater(len(headers), 20)
        with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
            results = list(pool.map(lambda header: compiled_alone(f'#include "{header}"\n'), headers))
        for header, result in zip(headers, results, strict=True):
            with self.subTest(header):
                self.assertEqual((result.returncode, result.stderr), (0, ""))

    def test_a_header_with_mlx_fails(self) -> None:
        self.assertNotEqual(compiled_alone('#include "saker/kernels/mx.h"\n').returncode, 0)
        self.assertNotEqual(compiled_alone('#include "saker/engine/runner.h"\n').returncode, 0)


if __name__ == "__main__":
    unittest.main()
