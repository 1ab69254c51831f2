# SPDX-License-Identifier: Apache-2.0
"""Turn a training folder into a model folder: `python export.py TRAINING_DIR MODEL_DIR`.

Matrices become 8-bit MLX affine weights in groups of 64, norms bfloat16; names and config follow mlx-lm, which loads
the result. The model card (README.md) is not touched.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import mlx.core as mx
import torch
from data import CHAT_TEMPLATE, END, END_OF_TEXT, SPECIAL
from tokenizers import Tokenizer

QUANTIZATION = {"group_size": 64, "bits": 8, "mode": "affine"}


def quantized(weights: dict[str, torch.Tensor]) -> dict[str, mx.array]:
    out = {}
    for name, tensor in weights.items():
        array = mx.array(tensor.float().numpy()).astype(mx.bfloat16)
        if array.ndim == 2:
            base = name.removesuffix(".weight")
            parts = mx.quantize(array, **QUANTIZATION)
            out |= {f"{base}.{part}": value for part, value in zip(("weight", "scales", "biases"), parts, strict=True)}
        else:
            out[name] = array
    return out


def config(shape: dict, tokenizer: Tokenizer) -> dict:
    ids = {token: tokenizer.token_to_id(token) for token in SPECIAL}
    return {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        **shape,
        "hidden_act": "silu",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "tie_word_embeddings": True,
        "rope_scaling": None,
        "use_sliding_window": False,
        "bos_token_id": None,
        "eos_token_id": ids[END],
        "pad_token_id": ids[END_OF_TEXT],
        "torch_dtype": "bfloat16",
        "quantization": QUANTIZATION,
        "quantization_config": QUANTIZATION,
    }


def write_json(path: Path, value: dict) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n")


def export(training: Path, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    state = torch.load(training / "checkpoint.pt")
    tokenizer = Tokenizer.from_file(str(training / "tokenizer.json"))
    mx.save_safetensors(str(out / "model.safetensors"), quantized(state["model"]), metadata={"format": "mlx"})
    write_json(out / "config.json", config(state["shape"], tokenizer))
    (out / "tokenizer.json").write_text(json.dumps(json.loads(tokenizer.to_str()), indent=1, ensure_ascii=False) + "\n")
    write_json(
        out / "tokenizer_config.json",
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": state["shape"]["max_position_embeddings"],
            "bos_token": None,
            "eos_token": END,
            "pad_token": END_OF_TEXT,
            "unk_token": None,
            "add_bos_token": False,
            "clean_up_tokenization_spaces": False,
            "chat_template": CHAT_TEMPLATE,
        },
    )
    stops = [tokenizer.token_to_id(END), tokenizer.token_to_id(END_OF_TEXT)]
    write_json(
        out / "generation_config.json",
        {"eos_token_id": stops, "pad_token_id": stops[1], "do_sample": False},
    )
    print(f"{out}: {sum(f.stat().st_size for f in out.iterdir())} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("training", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    export(options.training, options.out)


if __name__ == "__main__":
    main()
