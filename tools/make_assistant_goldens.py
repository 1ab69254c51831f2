#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a tiny Gemma 4 with two assistants in tests/golden/assistant, and what transformers drafts with them in float32.

    python tools/make_assistant_goldens.py [--out tests/golden/assistant]

The target, in the folder `target`, has random weights. An assistant starts from random weights and learns the target's own greedy
continuation of one prompt by heart, so that some of its tokens are right. Each folder holds the assistant (config.json,
model.safetensors) and golden.safetensors:

    ids      int32 [T]           the prompt
    tokens   int32 [n]           what the target says next, greedily
    context  int32 [R]           by round: tokens before the drafted ones,
    drafts   int32 [R, D]        the tokens that follow them by the assistant,
    drafted  float32 [R, D, V]   their logits,
    accepted int32 [R]           and how many of them the target accepts

All steps of a round are at the position of the last row that the target has run. Of a sliding layer, transformers' assistants see
what the target's cache holds: as many rows as its window has.
Needs: torch transformers>=5.23 safetensors
"""
import argparse
import json
import pathlib

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, Gemma4AssistantConfig, Gemma4AssistantForCausalLM, Gemma4TextConfig

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "tests/golden/assistant"
PROMPT, NEW, DEPTH, WINDOW = 9, 30, 4, 6
STEPS, ANCHORS, RATE = 24, 3, 5e-3

SLIDING, FULL = "sliding_attention", "full_attention"
BASE = dict(
    intermediate_size=48, num_attention_heads=4, head_dim=8, global_head_dim=16, vocab_size=96, rms_norm_eps=1e-6,
    max_position_embeddings=512, hidden_activation="gelu_pytorch_tanh", sliding_window=WINDOW, tie_word_embeddings=True,
    use_double_wide_mlp=False, rope_parameters=dict(
        full_attention=dict(rope_type="proportional", partial_rotary_factor=0.25, rope_theta=1e4),
        sliding_attention=dict(rope_type="default", rope_theta=1e3)))
TARGET = dict(BASE, hidden_size=36, num_hidden_layers=6, num_key_value_heads=2, num_kv_shared_layers=2, attention_k_eq_v=True,
              num_global_key_value_heads=1, layer_types=[SLIDING, FULL] * 3, final_logit_softcapping=6.0,
              vocab_size_per_layer_input=96, hidden_size_per_layer_input=10)
ASSISTANT = dict(BASE, hidden_size=24, num_hidden_layers=3, num_key_value_heads=2, num_global_key_value_heads=1,
                 attention_k_eq_v=True, num_kv_shared_layers=3, layer_types=[SLIDING, SLIDING, FULL],
                 vocab_size_per_layer_input=0, hidden_size_per_layer_input=0)
CASES = {
    "plain": dict(),
    "groups": dict(use_ordered_embeddings=True, num_centroids=12, centroid_intermediate_top_k=5),
}


def allow_all_shared():
    """Assistants share all of their layers' rows, which Gemma4TextConfig of transformers 5.23 takes for an error."""
    modes = Gemma4TextConfig.kv_sharing_modes.fget
    Gemma4TextConfig.kv_sharing_modes = property(
        lambda config: ["reuse"] * config.num_hidden_layers
        if config.num_kv_shared_layers == config.num_hidden_layers else modes(config))


def fill(model):
    with torch.no_grad():
        for name, value in model.named_parameters():
            if "norm" in name:
                value.copy_(1.0 + 0.2 * torch.randn_like(value))
            elif value.ndim == 2:
                scale = 2.0 if "embed" in name else 1.0
                value.copy_(scale * torch.randn_like(value) / value.shape[1] ** 0.5)
        for name, value in model.named_buffers():
            if "layer_scalar" in name:
                value.copy_(0.9 + 0.1 * torch.randn_like(value))
            elif "token_ordering" in name:
                value.copy_(torch.randperm(len(value)))


def run_target(target, ids):
    """Final rows, and the rows of keys and values that caches would hold."""
    with torch.no_grad():
        result = target.model(ids[None], return_shared_kv_states=True, use_cache=False)
    shared = dict(result.shared_kv_states)
    shared[SLIDING] = tuple(rows[:, :, -WINDOW:] for rows in shared[SLIDING])
    return result.last_hidden_state, shared


def chain(target, assistant, ids, depth, forced=None):
    """Draft tokens after ids [n], the last of which the target has not run, and their logits."""
    rows, shared = run_target(target, ids[:-1])
    before, last, tokens, logits = rows[:, -1:], ids[None, -1:], [], []
    for step in range(depth):
        joined = torch.cat([target.get_input_embeddings()(last), before], -1)
        result = assistant(inputs_embeds=joined, position_ids=torch.tensor([[len(ids) - 2]]), shared_kv_states=shared)
        logits.append(result.logits[0, 0])
        tokens.append(int(logits[-1].argmax()) if forced is None else int(forced[step]))
        before, last = result.last_hidden_state, torch.tensor([tokens[-1:]])
    return tokens, torch.stack(logits)


def greedy(target, ids, count):
    for _ in range(count):
        with torch.no_grad():
            ids = torch.cat([ids, target(ids[None]).logits[0, -1:].argmax(-1)])
    return ids


def learn(target, assistant, ids, start):
    optimizer = torch.optim.Adam(assistant.parameters(), RATE)
    anchors = torch.arange(start, len(ids) - DEPTH)
    for _ in range(STEPS):
        loss = 0.0
        for anchor in anchors[torch.randperm(len(anchors))[:ANCHORS]].tolist():
            wanted = ids[anchor:anchor + DEPTH]
            logits = chain(target, assistant, ids[:anchor], DEPTH, wanted)[1]
            loss = loss + torch.nn.functional.cross_entropy(logits, wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def write(folder, model, config):
    folder.mkdir(parents=True, exist_ok=True)
    state = {k: v.detach().contiguous() for k, v in model.state_dict().items() if k != "lm_head.weight"}
    save_file(state, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")


def main(out):
    allow_all_shared()
    torch.manual_seed(5)
    target = AutoModelForCausalLM.from_config(Gemma4TextConfig(**TARGET), attn_implementation="eager").float().eval()
    fill(target)
    target.requires_grad_(False)
    write(out / "target", target, dict(TARGET, model_type="gemma4_text"))
    prompt = torch.randint(1, BASE["vocab_size"], (PROMPT,))
    ids = greedy(target, prompt, NEW)
    for name, extra in CASES.items():
        settings = Gemma4AssistantConfig(text_config=dict(ASSISTANT, model_type="gemma4_text"),
                                         backbone_hidden_size=TARGET["hidden_size"], **extra)
        settings._attn_implementation = settings.text_config._attn_implementation = "eager"
        assistant = Gemma4AssistantForCausalLM(settings).float().eval()
        fill(assistant)
        assistant.tie_weights()
        learn(target, assistant, ids, PROMPT)
        rounds, context = [], PROMPT + 1  # The first token comes without a draft.
        while context + DEPTH + 1 <= len(ids):
            with torch.no_grad():
                drafts, logits = chain(target, assistant, ids[:context], DEPTH)
            right = [a == b for a, b in zip(drafts, ids[context:].tolist())] + [False]
            rounds.append((context, drafts, logits, right.index(False)))
            context += right.index(False) + 1
        accepted = [r[3] for r in rounds]
        print(f"{name}: {len(rounds)} rounds, {sum(accepted)} of {DEPTH * len(rounds)} draft tokens right")
        write(out / name, assistant, dict(extra, model_type="gemma4_assistant", backbone_hidden_size=TARGET["hidden_size"],
                                          tie_word_embeddings=True, text_config=dict(ASSISTANT, model_type="gemma4_text")))
        save_file({
            "ids": prompt.int(), "tokens": ids[PROMPT:].int(),
            "context": torch.tensor([r[0] for r in rounds]).int(), "drafts": torch.tensor([r[1] for r in rounds]).int(),
            "drafted": torch.stack([r[2] for r in rounds]), "accepted": torch.tensor(accepted).int(),
        }, out / name / "golden.safetensors")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=GOLDEN)
    torch.set_num_threads(1)
    main(parser.parse_args().out)
