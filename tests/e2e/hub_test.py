# SPDX-License-Identifier: Apache-2.0
"""Models from a hub into the cache: `pull`, `list`, `rm`, `--pull`, and all that goes wrong on the way."""
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import time

from hub_server import Hub
from saker import DEMO, PROGRAM, ROOT, SakerTest, run

REPO = "org/model"
FILES = {path.name: path.read_bytes() for path in DEMO.iterdir() if path.suffix in {".json", ".jinja", ".safetensors"}}
WEIGHTS = "model.safetensors"
TIMEOUT = {"HF_HUB_DOWNLOAD_TIMEOUT": "1"}
for variable in [name for name in os.environ if name.startswith(("HF_", "HUGGING")) or name.lower().endswith("_proxy")]:
    del os.environ[variable]


class HubTest(SakerTest):
    def setUp(self):
        super().setUp()
        self.hub = Hub()
        self.addCleanup(self.hub.close)
        self.home = self.folder / "home"
        self.cache = self.home / "hub"
        self.environment = {"HF_HOME": str(self.home), "HF_ENDPOINT": self.hub.address, "no_proxy": "*"}

    def env(self, **more):
        return {**self.environment, **more}

    def pull(self, *args, **more):
        return self.json("pull", *args, "--json", env=self.env(**more))

    def refused(self, *args, says, **more):
        return self.fails(*args, says=says, env=self.env(**more))

    def model(self, repo=REPO):
        return self.cache / ("models--" + repo.replace("/", "--"))

    def blobs(self, repo=REPO):
        return sorted(path.name for path in (self.model(repo) / "blobs").iterdir())

    def same(self, report, files):
        folder = pathlib.Path(report["path"])
        self.assertEqual({name: (folder / name).read_bytes() for name in report["files"]}, files)

    def nothing_final(self):
        """No snapshot, no ref, no whole blob of the weights."""
        self.assertEqual(list((self.model() / "snapshots").iterdir()), [])
        self.assertEqual(list((self.model() / "refs").iterdir()), [])
        self.assertNotIn(self.etag(WEIGHTS), self.blobs())

    def etag(self, name):
        model = self.hub.models[REPO]
        return model["commits"][model["refs"]["main"]][name].etag


class Pull(HubTest):
    def test_layout_is_that_of_the_python_package(self):
        commit = self.hub.add(REPO, FILES)
        report = self.pull(REPO)
        self.assertEqual((report["repo"], report["revision"], report["commit"]), (REPO, "main", commit))
        self.assertEqual(report["bytes"], sum(map(len, FILES.values())))
        self.assertEqual(report["received"], report["bytes"])
        self.same(report, FILES)
        snapshot = self.model() / "snapshots" / commit
        self.assertEqual(pathlib.Path(report["path"]), snapshot)
        for name in FILES:
            self.assertEqual(os.readlink(snapshot / name), f"../../blobs/{self.etag(name)}")
        self.assertEqual(self.blobs(), sorted(map(self.etag, FILES)))
        self.assertEqual((self.model() / "refs/main").read_bytes(), commit.encode())
        self.assertEqual(sorted(os.listdir(self.cache / ".locks/models--org--model")),
                         sorted(f"{self.etag(name)}.lock" for name in FILES))
        again = self.pull(REPO)
        self.assertEqual((again["received"], again["path"]), (0, report["path"]))
        answer = self.json("generate", REPO, "-p", "Once", "--max-tokens", "3", "--json", env=self.env())
        self.assertEqual(answer["tokens"], self.json("generate", "-p", "Once", "--max-tokens", "3", "--json")["tokens"])

    def test_only_what_a_model_needs(self):
        wanted = {
            "config.json": b"{}",
            "tokenizer.json": b"{}",
            "tokenizer.model": b"x",
            "additional_chat_templates/tool.jinja": b"y",
            "model.safetensors.index.json": json.dumps(
                {"weight_map": {"a": "model-1.safetensors", "b": "part/two.safetensors"}}).encode(),
            "model-1.safetensors": b"1" * 20_000,
            "part/two.safetensors": b"2",
            "draft/config.json": b"{} ",
            "draft/model.safetensors": b"1" * 20_000,  # Two paths, one blob.
            "adapters/tune/adapter_config.json": b"{}  ",
            "adapters/tune/adapters.safetensors": b"3",
        }
        others = {"README.md": b"a", "pytorch_model.bin": b"b", "model.gguf": b"c", "model-old.safetensors": b"d", "consolidated.00.pth": b"e",
                  "onnx/config.json": b"f", "onnx/model.safetensors": b"g", "adapters/tune/optimizer.bin": b"h", ".gitattributes": b"i"}
        self.hub.add(REPO, {**wanted, **others})
        self.hub.page_size = 4
        report = self.pull(REPO)
        self.same(report, wanted)
        self.assertEqual(len(self.hub.asked("cdn")), 1)
        more = self.pull(REPO, "--include", "*.gguf", "--include", "onnx/*")
        self.same(more, {**wanted, **{name: others[name] for name in ("model.gguf", "onnx/config.json", "onnx/model.safetensors")}})
        self.assertEqual(more["received"], 3)

    def test_lists_in_many_pages(self):
        self.hub.add(REPO, FILES)
        self.hub.page_size = 1  # The first page has a folder alone.
        self.same(self.pull(REPO), FILES)
        self.hub.change_entries = lambda entries: entries[:1] * 2000 + entries[1:]
        self.refused("pull", REPO, says="the list of files does not end, expected at most 1000 pages")

    def test_other_spellings_of_the_endpoint(self):
        self.hub.add(REPO, FILES)
        self.hub.tokens[REPO] = "hf_secret"
        self.hub.page_size = 4
        self.hub.next_page_host = self.hub.address.replace("127.0.0.1", "localhost")
        spelled = self.hub.address.replace("http://127.0.0.1", "HTTP://LocalHost") + "/"
        self.same(self.pull(REPO, HF_ENDPOINT=spelled, HF_TOKEN="hf_secret"), FILES)

    def test_proxies_in_upper_case(self):
        self.hub.add(REPO, FILES)
        self.same(self.pull(REPO, HF_ENDPOINT="http://hub.invalid", HTTP_PROXY=self.hub.address, no_proxy="", NO_PROXY="127.0.0.1"), FILES)
        self.assertTrue(all(path.startswith("http://hub.invalid/") for path, _ in self.hub.asked("hub")))
        self.assertFalse(any(path.startswith("http") for path, _ in self.hub.asked("cdn")))

    def test_no_weights_that_we_read(self):
        self.hub.add(REPO, {"config.json": b"{}", "pytorch_model.bin": b"x"})
        self.refused("pull", REPO, says="holds no model*.safetensors, but 2 files: 'config.json', 'pytorch_model.bin'")
        self.assertEqual(self.pull(REPO, "--include", "*.bin")["files"], ["config.json", "pytorch_model.bin"])

    def test_revisions(self):
        old = self.hub.add(REPO, FILES)
        self.hub.models[REPO]["refs"]["v1"] = old
        self.hub.models[REPO]["refs"]["refs/pr/1"] = old
        self.pull(REPO + "@v1")
        new = self.hub.add(REPO, {**FILES, "config.json": FILES["config.json"] + b"\n"})
        report = self.pull(REPO)
        self.assertEqual((report["commit"], report["received"]), (new, len(FILES["config.json"]) + 1))
        self.assertEqual(self.pull(f"{REPO}@refs/pr/1")["commit"], old)
        self.assertEqual(self.pull(f"{REPO}@{old}")["commit"], old)
        listed = self.json("list", "--json", env=self.env())
        (model,) = listed["models"]
        self.assertEqual(listed["cache"], str(self.cache))
        size = sum(map(len, FILES.values()))
        self.assertEqual((model["repo"], model["bytes"]), (REPO, size + len(FILES["config.json"]) + 1))
        revisions = {revision["commit"]: revision for revision in model["revisions"]}
        self.assertEqual(revisions[old]["refs"], ["refs/pr/1", "v1"])
        self.assertEqual((revisions[new]["refs"], revisions[new]["files"]), (["main"], len(FILES)))
        self.assertIn("v1", self.ok("list", env=self.env()).decode())
        for name, commit in ((REPO, new), (f"{REPO}@v1", old), (f"{REPO}@{old[:10]}", old)):
            self.json("inspect", name, "--json", env=self.env())
        self.refused("rm", f"{REPO}@v1", says="give --yes")
        self.refused("rm", REPO, f"{REPO}@v1", "--yes", says="is there twice")
        removed = self.json("rm", f"{REPO}@v1", "--yes", "--json", env=self.env())
        self.assertEqual(removed["bytes"], len(FILES["config.json"]))
        self.json("inspect", REPO, "--json", env=self.env())
        self.refused("tokenize", f"{REPO}@v1", "-t", "x", says="saker pull org/model@v1")
        self.refused("rm", REPO, "org/other", "--yes", says="'org/other' is not in the hub cache")
        self.ok("rm", REPO, "--yes", env=self.env())
        self.assertEqual([path.name for path in self.cache.iterdir()], [".locks"])
        self.assertEqual(self.json("list", "--json", env=self.env())["models"], [])
        self.assertIn("no model is here yet; 'saker pull REPO'", run("list", env=self.env()).stderr.decode())
        self.assertEqual(run("list", "--json", env=self.env()).stderr, b"")

    def test_tokens_stay_with_the_hub(self):
        self.hub.add(REPO, FILES)
        self.hub.tokens[REPO] = "hf_secret"
        self.refused("pull", REPO, says="needs a token in HF_TOKEN or the token file (HTTP 401)")
        self.refused("pull", REPO, HF_TOKEN="hf_wrong", says="gives no access")
        self.home.mkdir(exist_ok=True)
        (self.home / "token").write_text("hf_secret\n")
        self.pull(REPO)
        self.assertTrue(self.hub.asked("cdn"))
        for _, headers in self.hub.asked("cdn"):
            self.assertNotIn("Authorization", headers)
        self.assertEqual(self.hub.asked("hub", "/resolve/")[-1][1]["Authorization"], "Bearer hf_secret")
        self.hub.gated.add(REPO)
        message = self.refused("pull", REPO, says="is gated")
        self.assertNotIn("hf_secret", message)
        self.refused("pull", REPO, HF_TOKEN="a\nb", says="HF_TOKEN")

    def test_what_is_not_there(self):
        self.hub.add(REPO, FILES)
        self.refused("pull", "org/none", says="org/none: there is no such model")
        self.refused("pull", REPO + "@none", says="there is no such revision")
        for name in ("../x", "a/b/c", "org/model@../x", "org/model@", "-x/y"):
            self.refused("pull", "--", name, says="is no name of a model")
        self.hub.faults["hub:config.json"] = [{"status": 404, "headers": {"X-Error-Code": "EntryNotFound"}}]
        self.refused("pull", REPO, says="config.json: there is no such file (HTTP 404)")
        self.refused("pull", REPO, HF_ENDPOINT="ftp://x", says="expected http://HOST or https://HOST")
        for address, shown in (("https://me:pass@word@x", "https://***@x"), ("me:pass/word@x", "***@x")):
            self.refused("pull", REPO, HF_ENDPOINT=address, says=f"the hub's address is '{shown}', expected http://HOST")
        self.refused("pull", REPO, HF_HUB_OFFLINE="1", says="HF_HUB_OFFLINE is set")
        self.fails("pull", says="MODEL", code=2)

    def test_pull_flag(self):
        self.hub.add(REPO, FILES)
        arguments = ("generate", REPO, "-p", "Once", "--max-tokens", "3", "--json")
        self.refused(*arguments, says="saker pull org/model")
        first = self.json(*arguments, "--pull", env=self.env())
        asked = len(self.hub.requests)
        self.assertEqual(self.json(*arguments, "--pull", env=self.env())["tokens"], first["tokens"])
        self.json(*arguments, "--draft", REPO, "--pull", env=self.env(HF_HUB_OFFLINE="1"))
        self.assertEqual(len(self.hub.requests), asked)
        self.ok("rm", REPO, "--yes", env=self.env())
        self.json("inspect", REPO, "--pull", "--json", env=self.env())
        self.ok("tokenize", "--pull", "-t", "x")
        adapter = ROOT / "tests/golden/adapters/mlx_lora_q4"
        self.hub.add("org/adapter", {path.name: path.read_bytes() for path in adapter.iterdir()})
        base = (ROOT / "tests/golden/qwen3_q4", "--tokens", "1,2,3", "--json")
        self.refused("score", *base, "--adapter", "x=org/adapter", says="saker pull")
        self.assertEqual(self.json("score", *base, "--adapter", "x=org/adapter", "--pull", env=self.env())["views"],
                         self.json("score", *base, "--adapter", f"x={adapter}")["views"])
        self.assertIn(b"--pull", self.ok("cache", "save", "--help"))
        self.assertNotIn(b"--pull ", self.ok("rm", "--help"))


class Faults(HubTest):
    def setUp(self):
        super().setUp()
        self.hub.add(REPO, FILES)

    def test_passing_faults(self):
        size = len(FILES[WEIGHTS])
        for name, faults in {
            "too many requests": [{"status": 429, "headers": {"Retry-After": "1"}}],
            "unavailable": [{"status": 503}, {"status": 500}],
            "dropped": [{"drop": True}],
            "cut": [{"cut": size // 2}, {"cut": size // 4}],
            "ignored range": [{"cut": size // 2}, {"ignore_range": True}],
            "stalled": [{"cut": size // 3, "stall": 30}],
            "flipped": [{"flip": size // 2}],
            "flipped and cut": [{"flip": 10, "cut": size // 2}, {"cut": size // 4}],
            "range of nothing": [{"cut": size // 2}, {"status": 416}],
        }.items():
            with self.subTest(name):
                shutil.rmtree(self.home, ignore_errors=True)
                self.hub.faults[WEIGHTS] = list(faults)
                self.same(self.pull(REPO, **TIMEOUT), FILES)
                self.assertEqual(self.hub.faults[WEIGHTS], [])
        for where in ("api", "hub:" + WEIGHTS, "hub:config.json"):
            with self.subTest(where):
                shutil.rmtree(self.home)
                self.hub.faults[where] = [{"status": 429, "headers": {"Retry-After": "1"}}, {"drop": True}]
                self.same(self.pull(REPO), FILES)

    def test_a_cut_file_is_gone_on_with(self):
        size = len(FILES[WEIGHTS])
        self.hub.faults[WEIGHTS] = [{"cut": size // 2}]
        self.assertEqual(self.pull(REPO)["received"], sum(map(len, FILES.values())))
        ranges = [headers.get("Range") for _, headers in self.hub.asked("cdn", self.etag(WEIGHTS))]
        self.assertEqual(ranges[0], None)
        self.assertEqual(ranges[1:], [f"bytes={size // 2}-"])

    def test_a_hub_that_gives_up(self):
        self.hub.faults[WEIGHTS] = [{"status": 503}] * 100
        self.refused("pull", REPO, says=f"{WEIGHTS}: HTTP 503; gave up after")
        self.nothing_final()
        self.hub.faults[WEIGHTS] = [{"status": 429, "headers": {"Retry-After": "4000"}}]
        self.refused("pull", REPO, says="asks to come back in 4000 s")
        self.hub.faults[WEIGHTS] = []
        self.same(self.pull(REPO), FILES)

    def test_bytes_that_come_again_are_no_progress(self):
        self.hub.faults[WEIGHTS] = [{"cut": 100_000, "ignore_range": True}] * 100
        self.refused("pull", REPO, says="gave up after")
        self.nothing_final()

    def test_a_part_that_is_no_longer_its_own_stays_a_part(self):
        self.hub.faults[WEIGHTS] = [{"piece": 20_000, "pause": 0.02}]
        process = subprocess.Popen([PROGRAM, "pull", REPO], env={**os.environ, **self.env()}, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        part = self.model() / "blobs" / (self.etag(WEIGHTS) + ".incomplete")
        while not part.exists() or part.stat().st_size == 0:
            self.assertIsNone(process.poll())
            time.sleep(0.01)
        part.unlink()
        part.write_bytes(b"another pull's")
        _, message = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1)
        self.assertIn(b"was taken away while it was fetched", message)
        self.assertEqual(part.read_bytes(), b"another pull's")
        self.assertFalse(part.with_suffix("").exists())

    def test_wrong_bytes_never_get_a_name(self):
        self.hub.faults[WEIGHTS] = [{"flip": 100_000}] * 2
        self.refused("pull", REPO, says="has the digest")
        self.nothing_final()
        (self.model() / "blobs" / self.etag("config.json")).unlink()
        self.hub.faults["config.json"] = [{"flip": 1}] * 2
        self.refused("pull", REPO, says="config.json: what came has the digest")
        # A part that is someone else's.
        (self.model() / "blobs" / (self.etag(WEIGHTS) + ".incomplete")).write_bytes(b"x" * 1000)
        self.same(self.pull(REPO), FILES)

    def test_answers_that_are_not_what_was_promised(self):
        for name, headers, says in (
            (WEIGHTS, {"X_Linked_Etag": '"%s"' % ("0" * 64)}, "the hub's etag is"),
            ("config.json", {"ETag": 'W/"other"'}, "the hub's etag is 'other'"),
            (WEIGHTS, {"X_Linked_Size": "5"}, "the hub's size is '5'"),
            (WEIGHTS, {"X_Repo_Commit": "0" * 40}, "answers for commit"),
        ):
            with self.subTest(says, name=name):
                shutil.rmtree(self.home, ignore_errors=True)
                self.hub.file_headers = {name: headers}
                self.refused("pull", REPO, says=says)
                self.assertEqual(list((self.model() / "snapshots").iterdir()), [])

    def test_a_branch_that_moves_meanwhile(self):
        old = self.hub.models[REPO]["refs"]["main"]
        self.hub.faults[WEIGHTS] = [{"piece": 20_000, "pause": 0.02}]
        process = subprocess.Popen([PROGRAM, "pull", REPO], env={**os.environ, **self.env()}, stdout=subprocess.PIPE)
        while not self.hub.asked("cdn"):
            time.sleep(0.01)
        self.hub.add(REPO, {**FILES, "config.json": b"{}", WEIGHTS: b"y" * 20_000})
        out, _ = process.communicate(timeout=100)
        self.assertEqual(pathlib.Path(out.decode().strip()).name, old)
        self.assertEqual((self.model() / "refs/main").read_text(), old)

    def test_lists_that_lie(self):
        good = self.hub.change_entries
        for change, says in (
            ({"path": "../../x.json"}, "expected a path inside the model"),
            ({"path": "/etc/x.json"}, "expected a path inside the model"),
            ({"path": "a\nb.json"}, "expected a path inside the model"),
            ({"path": "a\u009b31m.json"}, "expected a path inside the model"),
            ({"path": "a\0.json"}, "expected a path inside the model"),
            ({"path": 5}, "'path' is 5"),
            ({"oid": "../../../x"}, "hexadecimal digits"),
            ({"lfs": {"oid": "a" * 40, "size": 1}}, "expected 64 hexadecimal digits"),
            ({"size": -1}, "'size' is -1"),
            ({"size": 1 << 60}, "'size' is"),
            ({"path": WEIGHTS}, "listed twice"),
        ):
            with self.subTest(says, change=change):
                entry = {"type": "file", "path": "x.json", "oid": "a" * 40, "size": 1, **change}
                self.hub.change_entries = lambda entries, entry=entry: [*entries, entry]
                self.refused("pull", REPO, says=says)
        self.hub.change_entries = good
        self.hub.faults["api"] = [{}, {"status": 200}]
        self.refused("pull", REPO, says="byte ")
        self.hub.change_entries = lambda entries: [entry if "lfs" in entry else {**entry, "size": 1 << 49} for entry in entries]
        self.refused("pull", REPO, says="are free")
        self.hub.change_entries = good
        self.hub.page_size = 2
        self.hub.next_page_host = self.hub.cdn.address
        self.refused("pull", REPO, says="expected an address of " + self.hub.address)
        self.assertFalse(self.cache.exists() and any(self.cache.glob("models--*/snapshots/*")))

    LYING_INDEXES = (
        b"{",
        b'{"weight_map": {}}',
        b'{"weight_map": {"a": 5}}',
        b'{"weight_map": {"a": "../../config.json"}}',
        b'{"weight_map": {"a": "none.safetensors"}}',
    )

    def test_loose_weights_come_where_the_index_lies(self):
        for index in self.LYING_INDEXES:
            with self.subTest(index):
                self.hub.add(REPO, {**FILES, "model.safetensors.index.json": index})
                self.pull(REPO)
                self.assertTrue(list(self.model().glob("snapshots/*/*.safetensors")))

    def test_indexes_that_lie_about_all_weights(self):
        files = {name: data for name, data in FILES.items() if not name.endswith(".safetensors")}
        for index in self.LYING_INDEXES:
            with self.subTest(index):
                self.hub.add(REPO, {**files, "model.safetensors.index.json": index})
                self.refused("pull", REPO, says="is broken, or names no file that the model holds")

    def test_links_in_the_cache_lead_nowhere(self):
        precious = self.write("precious", "x")
        (self.model() / "blobs").mkdir(parents=True)
        (self.model() / "blobs" / (self.etag(WEIGHTS) + ".incomplete")).symlink_to(precious)
        self.refused("pull", REPO, says="cannot be written")
        self.assertEqual(precious.read_text(), "x")

    def test_read_only_cache(self):
        if os.geteuid() == 0:
            self.skipTest("root writes anywhere")
        self.home.mkdir(mode=0o500)
        self.refused("pull", REPO, says="cannot be made")

    def test_a_disk_that_fills_up(self):
        size, there = len(FILES[WEIGHTS]), 100_000
        self.fails("pull", REPO, env=self.env(), largest_file=there, says="cannot be written: File too large")
        self.nothing_final()
        report = self.pull(REPO)
        self.same(report, FILES)
        self.assertEqual(report["received"], size - there)

    def test_two_processes(self):
        self.hub.faults[WEIGHTS] = [{"piece": 50_000, "pause": 0.02}] * 2
        processes = [subprocess.Popen([PROGRAM, "pull", REPO], env={**os.environ, **self.env()}, stdout=subprocess.PIPE) for _ in range(3)]
        paths = {process.communicate(timeout=100)[0] for process in processes}
        self.assertEqual([process.returncode for process in processes], [0, 0, 0])
        self.assertEqual(len(paths), 1)
        self.assertEqual(len(self.hub.asked("cdn", self.etag(WEIGHTS))), 1)
        self.same(self.pull(REPO), FILES)

    def test_killed_again_and_again(self):
        draw = random.Random(3)
        size = len(FILES[WEIGHTS])
        for attempt in range(12):
            self.hub.faults[WEIGHTS] = [{"piece": max(1, size // 40), "pause": 0.01}]
            process = subprocess.Popen([PROGRAM, "pull", REPO], env={**os.environ, **self.env()},
                                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            time.sleep(draw.uniform(0.02, 0.4))
            process.send_signal(signal.SIGKILL if attempt % 3 else signal.SIGINT)
            _, message = process.communicate(timeout=100)
            if process.returncode == 1:
                self.assertIn(b"error: interrupted", message)
            if process.returncode != 0 and self.model().exists():
                snapshots = list((self.model() / "snapshots").glob("*/config.json"))
                self.assertTrue(not snapshots or all(snapshots[0].with_name(name).exists() for name in FILES))
        self.hub.faults[WEIGHTS] = []
        self.same(self.pull(REPO), FILES)
        self.assertEqual([name for name in self.blobs() if "incomplete" in name], [])
