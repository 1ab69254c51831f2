#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The bill of materials of the program, as CycloneDX 1.6: python3 tools/make_sbom.py FILE

Crates are those of rust/Cargo.lock that one of our platforms links or builds with, wheels those that cmake/ pins by hash,
libraries those of the system that the program is linked to, in the versions that are installed. The same tree on the same
machine gives the same bytes.
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib
import uuid

TOP = pathlib.Path(__file__).resolve().parents[1]
# Packages of Debian whose code is in the program, or which it loads; their headers alone where they are headers alone.
SYSTEM = {
    "nlohmann-json3-dev": "MIT",
    "libcli11-dev": "BSD-3-Clause",
    "libtomlplusplus-dev": "MIT",
    "libboost1.81-dev": "BSL-1.0",
    "libfmt-dev": "MIT",
    "libspdlog-dev": "MIT",
    "libcurl4-openssl-dev": "curl",
    "libssl-dev": "Apache-2.0",
}
WHEELS = {"mlx-cpu.txt": "MIT", "nanobind.txt": "BSD-3-Clause"}


def cargo_metadata():
    cargo = shutil.which("cargo") or str(pathlib.Path.home() / ".cargo/bin/cargo")
    command = [cargo, "metadata", "--locked", "--format-version", "1", "--manifest-path", str(TOP / "rust/Cargo.toml")]
    for offline in (["--offline"], []):  # After a build all crates are here.
        done = subprocess.run(command + offline, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return json.loads(done.stdout)
    raise SystemExit(done.stderr)


def crates():
    """(components, name of the crate of ours -> what it depends on)"""
    metadata = cargo_metadata()
    lock = tomllib.loads((TOP / "rust/Cargo.lock").read_text())
    checksums = {(package["name"], package["version"]): package.get("checksum") for package in lock["package"]}
    refs = {package["id"]: f"pkg:cargo/{package['name']}@{package['version']}" for package in metadata["packages"]}
    components = []
    for package in metadata["packages"]:
        component = {"type": "library", "bom-ref": refs[package["id"]], "name": package["name"], "version": package["version"],
                     "purl": refs[package["id"]]}
        if package["license"]:
            component["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
        if checksum := checksums.get((package["name"], package["version"])):
            component["hashes"] = [{"alg": "SHA-256", "content": checksum}]
        components.append(component)
    depends = {refs[node["id"]]: sorted(refs[dep] for dep in node["dependencies"]) for node in metadata["resolve"]["nodes"]}
    return components, depends


def wheels():
    for file, license_id in WHEELS.items():
        text = (TOP / "cmake" / file).read_text()
        name, version = re.search(r"^([a-z0-9-]+)==([0-9.]+)", text).groups()
        purl = f"pkg:pypi/{name}@{version}"
        # One hash a platform: any of them is this component.
        properties = [{"name": "saker:wheel:sha256", "value": value} for value in re.findall(r"sha256:([0-9a-f]{64})", text)]
        yield {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl,
               "licenses": [{"license": {"id": license_id}}], "properties": properties}


def installed_version(package):
    if shutil.which("dpkg-query") is None:
        return ""
    done = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


def system_libraries():
    for name, license_id in SYSTEM.items():
        version = installed_version(name)
        purl = f"pkg:deb/debian/{name}" + (f"@{version.replace(':', '%3A').replace('+', '%2B')}" if version else "")
        component = {"type": "library", "bom-ref": f"pkg:deb/debian/{name}", "name": name, "purl": purl,
                     "licenses": [{"license": {"id": license_id}}]}
        yield component | ({"version": version} if version else {})


def bill():
    components, depends = crates()
    own = next(ref for ref in depends if ref.startswith("pkg:cargo/saker_rs@"))
    others = [*wheels(), *system_libraries()]
    version = re.search(r"project\(saker VERSION ([0-9.]+)", (TOP / "CMakeLists.txt").read_text()).group(1)
    root = f"pkg:generic/saker@{version}"
    components = sorted([*components, *others], key=lambda component: component["bom-ref"])
    depends |= {component["bom-ref"]: [] for component in others}
    depends[root] = sorted([own, *(component["bom-ref"] for component in others)])
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(components, sort_keys=True))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {"component": {"type": "application", "bom-ref": root, "name": "saker", "version": version,
                                   "licenses": [{"license": {"id": "Apache-2.0"}}]}},
        "components": components,
        "dependencies": [{"ref": ref, "dependsOn": depends[ref]} for ref in sorted(depends)],
    }


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: make_sbom.py FILE")
    target = pathlib.Path(sys.argv[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(bill(), indent=1) + "\n")
