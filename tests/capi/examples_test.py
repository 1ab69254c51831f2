# SPDX-License-Identifier: Apache-2.0
"""The examples in C, Rust, Go and Node: each is built, streams the program's own answer and cancels another one."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = TOP / "examples"
QUESTION = [{"role": "user", "content": "What does a fox eat?"}]


def variable(name: str) -> pathlib.Path:
    return pathlib.Path(os.environ[name])


class Example(unittest.TestCase):
    model: pathlib.Path
    answer: str

    @classmethod
    def setUpClass(cls) -> None:
        cls.library = variable("SAKER_C_LIBRARY")
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.model = cls.folder / "model"
        cls.model.mkdir()
        for file in (TOP / "models/demo").iterdir():
            (cls.model / file.name).symlink_to(file)
        config = json.loads((cls.model / "config.json").read_text())
        (cls.model / "config.json").unlink()
        config["max_position_embeddings"] = 1 << 20  # An endless answer lasts until it is cancelled.
        (cls.model / "config.json").write_text(json.dumps(config))
        record = cls.folder / "record.jsonl"
        record.write_text(json.dumps({"messages": QUESTION}))
        command = [os.environ["SAKER_PROGRAM"], "generate", str(cls.model), "-f", str(record)]
        cls.answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["content"]

    def ran(self, *command: str | pathlib.Path, **variables: str | pathlib.Path) -> subprocess.CompletedProcess[str]:
        cwd = variables.pop("cwd", None)
        environment = {**os.environ, **{name: str(value) for name, value in variables.items()}}
        done = subprocess.run(
            [str(part) for part in command], capture_output=True, text=True, check=False, env=environment, cwd=cwd, timeout=240
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def check(self, *command: str | pathlib.Path, **variables: str | pathlib.Path) -> None:
        done = self.ran(*command, self.model, **variables)
        first, second = (json.loads(line)["result"] for line in done.stderr.splitlines())
        self.assertEqual(done.stdout, f"{self.answer}\n{second['text']}\n")
        self.assertEqual((first["content"], first["finish_reason"]), (self.answer, "stop"))
        self.assertEqual(second["finish_reason"], "cancelled")
        self.assertGreater(len(second["tokens"]), 0)

    def link(self) -> list[str]:
        return [f"-L{self.library.parent}", f"-Wl,-rpath,{self.library.parent}"]

    def test_c(self) -> None:
        program = self.folder / "stream"
        flags = ["-x", "c", "-std=c11", "-pedantic", "-Wall", "-Wextra", "-Werror", f"-I{TOP / 'include'}"]
        self.ran(os.environ["SAKER_COMPILER"], *flags, EXAMPLES / "c/stream.c", *self.link(), "-lsaker_c", "-o", program)
        self.check(program)

    def test_rust(self) -> None:
        program = self.folder / "stream"
        linked = [f"-Clink-arg={argument}" for argument in self.link()]
        self.ran(os.environ["SAKER_RUSTC"], "--edition", "2024", "-Dwarnings", EXAMPLES / "rust/stream.rs", *linked, "-o", program)
        self.check(program)

    def test_go(self) -> None:
        program = self.folder / "stream"
        self.ran(
            os.environ["SAKER_GO"], "build", "-o", program, ".", cwd=EXAMPLES / "go",
            GOTOOLCHAIN="local", GOPROXY="off", GOFLAGS="-buildvcs=false", CGO_ENABLED="1", GOCACHE=variable("SAKER_BUILT") / "go",
            CGO_CFLAGS=f"-I{TOP / 'include'}", CGO_LDFLAGS=" ".join(self.link()), CC="cc",
        )
        self.check(program)

    def test_node(self) -> None:
        shutil.copy(EXAMPLES / "node/stream.js", self.folder)
        shutil.copy(EXAMPLES / "node/package.json", self.folder)
        (self.folder / "node_modules").symlink_to(variable("SAKER_NODE_PACKAGES") / "node_modules")
        self.check("node", self.folder / "stream.js", SAKER_LIBRARY=self.library)


if __name__ == "__main__":
    unittest.main()
