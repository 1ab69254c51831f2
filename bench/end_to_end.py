#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time saker, and llama.cpp beside it, on models of one shape; print a Markdown table, draw a plot.

    bench/end_to_end.py --saker build/release/saker --model q4=DIR [--model bf16=DIR ...]
                        [--peer q4=FILE.gguf ...] [--rounds 3] [--threads 2] [--out docs/performance/NAME]
    bench/end_to_end.py --from docs/performance/NAME.json [--out docs/performance/NAME]

A model is a folder that saker loads, a peer a GGUF file of the same shape and width. Cases: prompts of 512 and of 4096
tokens, answers of 32 after 512 and after 4096, eight sequences of 512. Rounds alternate between all programs, so that a
machine that slows down slows all of them. Each figure is min / median / max over the rounds, in tokens a second. llama.cpp
runs with flash attention and without; its better figure counts. With --out, OUT.json keeps every run and OUT.svg is the plot;
--from makes the table and the plot of such a file again.
Needs for peers: pip install llama-cpp-python numpy; for --out: matplotlib.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

# name -> prompt, answer, sequences
CASES = {"512": (512, 32, 1), "4096": (4096, 32, 1), "8 x 512": (512, 32, 8)}


def time_peer(path: str, prompt: int, steps: int, batch: int, threads: int, flash: int) -> dict:
    """One warmed prefill and decode of llama.cpp."""
    import llama_cpp as ll
    import numpy as np

    ll.llama_backend_init()
    model = ll.llama_model_load_from_file(path.encode(), ll.llama_model_default_params())
    params = ll.llama_context_default_params()
    params.n_ctx, params.n_batch, params.n_ubatch, params.n_seq_max = (prompt + steps + 64) * batch, 2048, 512, batch
    params.n_threads = params.n_threads_batch = threads
    params.flash_attn_type = flash
    context = ll.llama_init_from_model(model, params)
    ids = np.random.default_rng(0).integers(0, 32000, (batch, prompt + steps))

    def run(rows: list[tuple[int, int, int]]) -> None:  # token, position, sequence
        tokens = ll.llama_batch_init(len(rows), 0, 1)
        tokens.n_tokens = len(rows)
        for i, (token, position, sequence) in enumerate(rows):
            tokens.token[i], tokens.pos[i], tokens.n_seq_id[i] = int(token), position, 1
            tokens.logits[i] = i + 1 == len(rows) or len(rows) == batch
            tokens.seq_id[i][0] = sequence
        if ll.llama_decode(context, tokens):
            raise RuntimeError("llama_decode failed")
        ll.llama_batch_free(tokens)

    def fill() -> float:
        ll.llama_memory_clear(ll.llama_get_memory(context), True)
        start = time.perf_counter()
        for s in range(batch):
            for first in range(0, prompt, 2048):
                run([(ids[s, i], i, s) for i in range(first, min(prompt, first + 2048))])
        return time.perf_counter() - start

    fill()
    prefill = fill()
    start = time.perf_counter()
    for i in range(prompt, prompt + steps):
        run([(ids[s, i], i, s) for s in range(batch)])
    return {"prompt": prompt * batch / prefill, "answer": steps * batch / (time.perf_counter() - start)}


def child(command: list) -> dict:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=1800)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed: {done.stderr[-400:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def run_saker(saker: str, model: str, case: tuple, threads: int) -> dict:
    prompt, steps, batch = case
    sizes = ["-p", prompt, "-n", steps, "-b", batch, "--threads", threads]
    got = child([saker, "bench", model, *sizes, "-r", 1, "--json"])
    rates = {"prompt": got["prompt_tps"]["median"], "answer": got["generation_tps"]["median"]}
    return rates | {"limits": got["limits"], "instruction_set": got["model"]["instruction_set"]}


def run_peer(path: str, case: tuple, threads: int) -> dict:
    both = [child([sys.executable, __file__, "--time-peer", path, *case, threads, flash]) for flash in (0, 1)]
    return {key: max(run[key] for run in both) for key in both[0]}


def measure(args: argparse.Namespace) -> list[dict]:
    peers = dict(peer.split("=", 1) for peer in args.peer)
    runs = []
    for round_number in range(args.rounds):
        for name, model in (model.split("=", 1) for model in args.model):
            for case, sizes in CASES.items():
                print(f"round {round_number + 1} of {args.rounds}: {name}, {case}", file=sys.stderr)
                row = {"width": name, "case": case}
                runs.append(row | {"program": "saker"} | run_saker(args.saker, model, sizes, args.threads))
                if name in peers:
                    runs.append(row | {"program": "llama.cpp"} | run_peer(peers[name], sizes, args.threads))
    return runs


def spread(runs: list[dict], key: str) -> str:
    values = [run[key] for run in runs]
    return f"{min(values):.3g} / {statistics.median(values):.3g} / {max(values):.3g}" if values else "-"


def table(runs: list[dict]) -> str:
    lines = ["| width | case | saker | llama.cpp | ratio |", "|---|---|---|---|---|"]
    for width, case in dict.fromkeys((run["width"], run["case"]) for run in runs):
        for key in ("prompt", "answer"):
            both = [
                [r for r in runs if (r["width"], r["case"], r["program"]) == (width, case, program)]
                for program in ("saker", "llama.cpp")
            ]
            medians = [statistics.median(r[key] for r in rows) for rows in both if rows]
            ratio = f"{medians[0] / medians[1]:.2f}" if len(medians) == 2 else "-"
            lines.append(f"| {width} | {key}, {case} | {spread(both[0], key)} | {spread(both[1], key)} | {ratio} |")
    return "\n".join(lines)


def plot(runs: list[dict], path: str) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "saker"})
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    bars = list(dict.fromkeys((run["width"], run["case"]) for run in runs))
    for axis, key in zip(axes, ("prompt", "answer")):
        for offset, program in ((-0.2, "saker"), (0.2, "llama.cpp")):
            for i, bar in enumerate(bars):
                values = [r[key] for r in runs if (r["width"], r["case"]) == bar and r["program"] == program]
                if values:
                    middle = statistics.median(values)
                    ends = [[middle - min(values)], [max(values) - middle]]
                    color, label = ("C0" if program == "saker" else "C1"), (program if i == 0 else None)
                    axis.bar(i + offset, middle, 0.4, yerr=ends, color=color, label=label, ecolor="0.3", capsize=2)
        axis.set_xticks(range(len(bars)), [f"{width}\n{case}" for width, case in bars], fontsize=8)
        axis.set_title(f"{key}, tokens a second (median, minimum to maximum)", fontsize=10)
        axis.spines[["top", "right"]].set_visible(False)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--saker")
    parser.add_argument("--model", action="append", default=[])
    parser.add_argument("--peer", action="append", default=[])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out")
    parser.add_argument("--from", dest="earlier")
    args = parser.parse_args()
    if not args.earlier and not (args.saker and args.model):
        parser.error("expected --saker and --model, or --from")
    if args.out:
        import matplotlib  # noqa: F401  Its absence shows before hours of measuring.
    runs = json.loads(pathlib.Path(args.earlier).read_text()) if args.earlier else measure(args)
    limits = [run["limits"] for run in runs if "limits" in run]
    print(table(runs))
    for name in limits[0]:
        print(f"\n{name}: {spread(limits, name)}", end="")
    print(f"\n\ninstruction set: {next(run['instruction_set'] for run in runs if 'instruction_set' in run)}")
    if args.out:
        pathlib.Path(args.out + ".json").write_text(json.dumps(runs, indent=1) + "\n")
        plot(runs, args.out + ".svg")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--time-peer"]:
        print(json.dumps(time_peer(sys.argv[2], *map(int, sys.argv[3:8]))))
    else:
        main()
