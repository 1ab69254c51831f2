#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The wheel: Python package, program, demo model, with the shared libraries that not every Linux has. MLX comes from its own wheel.

    tools/release/make_wheel.py BUILD SBOM OUT     writes OUT/saker-VERSION-cpXY-cpXY-manylinux_2_N_MACHINE.whl
"""

import base64
import hashlib
import pathlib
import platform
import shutil
import sys
import sysconfig
import tempfile
import time
import tomllib
import zipfile

import packing

MLX_GLIBC = (2, 35)  # The wheel of MLX asks for it.


def metadata(project, version):
    lines = ["Metadata-Version: 2.4", f"Name: {project['name']}", f"Version: {version}", f"Summary: {project['description']}",
             f"Keywords: {','.join(project['keywords'])}", f"License-Expression: {project['license']}", "License-File: LICENSE"]
    lines += [f"Classifier: {one}" for one in project["classifiers"]]
    lines += [f"Requires-Python: {project['requires-python']}"]
    lines += [f"Requires-Dist: {one}" for one in project["dependencies"]]
    for extra, wanted in project["optional-dependencies"].items():
        lines += [f"Provides-Extra: {extra}", *(f"Requires-Dist: {one}; extra == '{extra}'" for one in wanted)]
    readme = (packing.TOP / "python" / "README.md").read_text()
    return "\n".join([*lines, "Description-Content-Type: text/markdown", "", readme])


def lay_out(build, sbom, root, project, version):
    """Fills `root` with the files of the wheel, without its RECORD. Returns its tag."""
    packing.run("cmake", "--install", build, "--prefix", root, "--component", "python")
    package = root / "saker"
    for source in sorted((packing.TOP / "python" / "saker").iterdir()):
        if source.is_file():
            shutil.copyfile(source, package / source.name)
    data = root / f"saker-{version}.data"
    data.mkdir()
    (root / "scripts").rename(data / "scripts")
    binaries = {module: "$ORIGIN/../mlx/lib:$ORIGIN/libs" for module in sorted(package.glob("*.so"))}
    binaries[package / "bin" / "saker"] = "$ORIGIN/../../mlx/lib:$ORIGIN/../libs"
    places = packing.bundle(binaries, package / "libs", renamed=True, with_compilers=False)
    glibc = max(MLX_GLIBC, packing.newest_glibc([*binaries, *packing.files_below(package / "libs")]))
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    tag = f"{python}-{python}-manylinux_{glibc[0]}_{glibc[1]}_{platform.machine()}"
    info = root / f"saker-{version}.dist-info"
    (info / "licenses" / "libraries").mkdir(parents=True)
    (info / "sboms").mkdir()
    (info / "METADATA").write_text(metadata(project, version))
    (info / "WHEEL").write_text(f"Wheel-Version: 1.0\nGenerator: saker\nRoot-Is-Purelib: false\nTag: {tag}\n")
    shutil.copyfile(packing.TOP / "LICENSE", info / "licenses" / "LICENSE")
    for name, text in packing.copyrights(places).items():
        (info / "licenses" / "libraries" / f"{name}.txt").write_text(text)
    shutil.copyfile(sbom, info / "sboms" / "saker.cdx.json")
    return tag


def record(root, files):
    lines = []
    for path in files:
        content = path.read_bytes()
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{path.relative_to(root).as_posix()},sha256={digest},{len(content)}\n")
    return lines


def write_zip(root, target, version):
    """The wheel of a folder: the same bytes for the same content."""
    moment = time.gmtime(packing.epoch())[:6]
    files = packing.files_below(root)
    listed = root / f"saker-{version}.dist-info" / "RECORD"
    listed.write_text("".join([*record(root, files), f"{listed.relative_to(root).as_posix()},,\n"]))
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in [*files, listed]:
            member = zipfile.ZipInfo(path.relative_to(root).as_posix(), moment)
            runs = path.suffix == ".so" or ".so." in path.name or path.parent.name in ("bin", "scripts")
            member.external_attr = (0o100755 if runs else 0o100644) << 16
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, path.read_bytes(), compresslevel=9)


def make(build, sbom, out):
    version = packing.version()
    project = tomllib.loads((packing.TOP / "python" / "pyproject.toml").read_text())["project"]
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    with tempfile.TemporaryDirectory() as temporary:
        root = pathlib.Path(temporary) / "wheel"
        tag = lay_out(build, sbom, root, project, version)
        if not list((root / "saker").glob(f"*{suffix}")):
            raise packing.ReleaseError(f"{build}: its modules are of another Python than {platform.python_version()}")
        target = out / f"saker-{version}-{tag}.whl"
        write_zip(root, target, version)
    return target


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: make_wheel.py BUILD SBOM OUT")
    try:
        print(make(*map(pathlib.Path, sys.argv[1:])))
    except packing.ReleaseError as error:
        sys.exit(f"error: {error}")
