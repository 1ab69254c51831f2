#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the tiny DFlash drafts of tests/golden/dflash and what the `dflash` package drafts with them in float32.

    python tools/make_dflash_goldens.py [NAME ...] [--out tests/golden/dflash]

The target of all is in the folder `target`, with random weights too. A draft starts from random weights and learns the
target's own greedy continuation of one prompt by heart, so that some of its tokens are right. Each folder holds the draft (config.json,
model.safetensors) and golden.safetensors:

    ids      int32 [T]           the prompt
    tokens   int32 [n]           what the target says next, greedily
    context  int32 [R]           by round: tokens before the block's first one,
    drafts   int32 [R, B - 1]    the tokens that follow it by the draft,
    logits   float32 [R, B - 1, V]   their logits (DFlash 2: before candidates are chosen),
    accepted int32 [R]           and how many of them the target accepts

Rounds near the end have smaller blocks; their rows are filled up with -1 and 0.
Needs: dflash==0.1.0 torch==2.13.0 transformers==5.15.0 safetensors numpy
"""
import argparse
import json
import pathlib

import numpy as np
import torch
from dflash import model as dflash
from safetensors.torch import save_file
from transformers import Qwen3Config, Qwen3ForCausalLM

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "tests/golden/dflash"
PROMPT, NEW, BLOCK = 9, 40, 6
STEPS, ANCHORS, RATE = 60, 4, 1e-2

BASE = dict(model_type="qwen3", hidden_size=32, num_hidden_layers=2, intermediate_size=48, num_attention_heads=4,
            num_key_value_heads=2, head_dim=8, vocab_size=96, rms_norm_eps=1e-6, max_position_embeddings=512,
            tie_word_embeddings=False)
TARGET = dict(BASE, num_hidden_layers=4, rope_theta=10000.0)
SECOND = dict(conv_kernel_size=2, conv_group_size=8, selector_rank=12, selector_top_k=5)
SLIDING, FULL = "sliding_attention", "full_attention"

# name: (configuration as published, what transformers reads besides)
CASES = {
    # Everything at the root, biases, layers of the target by default: [2].
    "legacy": (dict(BASE, num_hidden_layers=1, block_size=BLOCK, num_target_layers=4, rope_theta=5000.0,
                    attention_bias=True, dflash_config=dict(mask_token_id=95)), {}),
    # Everything in sections of its own, both kinds of layers, taps out of order.
    "nested": (dict(BASE, layer_types=[SLIDING, FULL], sliding_window=7, use_sliding_window=True, num_target_layers=4,
                    rope_parameters=dict(rope_type="default", rope_theta=20000.0),
                    dflash_config=dict(block_size=BLOCK, mask_token_id=90, target_layer_ids=[2, 0])), {}),
    # At the root, with an encoder, blocks that windows cut on both sides.
    "root": (dict(BASE, model_type="muse_glimmer_assistant", layer_types=[SLIDING, SLIDING], sliding_window=4,
                  block_size=BLOCK, mask_token_id=3, target_layer_ids=[0, 2], rope_theta=10000.0),
             dict(is_causal=False, num_target_layers=4, use_sliding_window=True)),
    "second": (dict(BASE, layer_types=[SLIDING, SLIDING], sliding_window=8, use_sliding_window=True,
                    num_target_layers=4, is_causal=False, rope_theta=10000.0, dflash_config=dict(
                        SECOND, block_size=BLOCK, mask_token_id=94, target_layer_ids=[1, 2], output_multiplier=0.5,
                        final_logit_softcapping=20.0, input_embedding_scale=1.5)), {}),
}


def make_target():
    torch.manual_seed(7)
    target = Qwen3ForCausalLM(Qwen3Config(**{k: v for k, v in TARGET.items() if k != "model_type"})).float().eval()
    fill(target)
    return target


def fill(model):
    """Random weights of a size that lets every layer count."""
    with torch.no_grad():
        for name, value in model.named_parameters():
            if "norm" in name:
                value.copy_(1.0 + 0.2 * torch.randn_like(value))
            elif "base_kernel" in name:
                value.copy_(0.1 * torch.randn_like(value))
                value[:, 0] += 1.0
            elif "codebook" in name:
                value.copy_(0.5 * torch.randn_like(value))
            elif value.ndim == 2:
                scale = 2.0 if "embed" in name or "lm_head" in name else 1.0
                value.copy_(scale * torch.randn_like(value) / value.shape[1] ** 0.5)
            else:
                value.copy_(0.2 * torch.randn_like(value))


def make_draft(config, extra, seed):
    settings = dict({k: v for k, v in config.items() if k != "model_type"}, **extra)
    second = "conv_kernel_size" in config.get("dflash_config", {})
    torch.manual_seed(seed)
    kind = dflash.DFlash2DraftModel if second else dflash.DFlashDraftModel
    settings = Qwen3Config(**settings)
    settings._attn_implementation = "sdpa"
    draft = kind(settings).float()
    fill(draft)
    return draft


def features_of(target, draft, ids):
    with torch.no_grad():
        states = target(ids, output_hidden_states=True).hidden_states
    return dflash.extract_context_feature(states, draft.target_layer_ids)


def learn(target, draft, ids, start):
    """The tokens after `start` by heart."""
    features = features_of(target, draft, ids)
    scale = float(dflash._draft_value(draft.config, "input_embedding_scale", 1.0))
    optimizer = torch.optim.Adam(draft.parameters(), RATE)
    anchors = torch.arange(start, ids.shape[1] - BLOCK)
    draft.train()
    for _ in range(STEPS):
        loss = 0.0
        for anchor in anchors[torch.randperm(len(anchors))[:ANCHORS]].tolist():
            block = torch.full((1, BLOCK), draft.mask_token_id)
            block[0, 0] = ids[0, anchor]
            hidden = draft(
                target_hidden=features[:, :anchor],
                noise_embedding=dflash._raw_input_embeddings(target, block, scale).detach(),
                position_ids=torch.arange(anchor + BLOCK)[None],
            )[:, 1:]
            logits = draft.compute_logits(hidden, target.lm_head)
            loss = loss + torch.nn.functional.cross_entropy(logits[0], ids[0, anchor + 1:anchor + BLOCK])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    draft.eval()


class Recorder:
    """Keeps what each round of `dflash_generate` drafts."""

    def __init__(self, draft):
        self.context, self.logits, self.rows = [], [], []
        forward, compute = draft.forward, draft.compute_logits

        def record_forward(*args, **kwargs):
            self.rows.append(kwargs["target_hidden"].shape[1])
            self.context.append(int(kwargs["position_ids"][0, 0]) + self.rows[-1])
            return forward(*args, **kwargs)

        def record_logits(*args):
            self.logits.append(compute(*args))
            return self.logits[-1]

        draft.forward, draft.compute_logits = record_forward, record_logits


def record(target, draft, ids):
    recorder = Recorder(draft)
    blocks, verify = [], target.forward

    def record_block(input_ids, **kwargs):
        blocks.append(input_ids[0].tolist())
        return verify(input_ids, **kwargs)

    target.forward = record_block
    try:
        tokens = dflash.dflash_generate(draft, target, ids, NEW, None, 0.0, return_stats=False)[0, ids.shape[1]:]
    finally:
        target.forward = verify
    count = len(recorder.context)
    drafts = np.full((count, BLOCK - 1), -1, np.int32)
    logits = np.zeros((count, BLOCK - 1, BASE["vocab_size"]), np.float32)
    accepted = np.zeros(count, np.int32)
    whole = ids[0].tolist() + tokens.tolist()
    blocks = [block for block in blocks[1:] if len(block) > 1]
    for i in range(count):
        size = len(blocks[i])
        drafts[i, :size - 1] = blocks[i][1:]
        logits[i, :size - 1] = recorder.logits[i][0].numpy()
        follow = whole[recorder.context[i] + 1:recorder.context[i] + size]
        right = [a == b for a, b in zip(blocks[i][1:], follow)]
        accepted[i] = right.index(False) if False in right else len(right)
        if i + 1 < count:
            assert recorder.rows[i + 1] == accepted[i] + 1, (i, recorder.rows[i + 1], accepted[i])
    return dict(ids=ids[0].int(), tokens=tokens.int(), context=torch.tensor(recorder.context, dtype=torch.int32),
                drafts=torch.from_numpy(drafts), logits=torch.from_numpy(logits), accepted=torch.from_numpy(accepted))


def published(name, state):
    """The tensors under the names that such files have."""
    result = {}
    for key, value in state.items():
        if name == "root":
            key = key.replace("hidden_norm.", "encoder.output_norm_enc.") if key.startswith("hidden_norm") else key
            key = f"encoder.{key}" if key.startswith("fc.") else key
        key = key.replace("_codebook.weight", "_codebook")
        result[key] = value
    return result


def make_case(name, seed):
    config, extra = CASES[name]
    target, draft = make_target(), make_draft(config, extra, seed)
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, BASE["vocab_size"], (1, PROMPT), generator=generator)
    with torch.no_grad():
        whole = ids
        for _ in range(NEW + BLOCK):
            whole = torch.cat([whole, target(whole).logits[:, -1:].argmax(-1)], 1)
    learn(target, draft, whole, PROMPT)
    golden = record(target, draft, ids)
    assert golden["tokens"].tolist() == whole[0, PROMPT:PROMPT + NEW].tolist()
    return config, draft, golden


def write(folder, config, tensors):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    save_file({k: v.detach().contiguous() for k, v in tensors.items()}, folder / "model.safetensors")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(CASES))
    parser.add_argument("--out", type=pathlib.Path, default=GOLDEN)
    parser.add_argument("--seed", type=int, default=3)
    args = parser.parse_args()
    torch.set_num_threads(1)
    write(args.out / "target", TARGET, make_target().state_dict())
    for name in args.names:
        config, draft, golden = make_case(name, args.seed)
        write(args.out / name, config, published(name, draft.state_dict()))
        save_file({k: v.contiguous() for k, v in golden.items()}, args.out / name / "golden.safetensors")
        print(f"{name}: {len(golden['context'])} rounds, accepted {golden['accepted'].tolist()}")


if __name__ == "__main__":
    main()
