#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the tiny checkpoints of tests/golden and what they compute in float32.

    python tools/make_goldens.py [NAME ...] [--out tests/golden]

Each folder holds a checkpoint with random weights (config.json, model.safetensors) and golden.safetensors:

    ids      int32 [T]             the tokens
    logits   float32 [T, V]        after each of them
    tap.-1   float32 [T, hidden]   embedded rows, and the rows after each layer: tap.0, tap.1, ...
    greedy   int32 [n]             tokens that follow the first 8 ids, best first

The reference is mlx-lm, or transformers where mlx-lm lacks a feature (sliding windows of Gemma 2, Mistral and Qwen 2, the GELU of
Gemma 1). Where both have it, both run and must agree. Seeds are taken in turn until no greedy step is close.
Needs: mlx[cpu]==0.32.4 mlx-lm==0.32.2 transformers torch numpy
"""
import argparse
import json
import pathlib
import re

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from golden_cases import BOTH, CASES, HF, MLX
from hybrid_goldens import BASE, HYBRIDS, join_experts, join_heads, kimi_modules, published_hybrid, with_usual_stacks
from mlx.utils import tree_flatten, tree_unflatten

mx.set_default_device(mx.cpu)

TOKENS, PROMPT, GREEDY = 20, 8, 12
ONLY_HF = ("hunyuan_v1_moe", "cohere2_moe", "llama4_text")  # mlx-lm has no such model.
AGREE = 5e-5  # Largest difference of logits between the two references.
MIN_GAP, MIN_GAP_HALF = 0.04, 0.2  # Between the two best logits of a greedy step; where rows or operands are bf16.


def drop_none(config):
    """Without fields that are None, except those for which that is a value."""
    return {k: drop_none(v) if isinstance(v, dict) else v for k, v in config.items() if v is not None or k == "q_lora_rank"}


def mlx_model(config):
    from mlx_lm.utils import _get_classes
    model_class, args_class = _get_classes(config)
    return model_class(args_class.from_dict(json.loads(json.dumps(config))))


def shapes_of(model, config):
    """Names and shapes of an mlx-lm model's weights, or of a transformers one's."""
    if isinstance(model, nn.Module):
        return {name: value.shape for name, value in tree_flatten(model.parameters())}
    return {name: tuple(value.shape) for name, value in empty_hf_model(config).state_dict().items()}


def random_weights(model, config, dtype, seed, more):
    rng = np.random.default_rng(seed)
    weights = {}
    shapes = shapes_of(model, config)
    for name in [name for name in shapes if name.endswith("mlp.gate.weight")] if more else []:
        shapes.update({name.replace("mlp.gate.weight", tensor): shape for tensor, shape in more.items()})
    if config.get("tie_word_embeddings"):
        shapes.pop("lm_head.weight", None)
    if config.get("gating") == "per-element":  # Which mlx-lm lacks.
        shapes = {k: (v[0] * config["head_dim"], v[1]) if k.endswith("g_proj.weight") else v for k, v in shapes.items()}
    for name, shape in shapes.items():
        data = rng.standard_normal(shape, dtype=np.float32)
        if "conv" in name and len(shape) == 3:
            data *= 1.0 / np.sqrt(shape[1])
        elif name.endswith("correction_bias"):
            data *= 0.5 if "kv_lora_rank" in config.get("text_config", config) else 0.1
        elif ".experts." in name and name.endswith("bias"):
            data *= 4.0  # Beyond the limits of gates and ups.
        elif len(shape) >= 2:
            data *= 1.0 / np.sqrt(shape[-1]) * (2.0 if "embed" in name or "lm_head" in name else 1.0)
        elif "norm" in name:
            offset = config["model_type"].startswith("gemma") and not config["model_type"].startswith("gemma4")
            data = (0.0 if offset else 1.0) + 0.2 * data
        elif name.endswith("layer_scalar"):
            data = 0.8 + 0.1 * data
        elif name.endswith((".scale", "per_expert_scale")):
            data = 1.0 + 0.3 * data
        elif name.endswith("sinks"):
            data *= 2.0
        elif name.endswith(("act_fn.beta", "act_fn.eps")):
            data = 0.5 if name.endswith("beta") else -1e-6
        else:
            data *= 0.2
        if config["model_type"] == "dots1":  # mlx-lm has another name for its stacks of experts.
            name = re.sub(r"mlp\.experts\.(\w+\.weight)", r"mlp.switch_mlp.\1", name)
        weights[name] = mx.array(data).astype(dtype)
    if config.get("text_config") and config["model_type"] not in ("kimi_k25", "llama4"):
        weights = {k: v for k, v in weights.items() if "lm_head" not in k}
    return weights


class Recorder:
    """Stands for a layer and keeps what it was given and gave."""

    def __init__(self, layer):
        self.layer, self.seen, self.given = layer, None, None

    def __getattr__(self, name):
        return getattr(self.layer, name)

    def __call__(self, x, *args, **kwargs):
        self.seen, self.given = x, self.layer(x, *args, **kwargs)
        return self.given


def mlx_reference(model):
    model.set_dtype(mx.float32)
    whole = getattr(model, "language_model", model)
    body = whole.backbone if hasattr(whole, "backbone") else whole.model
    body.layers = [Recorder(layer) for layer in body.layers]

    def run(ids):
        logits = model(mx.array([ids]))
        given = [layer.given for layer in body.layers]
        taps = [body.layers[0].seen] + [rows[0] if isinstance(rows, tuple) else rows for rows in given]
        return np.array(logits)[0], [np.array(tap)[0] for tap in taps]

    return run


def hf_names(weights, model_type):
    """Names inside transformers' modules, where checkpoints have others."""
    renames = {"granitemoe": [("router.layer.", "router.")], "mixtral": [("block_sparse_moe.", "mlp.")],
               "laguna": [("gate.proj.", "gate."), ("shared_expert.", "shared_experts.")],
               "minimax_m2": [("block_sparse_moe.", "mlp.")], "ernie4_5_moe": [("moe_statics", "gate.moe_statics")]}
    result = {}
    for name, value in weights.items():
        for old, new in renames.get(model_type, []):
            name = name.replace(old, new)
        result[name] = value
    return result


def in_turns(gate, up):
    """Rows of both in turns: gate, up, gate, ..."""
    return mx.flatten(mx.stack([gate, up], axis=2), 1, 2)


def published_gpt_oss(weights, mxfp4=False):
    """gpt-oss' experts as transformers stores them: gates and ups in turns; floats transposed, or blocks of MXFP4."""
    result = {}
    for name, value in weights.items():
        scope, _, part = name.partition(".experts.")
        if not part:
            result[name] = value
            continue
        if part.startswith("up_proj"):
            continue
        leaf = part.partition(".")[2]
        if part.startswith("gate_proj"):
            value = in_turns(value, weights[name.replace("gate_proj", "up_proj")])
        path = f"{scope}.experts." + ("gate_up_proj" if part.startswith("gate_proj") else "down_proj")
        if leaf == "bias":
            result[f"{path}_bias"] = value
        elif mxfp4:
            codes, scales = mx.quantize(value, 32, 4, mode="mxfp4")
            result[f"{path}_blocks"] = mx.unflatten(codes.view(mx.uint8), 2, (-1, 16))
            result[f"{path}_scales"] = scales
        else:
            result[path] = mx.contiguous(mx.swapaxes(value, 1, 2))
    return result


def through_mxfp4(weights):
    """Experts as their codes have them."""
    def rounded(value):
        codes, scales = mx.quantize(value, 32, 4, mode="mxfp4")
        return mx.dequantize(codes, scales, None, 32, 4, mode="mxfp4", dtype=mx.float32)
    return {k: rounded(v) if ".experts." in k and k.endswith("weight") else v for k, v in weights.items()}


def published(weights):
    """Qwen 3.5's weights as transformers stores them."""
    result = {}
    for name, value in weights.items():
        if name.endswith("conv1d.weight"):
            value = mx.moveaxis(value, 1, 2)
        elif "norm" in name and "linear_attn" not in name:
            value = value - 1.0
        result[name.replace("language_model.model.", "model.language_model.")] = value
    return result


def empty_hf_model(config):
    from transformers import CONFIG_MAPPING, AutoModelForCausalLM, Mistral4ForCausalLM
    text = dict(config.get("text_config", config))
    kind = CONFIG_MAPPING[text["model_type"]]
    # Some classes pad with a token beyond a small vocabulary.
    settings = kind(**json.loads(json.dumps({"pad_token_id": 0, **{k: v for k, v in text.items() if k != "model_type"}})))
    settings._attn_implementation = "eager"
    if text["model_type"] == "mistral4":  # Which has no automatic class.
        return Mistral4ForCausalLM(settings).float().eval()
    return AutoModelForCausalLM.from_config(settings, attn_implementation="eager").float().eval()


def hf_model(config, weights):
    import torch  # Only here: what mlx-lm runs needs no transformers.
    model = empty_hf_model(config)
    model_type = config.get("text_config", config)["model_type"]
    stored = hf_names(join_heads(join_experts(weights)), model_type)
    stored = published(stored) if model_type.startswith(("qwen3_5", "qwen3_next")) else stored
    is_kda = model_type in ("kimi_linear", "bailing_hybrid")
    stored = kimi_modules(join_heads(weights)) if is_kda else published_hybrid(stored, model_type) if model_type in HYBRIDS else stored
    stored = published_gpt_oss(weights) if model_type == "gpt_oss" else stored
    stored = published_apertus(stored) if model_type == "apertus" else stored
    stored = turned(stored) if config["model_type"] == "llama4" else stored
    state = {k.removeprefix("language_model.").replace("model.language_model.", "model."):
             torch.tensor(np.array(v.astype(mx.float32))) for k, v in stored.items()}
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not unexpected and set(missing) <= {"lm_head.weight"}, (missing, unexpected)
    model.tie_weights()
    return model


def hf_reference(config, weights):
    import torch
    model = hf_model(config, weights)
    taps = {}
    for i, layer in enumerate(model.model.layers):
        layer.register_forward_hook(
            lambda module, args, output, i=i: taps.update({i: output[0] if isinstance(output, tuple) else output}))
    model.model.layers[0].register_forward_pre_hook(lambda module, args: taps.update({-1: args[0]}))

    def run(ids):
        with torch.no_grad():
            logits = model(torch.tensor([ids]), use_cache=False).logits[0].numpy()
        return logits, [taps[i][0].numpy() for i in range(-1, len(model.model.layers))]

    return run


def quantize(model, config, bits, wide):
    modules = {}

    def wanted(path, module):
        if not hasattr(module, "to_quantized"):
            return False
        if path.rsplit(".", 1)[-1] in wide.split():
            modules[path] = dict(group_size=32, bits=8)
            return modules[path]
        return True

    nn.quantize(model, 32, bits, class_predicate=wanted)
    config["quantization"] = dict(group_size=32, bits=bits, mode="affine", **modules)


def one_by_one(weights):
    """The experts' stacked weights under a name each, as transformers stores them."""
    weights = with_usual_stacks(weights)
    result = {}
    for name, value in weights.items():
        if ".switch_mlp." not in name:
            result[name] = value
            continue
        for i in range(value.shape[0]):
            result[name.replace("switch_mlp", f"experts.{i}")] = value[i]
    return result


def turned(weights):
    """Stacks of experts with their inputs first."""
    return {k: mx.contiguous(v.swapaxes(1, 2)) if ".experts." in k else v for k, v in weights.items()}


def published_laguna(weights):
    """Laguna's routers as its checkpoints name them."""
    return {k.replace("mlp.gate.proj.", "mlp.gate.").replace("gate.e_score", "experts.e_score"): v for k, v in weights.items()}


def published_apertus(weights):
    """Learned factors of activations as transformers stores them."""
    return {k: v.reshape(1) if "act_fn.alpha" in k else v for k, v in weights.items()}


def stored_form(weights, options):
    """The weights as the checkpoint has them."""
    if options.get("one_by_one"):
        weights = one_by_one(weights)
    if options.get("fused"):
        weights = join_experts(weights)
    if options.get("published"):
        weights = published(weights)
    if options.get("turned"):
        weights = turned(weights)
    result = {}
    for name, value in weights.items():
        for old, new in options.get("names", []) if "experts." in name else []:
            name = name.replace(old, new)
        result[name] = value
    return result


def stored_weights(weights, model_type, options):
    """The weights as the case's checkpoint has them."""
    weights = dict(weights)
    if options.get("published") and model_type == "laguna":
        return published_laguna(one_by_one(weights))
    if options.get("published") and model_type == "apertus":
        return published_apertus(weights)
    if options.get("published") and model_type in HYBRIDS:
        return published_hybrid(weights, model_type)
    if options.get("published") and model_type == "gpt_oss":
        return published_gpt_oss(weights, options.get("mxfp4"))
    if options.get("published") and model_type == "gemma4":
        return {k.replace("language_model.model.", "model.language_model."): v for k, v in join_experts(weights).items()}
    return stored_form(weights, options)


def make_case(name, seed, reference=None):
    """A case and what its references give, or only the one that is named."""
    references, changes, options = CASES[name]
    reference = reference or references
    config = dict(changes) if "text_config" in changes else {**BASE, **changes}
    if isinstance(config.get("text_config"), dict):
        config["text_config"] = drop_none(config["text_config"])
    if config["model_type"] == "qwen2":  # Its heads always share the hidden size.
        config.pop("head_dim")
    config = drop_none(config)
    model = mlx_model(config) if config["model_type"] not in ONLY_HF else None
    weights = random_weights(model, config, options.get("dtype", mx.float32), seed, options.get("more"))
    if reference != HF or options.get("bits"):
        model.update(tree_unflatten(list(weights.items())))
        if options.get("bits"):
            quantize(model, config, options["bits"], options.get("wide", ""))
            weights = dict(tree_flatten(model.parameters()))
        if config["model_type"].startswith("gemma3"):  # A tied head, as real checkpoints have it.
            weights.pop("lm_head.weight", None)
            model.sanitize(dict(weights))
    elif config["model_type"].startswith("gemma3"):
        weights.pop("lm_head.weight", None)
    if options.get("mxfp4"):
        config["quantization_config"] = dict(quant_method="mxfp4", modules_to_not_convert=["model.layers.*.self_attn"])
    stored = stored_weights(weights, config["model_type"], options)
    weights = through_mxfp4(weights) if options.get("mxfp4") else weights
    stored = join_heads(stored) if options.get("one_tensor") else stored
    stored = model.sanitize({k: mx.array(v) for k, v in published_hybrid(stored, config["model_type"]).items()}) if options.get("folded") else stored
    runs = []
    if reference in (MLX, BOTH):
        runs.append(mlx_reference(model))
    if reference in (HF, BOTH):
        runs.append(hf_reference(config, weights))
    run = runs[0]

    vocab = config["vocab_size"]
    ids = np.random.default_rng(seed + 1).integers(0, vocab, TOKENS).tolist()
    logits, taps = run(ids)
    for other in runs[1:]:
        difference = np.abs(other(ids)[0] - logits).max()
        assert difference < AGREE, f"{name}: references differ by {difference}"
    sequence, gap = ids[:PROMPT], np.inf
    for _ in range(GREEDY):
        row = run(sequence)[0][-1]
        best = np.sort(row)[-2:]
        gap = min(gap, best[1] - best[0])
        sequence.append(int(row.argmax()))
    golden = {"ids": mx.array(ids, mx.int32), "logits": mx.array(logits),
              "greedy": mx.array(sequence[PROMPT:], mx.int32)}
    golden.update({f"tap.{i - 1}": mx.array(tap) for i, tap in enumerate(taps)})
    return gap, config, stored, golden


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(CASES)}; default: all")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent.parent / "tests/golden")
    args = parser.parse_args()
    for name in args.names or CASES:
        for seed in range(100):
            gap, config, weights, golden = make_case(name, seed)
            if gap > (MIN_GAP_HALF if "dtype" in CASES[name][2] else MIN_GAP):
                break
        else:
            raise SystemExit(f"{name}: no seed keeps greedy steps apart")
        out = args.out / name
        out.mkdir(parents=True, exist_ok=True)
        mx.save_safetensors(str(out / "model.safetensors"), weights, {"format": "mlx"})
        mx.save_safetensors(str(out / "golden.safetensors"), golden)
        (out / "config.json").write_text(json.dumps(config, indent=1) + "\n")
        size = sum(f.stat().st_size for f in out.iterdir())
        print(f"{name}: {CASES[name][0]}, seed {seed}, gap {gap:.3f}, {size / 1e3:.0f} kB", flush=True)


if __name__ == "__main__":
    main()
