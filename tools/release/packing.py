# SPDX-License-Identifier: Apache-2.0
"""What all packages of a release share: version and date, shared libraries that come along, archives with the same bytes each time."""

import gzip
import hashlib
import io
import os
import pathlib
import re
import shutil
import subprocess
import tarfile

TOP = pathlib.Path(__file__).resolve().parents[2]
# Every Linux with glibc has these; the program of a tarball brings the last three, too.
OF_THE_SYSTEM = re.compile(r"(ld-linux.*|libc|libm|libdl|librt|libpthread|libresolv|libutil)\.so.*")
COMPILERS = re.compile(r"(libstdc\+\+|libgcc_s|libz)\.so.*")
OF_MLX = re.compile(r"libmlx\.so")


class ReleaseError(Exception):
    """A release that can't be made, in a line."""


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise ReleaseError(f"{' '.join(map(str, command))}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def version(top=TOP):
    return re.search(r"project\(saker VERSION ([0-9.]+)", (top / "CMakeLists.txt").read_text()).group(1)


def release_date(top=TOP):
    return re.search(r"SAKER_RELEASE_DATE (\d{4}-\d{2}-\d{2})", (top / "CMakeLists.txt").read_text()).group(1)


def check_changelog(top=TOP):
    """CHANGELOG.md has the version that is released, first, with its date."""
    text = (top / "CHANGELOG.md").read_text()
    found = re.search(r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d{2}-\d{2})$", text, re.MULTILINE)
    wanted = (version(top), release_date(top))
    if found is None or found.groups() != wanted:
        got = "no release" if found is None else " of ".join(found.groups())
        raise ReleaseError(f"CHANGELOG.md: the newest release is {got}, expected {' of '.join(wanted)}, as CMakeLists.txt says")


def epoch():
    """Seconds since 1970 that files of the packages have: SOURCE_DATE_EPOCH."""
    return int(os.environ["SOURCE_DATE_EPOCH"])


def needed(file):
    """The shared libraries that a file names."""
    return re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "--dynamic", "--wide", file))


def newest_glibc(files):
    """(2, 36): the newest glibc whose symbols one of the files takes."""
    found = set()
    for file in files:
        found.update(re.findall(r"GLIBC_(\d+)\.(\d+)", run("readelf", "--version-info", "--wide", file)))
    return max((int(major), int(minor)) for major, minor in found)


def library_folders():
    multiarch = run("gcc", "-print-multiarch").strip()
    return [pathlib.Path(folder) / multiarch for folder in ("/lib", "/usr/lib")] + [pathlib.Path("/lib64"), pathlib.Path("/usr/lib64")]


def libraries_of(files, with_compilers):
    """The libraries of this system that the files need, by name, those that these need included."""
    folders = library_folders()
    found = {}
    waiting = [name for file in files for name in needed(file)]
    while waiting:
        name = waiting.pop()
        if name in found or OF_THE_SYSTEM.fullmatch(name) or OF_MLX.fullmatch(name) or (COMPILERS.fullmatch(name) and not with_compilers):
            continue
        place = next((folder / name for folder in folders if (folder / name).exists()), None)
        if place is None:
            raise ReleaseError(f"{name}: in none of {', '.join(map(str, folders))}")
        found[name] = place.resolve()
        waiting += needed(place)
    return dict(sorted(found.items()))


def own_name(name, content):
    """A name that no other library of a process has: libcurl-1a2b3c4d.so.4."""
    stem, _, rest = name.partition(".so")
    return f"{stem}-{hashlib.sha256(content).hexdigest()[:8]}.so{rest}"


def bundle(files, folder, *, renamed, with_compilers):
    """Copies the libraries that the files need into `folder`, and makes them find each other there. `files` has the search path that
    each file gets. Returns the places that they came from."""
    libraries = libraries_of(files, with_compilers)
    folder.mkdir(parents=True)
    names = {name: own_name(name, place.read_bytes()) if renamed else name for name, place in libraries.items()}
    for name, place in libraries.items():
        shutil.copyfile(place, folder / names[name])
    for name in libraries:
        patch(folder / names[name], names, "$ORIGIN", soname=names[name])
    for file, path in files.items():
        patch(file, names, path)
    return list(libraries.values())


def patch(file, names, search_path, soname=None):
    """Gives a file new names of libraries and the path where it finds them. One change a call: patchelf 0.14 mixes up several."""
    file.chmod(0o755)
    run("strip", "--strip-unneeded", file)
    wanted = [names.get(name, name) for name in needed(file)]
    for name in needed(file):
        if names.get(name, name) != name:
            run("patchelf", "--replace-needed", name, names[name], file)
    if soname:
        run("patchelf", "--set-soname", soname, file)
    run("patchelf", "--set-rpath", search_path, file)
    if sorted(needed(file)) != sorted(wanted) or run("patchelf", "--print-rpath", file).strip() != search_path:
        raise ReleaseError(f"{file}: patchelf has broken its list of libraries")


def copyrights(places):
    """{package: text} of the Debian packages that the libraries are from."""
    texts = {}
    for place in places:
        # Files of /usr/lib may be listed below /lib.
        names = [str(place), str(place).removeprefix("/usr")]
        owner = next((done.stdout for done in (subprocess.run(["dpkg-query", "-S", name], capture_output=True, text=True, check=False) for name in names)
                      if done.returncode == 0), None)
        if owner is None:
            raise ReleaseError(f"{place}: no package has it, so that its licence is not known")
        package = owner.split(":")[0]
        installed = run("dpkg-query", "-W", "-f", "${source:Package} ${source:Version}", f"{package}:{run('dpkg', '--print-architecture').strip()}")
        text = (pathlib.Path("/usr/share/doc") / package / "copyright").read_text(errors="replace")
        texts[package] = f"{place.name}, from Debian's source package {installed}\n\n{text}"
    return dict(sorted(texts.items()))


def copy_licence_of_mlx(build, target):
    """Of the wheel that the build unpacked, if there is one: MLX_ROOT may name another MLX."""
    cache = (build / "CMakeCache.txt").read_text()
    deps = re.search(r"^SAKER_DEPS_DIR:\w+=(.+)$", cache, re.MULTILINE).group(1)
    for found in sorted(pathlib.Path(deps).glob("mlx-*/mlx*.dist-info/licenses/LICENSE")):
        shutil.copyfile(found, target)


def files_below(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file() or path.is_symlink())


def tar_bytes(folder, prefix):
    """A .tar.gz of a folder: the same bytes for the same content."""
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=epoch(), compresslevel=9) as stream, tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in [folder, *sorted(folder.rglob("*"))]:
            member = archive.gettarinfo(path, str(pathlib.PurePath(prefix) / path.relative_to(folder)))
            member.uid = member.gid = 0
            member.uname = member.gname = "root"
            member.mtime = epoch()
            member.mode = 0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644
            with open(path, "rb") if member.isreg() else io.BytesIO() as content:
                archive.addfile(member, content if member.isreg() else None)
    return packed.getvalue()
