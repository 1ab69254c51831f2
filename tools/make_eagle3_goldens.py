#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the tiny EAGLE-3 heads of tests/golden/eagle3, and what a plain PyTorch head drafts with them in float32.

    python tools/make_eagle3_goldens.py [NAME ...] [--out tests/golden/eagle3]

The targets are models of transformers with random weights. A head starts from random weights and learns its target's own
greedy continuation of one prompt by heart, so that some of its tokens are right. Each folder holds the target (target/), the
head in one of the published spellings (config.json, model.safetensors) and golden.safetensors:

    ids      int32 [T]           the prompt
    tokens   int32 [n]           what the model says next, greedily
    logits   float32 [T + n - 1, K]  of the head for true tokens: row S is about token S + 2
    known    int32 [K]           the token of each logit
    context  int32 [R]           by round: tokens before the drafted ones,
    drafts   int32 [R, D]        the tokens that follow them by the head,
    accepted int32 [R]           and how many of them the model accepts

Needs: torch transformers>=5.15 safetensors
"""
import argparse
import json
import pathlib

import torch
from make_mtp_goldens import greedy, make_model
from safetensors.torch import save_file

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "tests/golden/eagle3"
PROMPT, NEW, DEPTH = 9, 40, 4
ANCHORS, RATE = 3, 5e-3

BASE = dict(hidden_size=32, num_hidden_layers=6, intermediate_size=48, num_attention_heads=4, num_key_value_heads=2,
            head_dim=8, vocab_size=96, rms_norm_eps=1e-6, max_position_embeddings=512, tie_word_embeddings=False)
QWEN3 = dict(BASE, model_type="qwen3", tie_word_embeddings=True, rope_theta=10000.0)
LLAMA = dict(BASE, model_type="llama", rope_theta=10000.0)
GPT_OSS = dict(BASE, model_type="gpt_oss", num_local_experts=4, num_experts_per_tok=2, sliding_window=8, pad_token_id=0,
               intermediate_size=32, layer_types=["sliding_attention", "full_attention"] * 3,
               rope_parameters=dict(rope_type="default", rope_theta=10000.0))
HEAD = dict(model_type="llama", hidden_size=32, num_hidden_layers=1, intermediate_size=40, num_attention_heads=4,
            num_key_value_heads=2, head_dim=8, vocab_size=96, rms_norm_eps=1e-5, max_position_embeddings=512, rope_theta=20000.0,
            hidden_act="silu", attention_bias=False, mlp_bias=False, tie_word_embeddings=False)
# `read`: the layers of the target whose inputs are read; the number of layers: its final row.
CASES = {
    # As SpecForge and SafeAILab write them.
    "flat": dict(target=QWEN3, known=80, steps=40, read=[2, 3, 3], prefix="midlayer.",
                 config=dict(HEAD, architectures=["LlamaForCausalLMEagle3"], draft_vocab_size=80)),
    # As Model Optimizer does: the layers' outputs are named; the whole vocabulary by the target's head.
    "optimizer": dict(target=GPT_OSS, known=96, steps=40, read=[2, 4, 6], prefix="midlayer.", config=dict(
        HEAD, architectures=["LlamaForCausalLMEagle3"], draft_vocab_size=96,
        eagle_config=dict(eagle_aux_hidden_state_layer_ids=[1, 3, 5], use_aux_hidden_state=True, norm_before_fc=True,
                          use_input_layernorm_in_first_layer=True, use_last_layernorm=True, use_mtp_layernorm=False))),
    # vLLM's speculators: another width with an embedding of its own, two layers, norms everywhere, a window.
    "speculators": dict(target=LLAMA, known=64, steps=40, seed=14, read=[0, 2, 5], prefix="layers.0.", config=dict(
        architectures=["Eagle3Speculator"], speculators_model_type="eagle3", draft_vocab_size=64, target_hidden_size=32,
        eagle_aux_hidden_state_layer_ids=[0, 2, 5], norm_before_residual=True, fc_norm=True, norm_output=True,
        speculators_config=dict(algorithm="eagle3"),
        transformer_layer_config=dict(HEAD, hidden_size=24, num_hidden_layers=2, sliding_window=7,
                                      layer_types=["sliding_attention", "full_attention"]))),
    # Reads the final row alone; norms of each head as a Qwen 3 has them.
    "final": dict(target=QWEN3, known=80, steps=40, read=[6], prefix="midlayer.", config=dict(
        HEAD, architectures=["LlamaForCausalLMEagle3"], model_type="qwen3", draft_vocab_size=80,
        eagle_config=dict(use_aux_hidden_state=False))),
}


class Head:
    """x[S] = attention [norm(embed(token S + 1)), norm(h)] + h, y[S] = mlp(norm(x)) + x; h is fc [what layers read at S]."""

    def __init__(self, case, model, known):
        self.model, self.read, self.known, config = model, case["read"], known, case["config"]
        layer = config.get("transformer_layer_config", config)
        flags = {**config, **config.get("eagle_config", {})}
        self.flag = lambda name: flags.get(name, False)
        self.eps, self.theta, self.size = layer["rms_norm_eps"], layer["rope_theta"], layer["head_dim"]
        self.heads, self.groups, self.count = layer["num_attention_heads"], layer["num_key_value_heads"], layer["num_hidden_layers"]
        self.windows = [layer.get("sliding_window") if kind == "sliding_attention" else None
                        for kind in layer.get("layer_types", ["full_attention"])]
        hidden, inner, width = layer["hidden_size"], layer["intermediate_size"], self.heads * self.size
        theirs = model.config.hidden_size
        self.is_final = self.read == [model.config.num_hidden_layers]
        shapes = {"layers.0.hidden_norm": (hidden,), "norm": (hidden,)}
        if not self.is_final:
            shapes["fc"] = (hidden, len(self.read) * theirs)
        if self.flag("norm_before_fc"):
            shapes["input_norm"] = (len(self.read) * theirs,)
        if self.flag("fc_norm"):
            shapes |= {f"fc_norm.{i}": (theirs,) for i in range(len(self.read))}
        for i in range(self.count):
            own, rows = f"layers.{i}.", hidden if i else 2 * hidden
            shapes |= {own + "input_layernorm": (hidden,), own + "post_attention_layernorm": (hidden,),
                       own + "self_attn.q_proj": (width, rows), own + "self_attn.k_proj": (self.groups * self.size, rows),
                       own + "self_attn.v_proj": (self.groups * self.size, rows), own + "self_attn.o_proj": (hidden, width),
                       own + "mlp.gate_proj": (inner, hidden), own + "mlp.up_proj": (inner, hidden),
                       own + "mlp.down_proj": (hidden, inner)}
            if layer["model_type"] == "qwen3":
                shapes |= {own + "self_attn.q_norm": (self.size,), own + "self_attn.k_norm": (self.size,)}
        if hidden != theirs:
            shapes["embed_tokens"] = (len(model.get_input_embeddings().weight), hidden)
        if len(known) < layer["vocab_size"]:
            shapes["lm_head"] = (len(known), hidden)
        self.weights = {
            name: (torch.randn(shape) / shape[-1] ** 0.5 if len(shape) == 2 else 1.0 + 0.2 * torch.randn(shape)).requires_grad_()
            for name, shape in shapes.items()}

    def norm(self, x, name):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weights[name]

    def linear(self, x, name):
        return x @ self.weights[name].T

    def embed(self, tokens):
        table = self.weights.get("embed_tokens")
        return self.model.get_input_embeddings()(tokens) if table is None else table[tokens]

    def rotate(self, x, positions):
        angles = positions[:, None, None] * self.theta ** (-torch.arange(self.size // 2) * 2.0 / self.size)
        cos, sin = angles.cos(), angles.sin()
        a, b = x.chunk(2, -1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

    def attend(self, x, own, window, positions, past):
        n, scope = x.shape[0], own + "self_attn."
        q, k, v = (self.linear(x, scope + name).view(n, -1, self.size) for name in ("q_proj", "k_proj", "v_proj"))
        if scope + "q_norm" in self.weights:
            q, k = self.norm(q, scope + "q_norm"), self.norm(k, scope + "k_norm")
        q, k = self.rotate(q, positions), self.rotate(k, positions)
        if past is not None:
            k, v = torch.cat([past[0], k]), torch.cat([past[1], v])
        kept, places = (k, v), torch.arange(k.shape[0])
        distance = places[-n:, None] - places[None, :]
        seen = (distance >= 0) & (distance < (window or len(places)))
        k, v = (rows.repeat_interleave(self.heads // self.groups, 1) for rows in (k, v))
        scores = torch.einsum("nhd,mhd->hnm", q, k) / self.size ** 0.5
        rows = torch.einsum("hnm,mhd->nhd", scores.masked_fill(~seen, float("-inf")).softmax(-1), v)
        return self.linear(rows.reshape(n, -1), scope + "o_proj"), kept

    def fuse(self, features):
        """features [n, layers, hidden] -> [n, hidden]"""
        if self.flag("fc_norm"):
            features = torch.stack([self.norm(features[:, i], f"fc_norm.{i}") for i in range(features.shape[1])], 1)
        rows = features.flatten(1)
        rows = self.norm(rows, "input_norm") if self.flag("norm_before_fc") else rows
        return rows if self.is_final else self.linear(rows, "fc")

    def rows(self, tokens, h, first, past=None):
        """Rows from position `first` on: tokens [n] are those after them; h [n, hidden] by `fuse` or by the head."""
        positions = torch.arange(first, first + len(tokens)).float()
        normed, kept = self.norm(h, "layers.0.hidden_norm"), []
        x = normed if self.flag("norm_before_residual") else h
        for i in range(self.count):
            own = f"layers.{i}."
            read = self.norm(x, own + "input_layernorm") if i else torch.cat(
                [self.norm(self.embed(tokens), own + "input_layernorm"), normed], -1)
            attended, rows = self.attend(read, own, self.windows[i], positions, past[i] if past else None)
            kept.append(rows)
            x = x + attended
            read = self.norm(x, own + "post_attention_layernorm")
            inner = torch.nn.functional.silu(self.linear(read, own + "mlp.gate_proj")) * self.linear(read, own + "mlp.up_proj")
            x = x + self.linear(inner, own + "mlp.down_proj")
        return self.norm(x, "norm") if self.flag("norm_output") else x, kept

    def logits(self, rows):
        normed = rows if self.flag("norm_output") else self.norm(rows, "norm")
        return self.linear(normed, "lm_head") if "lm_head" in self.weights else self.model.lm_head(normed)

    def chain(self, ids, features, depth, forced=None):
        """Draft tokens after ids [n] and their logits, from the model's rows of ids[:-1]; `forced` ones go on instead."""
        y, past = self.rows(ids[1:], self.fuse(features[:len(ids) - 1]), 0)
        y, tokens, logits = y[-1:], [], []
        for step in range(depth):
            logits.append(self.logits(y)[0])
            tokens.append(int(self.known[logits[-1].argmax()]) if forced is None else int(forced[step]))
            if step + 1 < depth:
                y, past = self.rows(torch.tensor(tokens[-1:]), y, len(ids) - 1 + step, past)
        return tokens, torch.stack(logits)


def features_of(model, ids, read):
    """The rows that these layers read, [n, layers, hidden]; the number of layers: the final row."""
    with torch.no_grad():
        inputs = []
        hooks = [layer.register_forward_pre_hook(lambda _, args, kw: inputs.append((args or (kw["hidden_states"],))[0][0]),
                                                 with_kwargs=True) for layer in model.model.layers]
        outputs = []
        hooks.append(model.model.layers[-1].register_forward_hook(
            lambda _, args, out: outputs.append(out[0] if isinstance(out, tuple) else out)))
        final = model.model(ids[None]).last_hidden_state[0]
        for hook in hooks:
            hook.remove()
    last = outputs[0].reshape(len(ids), -1)
    if read == [len(inputs)]:
        return final[:, None]
    return torch.stack([(inputs + [last])[i] for i in read], 1)


def learn(head, ids, start, steps):
    """The tokens after `start` by heart, in chains as they are drafted."""
    features = features_of(head.model, ids, head.read)
    optimizer = torch.optim.Adam(head.weights.values(), RATE)
    anchors = torch.arange(start, len(ids) - DEPTH)
    places = torch.full((head.model.config.vocab_size,), -100)
    places[head.known] = torch.arange(len(head.known))
    for _ in range(steps):
        loss = 0.0
        for anchor in anchors[torch.randperm(len(anchors))[:ANCHORS]].tolist():
            wanted = ids[anchor:anchor + DEPTH]
            logits = head.chain(ids[:anchor], features, DEPTH, wanted)[1]
            loss = loss + torch.nn.functional.cross_entropy(logits, places[wanted], reduction="sum") / DEPTH
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def known_tokens(ids, count, vocab_size):
    """`count` tokens: all that were said but the rarest, and others; or the whole vocabulary."""
    said, times = ids.unique(return_counts=True)
    said = said[times.argsort(descending=True, stable=True)][:-1] if count < vocab_size else said
    others = [token for token in range(vocab_size) if token not in ids]
    return torch.tensor(sorted(said.tolist() + others[:count - len(said)]))


def make(name, case, out):
    torch.manual_seed(case.get("seed", 13))
    model = make_model(case["target"])
    prompt = torch.randint(1, case["target"]["vocab_size"], (PROMPT,))
    ids = greedy(model, prompt, NEW)
    head = Head(case, model, known_tokens(ids, case["known"], case["target"]["vocab_size"]))
    learn(head, ids, PROMPT, case["steps"])
    features = features_of(model, ids, head.read)
    rounds, context = [], PROMPT + 1  # The first token comes without a draft.
    with torch.no_grad():
        true_logits = head.logits(head.rows(ids[1:], head.fuse(features[:-1]), 0)[0])
        while context + DEPTH + 1 <= len(ids):
            drafts, _ = head.chain(ids[:context], features, DEPTH)
            right = [a == b for a, b in zip(drafts, ids[context:].tolist())] + [False]
            rounds.append((context, drafts, right.index(False)))
            context += right.index(False) + 1
    accepted = [r[2] for r in rounds]
    print(f"{name}: {len(rounds)} rounds, {sum(accepted)} of {DEPTH * len(rounds)} draft tokens right")
    folder = out / name
    (folder / "target").mkdir(parents=True, exist_ok=True)
    state = {k: v for k, v in model.state_dict().items() if not (k == "lm_head.weight" and case["target"]["tie_word_embeddings"])}
    save_file({k: v.contiguous() for k, v in state.items()}, folder / "target/model.safetensors")
    (folder / "target/config.json").write_text(json.dumps(case["target"], indent=1) + "\n")
    state = {f"{k.replace('layers.0.', case['prefix'])}.weight": v.detach() for k, v in head.weights.items()}
    if len(head.known) < case["target"]["vocab_size"]:
        state["d2t"] = head.known - torch.arange(len(head.known))
        state["t2d"] = torch.zeros(case["target"]["vocab_size"], dtype=torch.bool).index_fill(0, head.known, True)
    save_file({k: v.contiguous() for k, v in state.items()}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(case["config"], indent=1) + "\n")
    save_file({
        "ids": prompt.int(), "tokens": ids[PROMPT:].int(), "logits": true_logits.contiguous(), "known": head.known.int(),
        "context": torch.tensor([r[0] for r in rounds]).int(), "drafts": torch.tensor([r[1] for r in rounds]).int(),
        "accepted": torch.tensor(accepted).int(),
    }, folder / "golden.safetensors")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(CASES)} [all]")
    parser.add_argument("--out", type=pathlib.Path, default=GOLDEN)
    args = parser.parse_args()
    torch.set_num_threads(1)
    for case in args.names or CASES:
        make(case, CASES[case], args.out)
