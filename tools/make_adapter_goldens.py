#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the adapters of tests/golden/adapters and what they compute in float32.

    python tools/make_adapter_goldens.py [NAME ...] [--out tests/golden/adapters]

Each folder holds an adapter with random weights for one of the checkpoints of tests/golden, as the tool that it is named
after writes it, and golden.safetensors:

    ids      int32 [T]        the tokens
    logits   float32 [T, V]   after each of them, with the adapter

The reference is mlx-lm or transformers with PEFT.
Needs: mlx[cpu]==0.32.4 mlx-lm==0.32.2 transformers torch peft numpy
"""
import argparse
import json
import pathlib
import shutil
import tempfile

import make_goldens as goldens
import mlx.core as mx
import numpy as np
from mlx.utils import tree_flatten, tree_unflatten

TOKENS = 12
GOLDEN = pathlib.Path(__file__).parent.parent / "tests/golden"
LINEAR = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
ATTENTION = LINEAR[:4]
KEYS = [f"self_attn.{name}" for name in ATTENTION] + [f"mlp.{name}" for name in LINEAR[4:]]
EXPERTS = ["self_attn.v_proj"] + [f"mlp.switch_mlp.{name}" for name in LINEAR[4:]]
LORA = dict(r=4, lora_alpha=6, target_modules=LINEAR)


def mlx(kind="lora", layers=2, keys=KEYS):
    return dict(fine_tune_type=kind, num_layers=layers, lora_parameters=dict(rank=4, scale=1.5, dropout=0.0, keys=keys))


# name: (checkpoint, mlx-lm's configuration), or (checkpoint, PEFT's arguments, options)
MLX = {
    "mlx_lora": ("qwen3", mlx()),
    "mlx_lora_last": ("llama", mlx(layers=1)),
    "mlx_lora_embedding": ("qwen3", mlx(keys=["self_attn.v_proj", "model.embed_tokens"])),
    "mlx_lora_head": ("llama", mlx(keys=["self_attn.v_proj", "lm_head"])),
    "mlx_lora_q4": ("qwen3_q4", mlx()),
    "mlx_lora_moe": ("qwen3_moe", mlx(layers=3, keys=KEYS + ["mlp.gate"])),
    "mlx_lora_experts": ("qwen3_moe", mlx(layers=3, keys=EXPERTS)),
    "mlx_lora_experts_q4": ("qwen3_moe_q4", mlx(keys=EXPERTS)),
    "mlx_lora_experts_single": ("qwen3_moe_single", mlx(keys=EXPERTS[:2])),
    "mlx_lora_layer_inputs": ("gemma4_small", mlx(layers=6, keys=[
        "self_attn.q_proj", "self_attn.v_proj", "per_layer_input_gate", "per_layer_projection",
        "model.per_layer_model_projection", "model.embed_tokens_per_layer"])),
    "mlx_dora": ("llama_bias", mlx("dora")),
    "mlx_dora_q8": ("qwen3_q8", mlx("dora")),
    "mlx_dora_embedding": ("qwen3", mlx("dora", keys=["self_attn.v_proj", "model.embed_tokens"])),
}
PEFT = {
    **{f"peft_{name}": (name, dict(LORA), {}) for name in ("llama", "qwen3", "mistral", "gemma2", "gemma3")},
    "peft_qwen2": ("qwen2", dict(LORA, use_rslora=True), {}),
    "peft_moe": ("qwen3_moe", dict(LORA, target_modules=ATTENTION), {}),
    "peft_gemma": ("gemma", dict(LORA, target_modules=LINEAR + ["embed_tokens"]), {}),
    "peft_patterns": ("qwen3", dict(LORA, rank_pattern={"q_proj": 2, "layers.1.mlp.up_proj": 6},
                                    alpha_pattern={"v_proj": 9, "0.mlp.down_proj": 3}), {}),
    "peft_layers": ("llama", dict(LORA, layers_to_transform=[1], fan_in_fan_out=True), {}),
    "peft_embedding": ("qwen3", dict(LORA, target_modules=["q_proj", "embed_tokens"]), {}),
    "peft_head": ("qwen3", dict(LORA, target_modules=["q_proj", "lm_head"]), {}),
    "peft_saved": ("llama", dict(LORA, modules_to_save=["embed_tokens", "lm_head"]), {}),
    "peft_saved_layer": ("llama_bias", dict(LORA, target_modules=ATTENTION, modules_to_save=["down_proj"]), {}),
    "peft_lora_bias": ("llama_bias", dict(LORA, lora_bias=True), {}),
    "peft_bias_all": ("llama_bias", dict(LORA, target_modules=["q_proj"], bias="all"), {}),
    "peft_bias_own": ("qwen2", dict(LORA, bias="lora_only"), {}),
    "peft_dora": ("llama_bias", dict(LORA, use_dora=True), {}),
    "peft_dora_rs": ("llama", dict(LORA, use_dora=True, use_rslora=True), {}),
    "peft_dora_embedding": ("qwen3", dict(LORA, target_modules=["v_proj", "embed_tokens"], use_dora=True), {}),
    "peft_norms": ("qwen3", dict(LORA, target_modules=["v_proj"], layers_to_transform=[1],
                                 modules_to_save=["norm", "input_layernorm", "post_attention_layernorm", "q_norm", "k_norm"]), {}),
    "peft_gemma_norms": ("gemma3", dict(LORA, target_modules=["q_proj"], modules_to_save=["norm", "pre_feedforward_layernorm"]), {}),
    "peft_final_norm": ("llama", dict(LORA, target_modules=["lm_head"], modules_to_save=["norm"]), {}),
    "peft_nested": ("gemma3_nested", dict(LORA, target_modules=ATTENTION), dict(prefix="language_model.")),
    # Of a base with added tokens, and one with fewer.
    "peft_resized": ("llama", dict(LORA, target_modules=ATTENTION), dict(tokens=101)),
    "peft_resized_embedding": ("qwen3", dict(LORA, target_modules=["q_proj", "embed_tokens"]), dict(tokens=101)),
    "peft_resized_tied": ("qwen3", dict(LORA, target_modules=["q_proj"]), dict(tokens=91)),
}


def checkpoint(name):
    folder = GOLDEN / name
    return json.loads((folder / "config.json").read_text()), mx.load(str(folder / "model.safetensors"))


def noise(rng, shape, name):
    """Values that change the logits clearly, but leave norms and magnitudes near their own."""
    return rng.standard_normal(shape).astype(np.float32) * (0.3 if "lora_" in name.lower() else 0.1)


def make_mlx(name, out, rng):
    from mlx_lm.tuner.utils import linear_to_lora_layers, load_adapters
    base, settings = MLX[name]
    config, weights = checkpoint(base)

    def fresh():
        model = goldens.mlx_model(config)
        if config.get("quantization"):
            options = goldens.CASES[base][2]
            goldens.quantize(model, dict(config), options["bits"], options.get("wide", ""))
        if hasattr(model, "sanitize"):
            model.load_weights(list(model.sanitize(dict(weights)).items()))
        model.set_dtype(mx.float32)
        return model

    model = fresh()
    linear_to_lora_layers(model, settings["num_layers"], settings["lora_parameters"],
                          use_dora=settings["fine_tune_type"] == "dora")
    adapter = {}
    for path, value in tree_flatten(model.parameters()):
        last = path.rsplit(".", 1)[-1]
        if last in ("lora_a", "lora_b"):
            adapter[path] = mx.array(noise(rng, value.shape, path))
        elif last == "m":
            adapter[path] = value * mx.array(1.0 + noise(rng, value.shape, path))
    model.update(tree_unflatten(list(adapter.items())))
    mx.save_safetensors(str(out / "adapters.safetensors"), adapter)
    (out / "adapter_config.json").write_text(json.dumps(settings, indent=1) + "\n")
    model = load_adapters(fresh(), str(out))
    return config, lambda ids: np.array(model(mx.array([ids])))[0]


def make_peft(name, out, rng):
    import torch
    from peft import LoraConfig, PeftModel, get_peft_model
    from safetensors.torch import load_file, save_file
    base, settings, options = PEFT[name]
    config, weights = checkpoint(base)

    def fresh():
        model = goldens.hf_model(config, weights)
        if "tokens" in options:
            model.resize_token_embeddings(options["tokens"], mean_resizing=False)
        return model

    torch.manual_seed(0)
    base_model = fresh()
    if "tokens" in options:
        with torch.no_grad():
            for layer in {base_model.get_input_embeddings(), base_model.get_output_embeddings()}:
                layer.weight += torch.tensor(noise(rng, tuple(layer.weight.shape), "embedding"))
    model = get_peft_model(base_model, LoraConfig(**settings))
    with torch.no_grad():
        for path, value in model.named_parameters():
            changed = torch.tensor(noise(rng, tuple(value.shape), path))
            if "lora_magnitude" in path:
                value *= 1.0 + changed
            elif "lora_" in path:
                value.copy_(changed)
            elif value.requires_grad:  # Saved modules and biases.
                value += changed
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder, save_embedding_layers=True if "tokens" in options else "auto")
        for file in ("adapter_config.json", "adapter_model.safetensors"):
            shutil.copy(pathlib.Path(folder) / file, out / file)
    model = PeftModel.from_pretrained(fresh(), str(out)).float().eval()
    if "prefix" in options:
        tensors = load_file(out / "adapter_model.safetensors")
        start = "base_model.model."
        save_file({start + options["prefix"] + k.removeprefix(start): v for k, v in tensors.items()},
                  out / "adapter_model.safetensors")

    def run(ids):
        with torch.no_grad():
            return model(torch.tensor([ids]), use_cache=False).logits[0].numpy()

    return config, run


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--out", type=pathlib.Path, default=GOLDEN / "adapters")
    args = parser.parse_args()
    for number, name in enumerate([*MLX, *PEFT]):
        if args.names and name not in args.names:
            continue
        out = args.out / name
        out.mkdir(parents=True, exist_ok=True)
        rng = np.random.default_rng(number)
        config, run = (make_mlx if name in MLX else make_peft)(name, out, rng)
        vocab = PEFT.get(name, [{}])[-1].get("tokens") or config.get("vocab_size") or config["text_config"]["vocab_size"]
        ids = rng.integers(0, vocab, TOKENS).tolist()
        mx.save_safetensors(str(out / "golden.safetensors"),
                            {"ids": mx.array(ids, mx.int32), "logits": mx.array(run(ids))})
        size = sum(file.stat().st_size for file in out.iterdir())
        print(f"{name}: {size / 1e3:.0f} kB", flush=True)


if __name__ == "__main__":
    main()
