#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The tarball: program, MLX, demo model, manual pages and completions, with all shared libraries but glibc's.

    tools/release/make_tarball.py BUILD SBOM OUT     writes OUT/saker-VERSION-linux-MACHINE.tar.gz
"""

import pathlib
import platform
import shutil
import sys
import tempfile

import packing


def make(build, sbom, out):
    name = f"saker-{packing.version()}-linux-{platform.machine()}"
    with tempfile.TemporaryDirectory() as temporary:
        root = pathlib.Path(temporary) / name
        packing.run("cmake", "--install", build, "--prefix", root, "--component", "program")
        program = root / "bin" / "saker"
        places = packing.bundle(
            {program: "$ORIGIN/../lib/saker/mlx/lib:$ORIGIN/../lib/saker/libs"}, root / "lib" / "saker" / "libs", renamed=False, with_compilers=True
        )
        licences = root / "share" / "doc" / "saker"
        (licences / "libraries").mkdir(parents=True)
        for package, text in packing.copyrights(places).items():
            (licences / "libraries" / f"{package}.txt").write_text(text)
        for file in ("LICENSE", "README.md", "CHANGELOG.md"):
            shutil.copyfile(packing.TOP / file, licences / file)
        packing.copy_licence_of_mlx(build, licences / "libraries" / "mlx.txt")
        shutil.copyfile(sbom, licences / "sbom.cdx.json")
        target = out / f"{name}.tar.gz"
        target.write_bytes(packing.tar_bytes(root, name))
    return target


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: make_tarball.py BUILD SBOM OUT")
    try:
        print(make(*map(pathlib.Path, sys.argv[1:])))
    except packing.ReleaseError as error:
        sys.exit(f"error: {error}")
