#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compare two builds of saker bit by bit: `tools/check_same_bits.py OLD NEW`, two programs.

Both run the models of tests/golden and models/ with each instruction set that this processor has: logits, scores, sampled
answers alone and in a batch, answers over quantized and saved caches, drafted answers, adapters. What differs is named;
the exit code is 1 then. For changes that shall keep every bit.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "golden"
DEMO = ROOT / "models" / "demo"
DRAFTS = ROOT / "models" / "demo-drafts"

# Ids of the smallest vocabulary.
PROMPT = ",".join(str((i * 31 + 7) % 64) for i in range(70))
SHORT = ",".join(str((i * 17 + 3) % 64) for i in range(9))
STORY = "Once upon a time there was a little fox who lived in"
SAMPLED = ("--temp", "0.9", "--top-p", "0.95", "--seed", "7")
ANSWER = ("-n", "40", "--ignore-eos", "--logprobs", "2", "--json")
ADAPTERS = {
    "mlx_dora": "llama_bias",
    "mlx_dora_q8": "qwen3_q8",
    "mlx_lora_moe": "qwen3_moe",
    "mlx_lora_q4": "qwen3_q4",
    "peft_gemma3": "gemma3",
    "peft_llama": "llama",
    "peft_qwen2": "qwen2",
}
# Times and memory differ from run to run, and a file's fingerprint may hold the program's own.
VOLATILE = {"stats"}


@dataclass(frozen=True)
class Case:
    """Commands that run one after the other in one folder. All that they print and the `files` are compared."""

    name: str
    commands: tuple[tuple[str, ...], ...]
    files: tuple[str, ...] = ()


def scored(name: str, model: Path, *options: str) -> Case:
    command = ("score", str(model), "--tokens", PROMPT, "--json", "--logits", "logits.safetensors", *options)
    return Case(f"{name} score {' '.join(options)}".rstrip(), (command,), ("logits.safetensors",))


def answered(name: str, model: Path, *options: str, prompt: tuple[str, ...] = ("--tokens", PROMPT)) -> Case:
    command = ("generate", str(model), *prompt, *ANSWER, *options)
    return Case(f"{name} generate {' '.join(options)}".rstrip(), (command,))


def batch(name: str, model: Path) -> Case:
    command = ("generate", str(model), "-f", "records.jsonl", "--ignore-eos", "--logprobs", "1", *SAMPLED)
    return Case(f"{name} batch", (command,))


def resumed(name: str, model: Path) -> Case:
    save = ("cache", "save", str(model), "--tokens", PROMPT, "-o", "cache.safetensors")
    answer = ("generate", str(model), "--tokens", SHORT, "--cache-in", "cache.safetensors", *ANSWER)
    return Case(f"{name} saved cache", (save, answer))


def model_cases(name: str, model: Path) -> list[Case]:
    cases = [scored(name, model), answered(name, model, *SAMPLED), batch(name, model), resumed(name, model)]
    cases += [answered(name, model, "--kv-bits", bits) for bits in ("4", "8", "32")]
    return [*cases, answered(name, model, "--speculate", "prompt-lookup"), answered(name, model, "--prefill-step", "16")]


def drafted_cases() -> list[Case]:
    story = ("-p", STORY)
    kinds = {"draft": DRAFTS / "small", "mtp": DRAFTS / "mtp", "eagle3": DRAFTS / "eagle3", "dflash": DEMO / "draft"}
    cases = [answered(f"demo {kind}", DEMO, "--draft", str(draft), "--speculate", kind, *SAMPLED, prompt=story) for kind, draft in kinds.items()]
    for family in ("dflash", "assistant"):
        for draft in sorted((GOLDEN / family).iterdir()):
            if draft.name != "target":
                cases.append(answered(f"{family}/{draft.name}", GOLDEN / family / "target", "--draft", str(draft)))
    for draft in sorted((GOLDEN / "eagle3").iterdir()):
        cases.append(answered(f"eagle3/{draft.name}", draft / "target", "--draft", str(draft)))
    return cases


def adapter_cases() -> list[Case]:
    cases = []
    for adapter, model in ADAPTERS.items():
        options = ("--adapter", str(GOLDEN / "adapters" / adapter))
        cases += [scored(f"adapters/{adapter}", GOLDEN / model, *options), answered(f"adapters/{adapter}", GOLDEN / model, *options)]
    return cases


def is_target(folder: Path) -> bool:
    kind = folder.relative_to(GOLDEN).parts[0]
    return kind not in ("adapters", "dflash", "eagle3", "assistant", "embedding") or folder.name == "target"


def embedding_cases() -> list[Case]:
    models = (folder for folder in sorted((GOLDEN / "embedding").iterdir()) if (folder / "modules.json").exists())
    return [Case(f"embedding/{folder.name}", (("embed", str(folder), STORY, "--truncate"),)) for folder in models]


def all_cases() -> list[Case]:
    targets = [file.parent for file in sorted(GOLDEN.glob("**/config.json")) if is_target(file.parent)]
    cases = [case for folder in targets for case in model_cases(str(folder.relative_to(GOLDEN)), folder)]
    return [*cases, *model_cases("demo", DEMO), *drafted_cases(), *adapter_cases(), *embedding_cases()]


def instruction_sets(program: Path) -> list[str]:
    done = run(program, ("generate", str(DEMO), "-p", "a", "-n", "1"), Path.cwd(), "none")
    found = re.search(r"this processor can run (.*)", done.stderr)
    if not found:
        sys.exit(f"error: {program} names no instruction sets: {done.stderr.strip()}")
    return found.group(1).split(", ")


def run(program: Path, command: tuple[str, ...], folder: Path, instruction_set: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "SAKER_CPU": instruction_set, "SAKER_LOG": "off", "XDG_CONFIG_HOME": str(folder)}
    return subprocess.run([program, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False)


def stable(value: object) -> object:
    if isinstance(value, dict):
        return {key: stable(item) for key, item in value.items() if key not in VOLATILE}
    return [stable(item) for item in value] if isinstance(value, list) else value


def stable_text(output: str) -> str:
    try:
        return "\n".join(json.dumps(stable(json.loads(line))) for line in output.splitlines())
    except json.JSONDecodeError:
        return output


def outcome(program: Path, case: Case, instruction_set: str) -> tuple[str, bool]:
    """A hash of all that the case gave, and whether each command succeeded."""
    digest = hashlib.sha256()
    succeeded = True
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        records = [{"id": i, "tokens": [(i * 13 + t * 7) % 64 for t in range(3 + 11 * i)], "max_tokens": 20} for i in range(6)]
        (folder / "records.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
        for command in case.commands:
            done = run(program, command, folder, instruction_set)
            succeeded = succeeded and done.returncode == 0
            digest.update(f"{done.returncode}\n{stable_text(done.stdout)}\n".encode())
            digest.update(done.stderr.replace(name, "").encode())
        for file in case.files:
            digest.update((folder / file).read_bytes() if (folder / file).exists() else b"missing")
    return digest.hexdigest(), succeeded


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path, help="a saker program")
    parser.add_argument("new", type=Path, help="another one")
    parser.add_argument("--only", default="", help="cases whose names contain this")
    options = parser.parse_args()
    old, new = options.old.resolve(), options.new.resolve()
    cases = [case for case in all_cases() if options.only in case.name]
    sets = [name for name in instruction_sets(new) if name in instruction_sets(old)]
    jobs = [(case, instruction_set) for instruction_set in sets for case in cases]

    def compare(job: tuple[Case, str]) -> tuple[bool, bool]:
        (before, _), (after, succeeded) = outcome(old, *job), outcome(new, *job)
        return before == after, succeeded

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(compare, jobs))
    for (case, instruction_set), (same, succeeded) in zip(jobs, results, strict=True):
        if not same:
            print(f"differs: {instruction_set}: {case.name}")
        elif not succeeded:
            print(f"fails: {instruction_set}: {case.name}")
    good = sum(same and succeeded for same, succeeded in results)
    print(f"{good} of {len(jobs)} the same over {', '.join(sets)}")
    return 0 if jobs and good == len(jobs) else 1


if __name__ == "__main__":
    sys.exit(main())
