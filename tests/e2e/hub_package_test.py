# SPDX-License-Identifier: Apache-2.0
"""One cache, two programs: Python's huggingface_hub reads what `pull` wrote, and the other way round."""
import json
import os
import subprocess
import sys
import unittest

from hub_test import FILES, REPO, WEIGHTS, HubTest
from saker import PROGRAM

try:
    import huggingface_hub
except ImportError:
    huggingface_hub = None

SCRIPT = """
import json, os, sys
import huggingface_hub
call, arguments = sys.argv[1], json.loads(sys.argv[2])
if call == "scan":
    found = huggingface_hub.scan_cache_dir()
    print(json.dumps({"warnings": [str(warning) for warning in found.warnings], "repos": [
        {"repo": repo.repo_id, "bytes": repo.size_on_disk, "revisions": {
            revision.commit_hash: {"refs": sorted(revision.refs), "bytes": revision.size_on_disk,
                                   "files": sorted(str(file.file_path.relative_to(revision.snapshot_path)) for file in revision.files)}
            for revision in repo.revisions}} for repo in found.repos]}))
elif call == "delete":
    huggingface_hub.scan_cache_dir().delete_revisions(*arguments).execute()
else:
    print(json.dumps(getattr(huggingface_hub, call)(**arguments)))
"""


@unittest.skipIf(huggingface_hub is None, "huggingface_hub is not installed")
class Package(HubTest):
    def package(self, call, arguments=(), **more):
        """Runs the package in a process of its own, since it reads the environment once."""
        done = subprocess.run([sys.executable, "-c", SCRIPT, call, json.dumps(arguments)], capture_output=True, timeout=120,
                              env={**os.environ, **self.env(HF_HUB_DISABLE_XET="1", HF_HUB_DISABLE_TELEMETRY="1", **more)})
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        return json.loads(done.stdout or "null")

    def test_it_reads_what_we_wrote(self):
        commit = self.hub.add(REPO, FILES)
        report = self.pull(REPO)
        offline = {"HF_HUB_OFFLINE": "1"}
        self.assertEqual(self.package("snapshot_download", {"repo_id": REPO}, **offline), report["path"])
        path = self.package("hf_hub_download", {"repo_id": REPO, "filename": WEIGHTS}, **offline)
        self.assertEqual(path, os.path.join(report["path"], WEIGHTS))
        before = len(self.hub.asked("cdn"))
        self.assertEqual(self.package("snapshot_download", {"repo_id": REPO}), report["path"])
        self.assertEqual(len(self.hub.asked("cdn")), before)
        scan = self.package("scan")
        self.assertEqual(scan["warnings"], [])
        (repo,) = scan["repos"]
        self.assertEqual(repo["revisions"], {commit: {"refs": ["main"], "bytes": report["bytes"], "files": sorted(FILES)}})
        self.package("delete", [commit])
        self.assertEqual(self.json("list", "--json", env=self.env())["models"], [])

    def test_we_read_what_it_wrote(self):
        extra = {**FILES, "README.md": b"x"}
        old = self.hub.add(REPO, extra)
        path = self.package("snapshot_download", {"repo_id": REPO})
        self.assertEqual(self.json("inspect", REPO, "--json", env=self.env(HF_HUB_OFFLINE="1"))["runnable"], True)
        report = self.pull(REPO)
        self.assertEqual((report["path"], report["received"]), (path, 0))
        new = self.hub.add(REPO, {**extra, "config.json": FILES["config.json"] + b" "})
        self.package("snapshot_download", {"repo_id": REPO})
        listed = self.json("list", "--json", env=self.env())["models"][0]
        scanned = self.package("scan")["repos"][0]
        self.assertEqual(listed["bytes"], scanned["bytes"])
        self.assertEqual({revision["commit"]: (revision["refs"], revision["bytes"], revision["files"]) for revision in listed["revisions"]},
                         {commit: (revision["refs"], revision["bytes"], len(revision["files"]))
                          for commit, revision in scanned["revisions"].items()})
        self.ok("rm", f"{REPO}@{old}", "--yes", env=self.env())
        scan = self.package("scan")
        self.assertEqual((scan["warnings"], list(scan["repos"][0]["revisions"])), ([], [new]))
        self.assertEqual(self.package("snapshot_download", {"repo_id": REPO}, HF_HUB_OFFLINE="1"), str(self.model() / "snapshots" / new))

    def test_interrupted_pulls_do_not_disturb_it(self):
        self.hub.add(REPO, FILES)
        self.hub.faults[WEIGHTS] = [{"flip": 5}] * 2
        self.refused("pull", REPO, says="digest")
        self.assertEqual(self.package("scan")["warnings"], [])
        self.package("snapshot_download", {"repo_id": REPO})
        self.assertEqual(self.pull(REPO)["received"], 0)

    def test_both_at_once(self):
        self.hub.add(REPO, FILES)
        self.hub.faults[WEIGHTS] = [{"piece": 50_000, "pause": 0.02}] * 2
        process = subprocess.Popen([PROGRAM, "pull", REPO], env={**os.environ, **self.env()}, stdout=subprocess.PIPE)
        path = self.package("snapshot_download", {"repo_id": REPO})
        out, _ = process.communicate(timeout=100)
        self.assertEqual(out.decode().strip(), path)
        self.assertEqual(self.package("scan")["warnings"], [])
