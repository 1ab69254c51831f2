# SPDX-License-Identifier: Apache-2.0
"""Finds libmlx in the package mlx, wherever that is installed, so that both use one library."""

import ctypes
import importlib.util
import pathlib
import sys


def load() -> None:
    """Loads libmlx of the package mlx; without that package the extension module's own paths have to do."""
    package = importlib.util.find_spec("mlx")
    name = "libmlx.dylib" if sys.platform == "darwin" else "libmlx.so"
    for folder in (package.submodule_search_locations or []) if package else []:
        library = pathlib.Path(folder) / "lib" / name
        if library.exists():
            ctypes.CDLL(str(library))
            return
