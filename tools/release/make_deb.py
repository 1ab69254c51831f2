#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Debian package: program, MLX, demo model, manual pages, completions, units of systemd. Libraries of the system are dependencies.

    tools/release/make_deb.py BUILD SBOM OUT     writes OUT/saker_VERSION_ARCHITECTURE.deb
"""

import gzip
import hashlib
import pathlib
import re
import shutil
import sys
import tempfile

import packing

CONTROL = """Package: saker
Version: {version}
Architecture: {architecture}
Maintainer: Saker <saker@localhost>
Installed-Size: {kilobytes}
Depends: {depends}
Recommends: ca-certificates
Section: science
Priority: optional
Description: runs large language models
 Chats with a model, generates many answers at once, serves the APIs of
 OpenAI, Anthropic and Ollama, and measures how probable a model finds a text.
"""
COPYRIGHT = """Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: saker

Files: *
Copyright: The authors of Saker
License: Apache-2.0
 See /usr/share/common-licenses/Apache-2.0.

Files: usr/lib/saker/*
Copyright: Apple Inc.
License: MIT
 MLX, as its wheel has it. The file sbom.cdx.json lists all parts.
"""
SETTINGS = """# Settings of saker.service; see saker-serve(1).
# SAKER_MODEL=/srv/models/NAME
# SAKER_OPTIONS=--api-keys /etc/saker/keys.json --log-requests=json
SAKER_MODEL=
SAKER_OPTIONS=
"""
RELOAD = "if [ -d /run/systemd/system ]; then\n  systemctl daemon-reload || true\nfi\n"
SCRIPTS = {
    "postinst": RELOAD,
    "prerm": 'if [ "$1" = remove ] && [ -d /run/systemd/system ]; then\n  systemctl stop saker.socket saker.service || true\nfi\n',
    "postrm": RELOAD,
}


def pack_text(path, text):
    with open(path, "wb") as file, gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=packing.epoch(), compresslevel=9) as stream:
        stream.write(text)


def lay_out(build, sbom, root):
    prefix = root / "usr"
    packing.run("cmake", "--install", build, "--prefix", prefix, "--component", "program")
    program = prefix / "bin" / "saker"
    packing.run("strip", "--strip-unneeded", program)
    for page in sorted((prefix / "share" / "man").rglob("*.1")):
        pack_text(page.with_name(page.name + ".gz"), page.read_bytes())
        page.unlink()
    docs = prefix / "share" / "doc" / "saker"
    docs.mkdir(parents=True)
    (docs / "copyright").write_text(COPYRIGHT)
    pack_text(docs / "changelog.gz", (packing.TOP / "CHANGELOG.md").read_bytes())
    packing.copy_licence_of_mlx(build, docs / "MLX-LICENSE")
    shutil.copyfile(sbom, docs / "sbom.cdx.json")
    units = root / "lib" / "systemd" / "system"
    units.mkdir(parents=True)
    for unit in sorted((packing.TOP / "deploy" / "systemd").iterdir()):
        (units / unit.name).write_text(unit.read_text().replace("/usr/local/bin/saker", "/usr/bin/saker"))
    settings = root / "etc" / "saker" / "serve.env"
    settings.parent.mkdir(parents=True)
    settings.write_text(SETTINGS)
    return program


def depends_of(program, libraries):
    with tempfile.TemporaryDirectory() as temporary:
        control = pathlib.Path(temporary) / "debian" / "control"
        control.parent.mkdir()
        control.write_text("Source: saker\n\nPackage: saker\nArchitecture: any\n")
        text = packing.run("dpkg-shlibdeps", "-O", f"-l{libraries}", "--ignore-missing-info", f"-e{program}", cwd=temporary)
    return re.search(r"shlibs:Depends=(.+)", text).group(1)


def write_control(root, program):
    control = root / "DEBIAN"
    files = packing.files_below(root)
    control.mkdir()
    (control / "md5sums").write_text(
        "".join(f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(root)}\n" for path in files if path.parts[-3:-1] != ("etc", "saker"))
    )
    (control / "conffiles").write_text("/etc/saker/serve.env\n")
    (control / "control").write_text(
        CONTROL.format(
            version=packing.version(),
            architecture=packing.run("dpkg", "--print-architecture").strip(),
            kilobytes=sum(path.stat().st_size for path in files) // 1024,
            depends=depends_of(program, root / "usr" / "lib" / "saker" / "mlx" / "lib"),
        )
    )
    for name, text in SCRIPTS.items():
        (control / name).write_text(f"#!/bin/sh\nset -e\n{text}")
        (control / name).chmod(0o755)


def make(build, sbom, out):
    with tempfile.TemporaryDirectory() as temporary:
        root = pathlib.Path(temporary) / "root"
        program = lay_out(build, sbom, root)
        for path in root.rglob("*"):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or path == program or re.search(r"\.so(\.|$)", path.name) else 0o644)
        write_control(root, program)
        root.chmod(0o755)
        architecture = packing.run("dpkg", "--print-architecture").strip()
        target = out / f"saker_{packing.version()}_{architecture}.deb"
        packing.run("dpkg-deb", "--root-owner-group", "-Zxz", "--build", root, target)
    return target


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: make_deb.py BUILD SBOM OUT")
    try:
        print(make(*map(pathlib.Path, sys.argv[1:])))
    except packing.ReleaseError as error:
        sys.exit(f"error: {error}")
