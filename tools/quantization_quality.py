#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Perplexity of small models in every quantized format, by saker and by mlx-lm on the same windows, as a table in Markdown.

    python tools/quantization_quality.py --saker build/release/saker [--model NAME=FOLDER[:SEPARATOR] ...]

Without --model: the demo model. The text is short stories of tools/demo_model, each behind SEPARATOR (<|endoftext|>). Each
row is `saker convert` with the options that it names, from float weights: a model that is quantized is dequantized first.
Perplexity with its standard error is of windows of 256 tokens side by side; mlx-lm's is its `mlx_lm.perplexity.eval_ppl` of
the folder that saker wrote, in the dtype of the folder.
Needs: mlx[cpu]==0.32.4 mlx-lm==0.32.2
"""
import argparse
import contextlib
import io
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import mlx.core as mx
import numpy as np
from mlx_lm.perplexity import eval_ppl
from mlx_lm.utils import load_model

ROOT = pathlib.Path(__file__).resolve().parents[1]
DEMO = ROOT / "tools" / "demo_model"
WINDOW = 256
WINDOWS = 6
MODES = [[], *(["--bits", str(b), "--group-size", str(g)] for b in (8, 6, 5, 4, 3, 2) for g in (32, 64))]
MODES += [["--mode", mode] for mode in ("mxfp8", "mxfp4", "nvfp4")]
MODES += [["--recipe", recipe, "--group-size", "32"] for recipe in ("mixed_4_6", "mixed_3_6", "mixed_3_4", "mixed_2_6")]

mx.set_default_device(mx.cpu)


def stories(separator):
    """Short stories as the demo model was told, from another seed."""
    sys.path.insert(0, str(DEMO))
    import stories as told  # pylint: disable=import-outside-toplevel
    from topics import TOPICS  # pylint: disable=import-outside-toplevel

    rng = random.Random(11)
    things = [thing for topic in TOPICS for thing in topic.things]
    return "".join(f"{separator}{told.story(rng, rng.choice(things))}" for _ in range(600))


def saker(program, *arguments):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{program} {arguments[0]} failed: {done.stderr.strip()}")
    return json.loads(done.stdout)


def windows_of(program, model, text, folder):
    """Ids of the text, cut into windows."""
    file = folder / "text.txt"
    file.write_text(text)
    ids = saker(program, "tokenize", model, "-f", file, "--no-special", "--json")["tokens"]
    ids = ids[: len(ids) // WINDOW * WINDOW][: WINDOW * WINDOWS]
    file = folder / "ids.jsonl"
    file.write_text(json.dumps({"tokens": ids}) + "\n")
    return file, mx.array(np.array(ids).reshape(-1, WINDOW))


def of_mlx_lm(folder, data):
    model, _ = load_model(folder)
    with contextlib.redirect_stdout(io.StringIO()):
        return eval_ppl(model, data)[0]


def rows(program, source, text, folder):
    config = json.loads((source / "config.json").read_text())
    plain = folder / "plain"
    saker(program, "convert", source, plain, "--json", *(["--dequantize"] if "quantization" in config else []))
    ids, data = windows_of(program, plain, text, folder)
    for number, mode in enumerate(MODES):
        out = folder / f"mode{number}"
        report = saker(program, "convert", plain, out, "--json", *mode)
        ours = saker(program, "perplexity", out, "-f", ids, "--context", WINDOW, "--json")
        yield mode, report["bits_per_weight"], ours["perplexity"], ours["standard_error"], of_mlx_lm(out, data)


def print_table(program, name, source, text):
    print(f"\n### {name}\n\n| `saker convert` | bits a weight | saker | over floats | mlx-lm |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        first = None
        for mode, bits, ours, error, theirs in rows(program, source, text, pathlib.Path(folder)):
            first = first or ours
            label = f"`{' '.join(mode)}`" if mode else "floats"
            print(f"| {label} | {bits:.2f} | {ours:.4f} ± {error:.3f} | {100 * (ours / first - 1):+.2f} % | {theirs:.4f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--saker", required=True, metavar="PROGRAM")
    parser.add_argument("--model", action="append", metavar="NAME=FOLDER[:SEPARATOR]")
    arguments = parser.parse_args()
    for model in arguments.model or [f"demo={ROOT / 'models' / 'demo'}"]:
        name, _, place = model.partition("=")
        folder, _, separator = place.partition(":")
        print_table(arguments.saker, name, pathlib.Path(folder), stories(separator or "<|endoftext|>"))


if __name__ == "__main__":
    main()
