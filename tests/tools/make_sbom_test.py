# SPDX-License-Identifier: Apache-2.0
"""The bill of materials holds every crate that is linked, and everything that it names is in it."""

import pathlib
import sys
import tomllib
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tools"))
import make_sbom  # noqa: E402


class MakeSbom(unittest.TestCase):
    def setUp(self) -> None:
        self.bill = make_sbom.bill()
        self.components = {component["bom-ref"]: component for component in self.bill["components"]}

    def test_every_locked_crate(self) -> None:
        lock = tomllib.loads((TOP / "rust/Cargo.lock").read_text())
        locked = {f"pkg:cargo/{package['name']}@{package['version']}" for package in lock["package"]}
        listed = {ref for ref in self.components if ref.startswith("pkg:cargo/")}
        self.assertEqual(listed, locked)
        for ref in listed:
            own = ref.startswith("pkg:cargo/saker_rs@")
            self.assertTrue(own or "hashes" in self.components[ref], ref)
            self.assertTrue(self.components[ref].get("licenses"), ref)

    def test_what_is_not_a_crate(self) -> None:
        names = {component["name"] for component in self.bill["components"]}
        self.assertLessEqual({"mlx-cpu", "nanobind", "libcurl4-openssl-dev", "libssl-dev", "nlohmann-json3-dev"}, names)

    def test_names_lead_somewhere(self) -> None:
        self.assertEqual(len(self.components), len(self.bill["components"]))
        known = set(self.components) | {self.bill["metadata"]["component"]["bom-ref"]}
        for dependency in self.bill["dependencies"]:
            self.assertIn(dependency["ref"], known)
            self.assertLessEqual(set(dependency["dependsOn"]), known)

    def test_the_same_each_time(self) -> None:
        self.assertEqual(self.bill, make_sbom.bill())


if __name__ == "__main__":
    unittest.main()
