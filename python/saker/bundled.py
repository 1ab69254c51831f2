# SPDX-License-Identifier: Apache-2.0
"""What a wheel holds beside the package's own code: the program and the demo model."""

import pathlib

_FOLDER = pathlib.Path(__file__).parent


def program() -> pathlib.Path:
    """The program ``saker``; raises FileNotFoundError where the package was built without it."""
    path = _FOLDER / "bin" / "saker"
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: this package was built without the program")
    return path


def model() -> str:
    """The folder of the demo model; empty where the library knows it by itself, as in a build folder."""
    path = _FOLDER / "share" / "saker" / "models" / "demo"
    return str(path) if path.is_dir() else ""
