#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""EmbeddingGemma and all-MiniLM-L6-v2 through saker, against what sentence-transformers computed in float32
(embeddings.json):

  vectors  of the example of EmbeddingGemma's README and of other texts, up to the context's length: cosine at least 0.9999
  order    of the example's documents by similarity, and the similarities that the README gives, within 0.002
  bits     of a text alone and among others are the same

all-MiniLM-L6-v2 reads 256 tokens of a text; the last one is cut, as sentence-transformers does.

    check_embeddings.py --saker PROGRAM --models FOLDER [--record]

--record writes embeddings.json anew, with sentence-transformers (6.2.0). Ends with 'N passed, N failed'.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from models import fetch_embedder, fetch_encoder

RECORDED = pathlib.Path(__file__).parent / "embeddings.json"
LEAST_COSINE, LARGEST_DIFFERENCE = 0.9999, 0.002
QUERY = "Which planet is known as the Red Planet?"
DOCUMENTS = [
    "Venus is often called Earth's twin because of its similar size and proximity.",
    "Mars, known for its reddish appearance, is often referred to as the Red Planet.",
    "Jupiter, the largest planet in our solar system, has a prominent red spot.",
    "Saturn, famous for its rings, is sometimes mistaken for the Red Planet.",
]
README = [0.3011, 0.6359, 0.4930, 0.4889]
# The last two are longer than a window, one of them almost as long as the context.
OTHERS = [
    "", "a", "Der schnelle braune Fuchs springt über den faulen Hund. 素早い茶色の狐",
    " ".join(f"Sentence {i} says that planet {i * 7 % 13} has {i % 5} moons." for i in range(30)),
    " ".join(f"Sentence {i} says that planet {i * 7 % 13} has {i % 5} moons." for i in range(115)),
]
DIGITS = 6


class Checks:
    def __init__(self) -> None:
        self.passed = self.failed = 0

    def add(self, good: bool, text: str) -> None:
        self.passed, self.failed = self.passed + good, self.failed + (not good)
        print("ok  " if good else "FAIL", text, flush=True)


def embed(program: str, model: pathlib.Path, texts: list[str], *options: str) -> np.ndarray:
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "texts.jsonl"
        file.write_text("".join(json.dumps(text) + "\n" for text in texts))
        done = subprocess.run([program, "embed", str(model), "-f", str(file), "--json", *options],
                              capture_output=True, text=True, timeout=3600)
    if done.returncode != 0:
        raise SystemExit(f"saker embed: {done.stderr.strip()}")
    return np.array(json.loads(done.stdout)["embeddings"], np.float32)


def record(model: pathlib.Path, encoder: pathlib.Path) -> None:
    from sentence_transformers import SentenceTransformer  # Only here.
    truth, other = (SentenceTransformer(str(path), device="cpu") for path in (model, encoder))
    vectors = {"query": truth.encode_query([QUERY]), "documents": truth.encode_document(DOCUMENTS),
               "others": [truth.encode([text])[0] for text in OTHERS],
               "encoder": [other.encode([text])[0] for text in [QUERY, *DOCUMENTS, *OTHERS]]}
    rounded = {name: [[round(float(x), DIGITS) for x in row] for row in rows] for name, rows in vectors.items()}
    RECORDED.write_text(json.dumps(rounded, separators=(",", ":")) + "\n")


def check(checks: Checks, program: str, model: pathlib.Path, encoder: pathlib.Path) -> None:
    recorded = {name: np.array(rows) for name, rows in json.loads(RECORDED.read_text()).items()}
    cut = "--truncate"
    found = {"query": embed(program, model, [QUERY], "--prompt-name", "query"),
             "documents": embed(program, model, DOCUMENTS, "--prompt-name", "document"),
             "others": embed(program, model, OTHERS),
             "encoder": embed(program, encoder, [QUERY, *DOCUMENTS, *OTHERS], cut)}
    for name, rows in found.items():
        lengths = np.linalg.norm(rows, axis=-1) * np.linalg.norm(recorded[name], axis=-1)
        cosines = (rows * recorded[name]).sum(-1) / lengths
        checks.add(cosines.min() >= LEAST_COSINE, f"vectors of {name}: least cosine {cosines.min():.7f}")
    similarities = (found["documents"] @ found["query"][0]).tolist()
    order = [sorted(range(len(README)), key=lambda i: -row[i]) for row in (similarities, README)]
    checks.add(order[0] == order[1], f"order of documents: {order[0]}")
    difference = max(abs(a - b) for a, b in zip(similarities, README))
    checks.add(difference <= LARGEST_DIFFERENCE, f"similarities: {[round(x, 4) for x in similarities]}")
    for path, rows in ((model, found["others"]), (encoder, found["encoder"][-len(OTHERS):])):
        alone = [embed(program, path, [text], cut)[0] for text in OTHERS[1:4]]
        checks.add(bool((np.array(alone) == rows[1:4]).all()), f"bits of a text alone and among others: {path.name}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--saker", required=True)
    parser.add_argument("--models", type=pathlib.Path, required=True)
    parser.add_argument("--record", action="store_true", help="writes embeddings.json anew")
    args = parser.parse_args()
    model, encoder = fetch_embedder(args.models), fetch_encoder(args.models)
    if args.record:
        record(model, encoder)
    checks = Checks()
    check(checks, args.saker, model, encoder)
    print(f"{checks.passed} passed, {checks.failed} failed")
    return checks.failed > 0


if __name__ == "__main__":
    sys.exit(main())
