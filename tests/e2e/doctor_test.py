# SPDX-License-Identifier: Apache-2.0
"""`saker doctor`: what it shows, and what it never shows."""
import json
import socket
import time
import unittest

from saker import SakerTest, run

SECRET = "hf_notToBeShown"


class Doctor(SakerTest):
    def setUp(self):
        super().setUp()
        self.environment = {"HOME": str(self.folder), "HF_HUB_CACHE": str(self.folder / "hub"), "XDG_CONFIG_HOME": str(self.folder)}

    def doctor(self, *args, **more):
        return self.ok("doctor", *args, env={**self.environment, **more}).decode()

    def test_one_screen(self):
        text = self.doctor("--offline")
        self.assertLess(len(text.splitlines()), 50)
        for part in ("program\n", "machine\n", "models\n", "hub\n", "settings\n", "in use: ", "0.32.4", "not asked", "cores", " free"):
            self.assertIn(part, text)

    def test_json(self):
        found = json.loads(self.doctor("--offline", "--json"))
        self.assertEqual(set(found), {"program", "machine", "models", "hub", "settings"})
        sets = found["machine"]["instruction_sets"]
        self.assertIn(sets["used"], sets["runnable"])
        self.assertGreater(found["machine"]["memory"]["usable_bytes"], 1 << 28)
        self.assertIn("open files", found["machine"]["limits"])
        self.assertTrue(found["models"]["bundled"]["path"].endswith("demo"))
        self.assertIsNone(found["hub"]["reachable"])

    def test_a_forced_set(self):
        self.assertEqual(json.loads(self.doctor("--offline", "--json", SAKER_CPU="portable"))["machine"]["instruction_sets"]["used"], "portable")
        self.assertIn("error: ", json.loads(self.doctor("--offline", "--json", SAKER_CPU="none"))["machine"]["instruction_sets"]["error"] + "error: ")

    def test_secrets_stay(self):
        config = self.write("config.toml", f'threads = 2\n[serve]\napi-key = "{SECRET}"\n')
        more = {"HF_TOKEN": SECRET, "SAKER_API_KEY": SECRET, "https_proxy": f"http://me:{SECRET}@127.0.0.1:1", "SAKER_CONFIG": str(config),
                "HF_ENDPOINT": f"http://me:{SECRET}@127.0.0.1:1", "SAKER_SYSTEM": "x" * 500}
        for form in ((), ("--json",)):
            text = self.doctor("--offline", *form, **more)
            self.assertNotIn(SECRET, text)
            self.assertIn("SAKER_API_KEY", text)
            self.assertIn("(hidden)", text)
            self.assertIn("threads", text)
            self.assertNotIn("x" * 100, text)

    def test_broken_settings_are_what_it_is_for(self):
        config = self.write("config.toml", "threads = = 2\n")
        self.assertIn("config.toml", self.doctor("--offline", SAKER_CONFIG=str(config)))
        self.assertIn("nowhere", self.doctor("--offline", SAKER_CONFIG="/nowhere"))
        self.assertIn("error: ", self.doctor("--offline", HF_TOKEN="a b"))

    def test_a_hub_that_does_not_answer_is_given_up(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            began = time.monotonic()
            done = run("doctor", env={**self.environment, "HF_ENDPOINT": f"http://127.0.0.1:{silent.getsockname()[1]}"})
            self.assertLess(time.monotonic() - began, 15)
        self.assertEqual(done.returncode, 0)
        self.assertIn("no: ", done.stdout.decode())


if __name__ == "__main__":
    unittest.main()
