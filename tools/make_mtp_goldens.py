#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the tiny models with MTP heads of tests/golden/mtp, and what a plain PyTorch head drafts with them in float32.

    python tools/make_mtp_goldens.py [NAME ...] [--out tests/golden/mtp]

The models are those of transformers with random weights. The head starts from random weights and learns the model's own greedy
continuation of one prompt by heart, so that some of its tokens are right. Each folder holds the model with its head (config.json,
model.safetensors, Qwen 3.5's as published: norms minus one) and golden.safetensors:

    ids      int32 [T]           the prompt
    tokens   int32 [n]           what the model says next, greedily
    logits   float32 [T + n - 1, V]  of the head for true tokens: row S is about token S + 2
    context  int32 [R]           by round: tokens before the drafted ones,
    drafts   int32 [R, D]        the tokens that follow them by the head,
    drafted  float32 [R, D, V]   their logits,
    accepted int32 [R]           and how many of them the model accepts

Needs: torch transformers>=5.15 safetensors
"""
import argparse
import json
import pathlib

import torch
from safetensors.torch import save_file
from transformers import CONFIG_MAPPING, AutoModelForCausalLM

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "tests/golden/mtp"
PROMPT, NEW, DEPTH = 9, 40, 4
STEPS, ANCHORS, RATE = 24, 3, 5e-3

BASE = dict(hidden_size=32, num_hidden_layers=2, intermediate_size=48, num_attention_heads=4, num_key_value_heads=2,
            head_dim=8, vocab_size=96, rms_norm_eps=1e-6, max_position_embeddings=512)
HYBRID = dict(BASE, tie_word_embeddings=False, num_hidden_layers=3, full_attention_interval=3,
              layer_types=["linear_attention", "linear_attention", "full_attention"], linear_num_key_heads=2,
              linear_num_value_heads=4, linear_key_head_dim=6, linear_value_head_dim=10, linear_conv_kernel_dim=4,
              mtp_num_hidden_layers=1,
              rope_parameters=dict(rope_type="default", rope_theta=1e5, partial_rotary_factor=0.5))
GROUPED = dict(tie_word_embeddings=False, n_routed_experts=4, num_experts_per_tok=2, n_shared_experts=1, first_k_dense_replace=1,
               n_group=1, topk_group=1, norm_topk_prob=True, routed_scaling_factor=1.5, pad_token_id=0, rope_theta=10000.0,
               num_nextn_predict_layers=1)
CASES = {
    "qwen3": dict(BASE, model_type="qwen3", tie_word_embeddings=True, rope_theta=10000.0),
    "qwen3_5": dict(HYBRID, model_type="qwen3_5_text"),
    "qwen3_5_moe": dict(HYBRID, model_type="qwen3_5_moe_text", num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16,
                        shared_expert_intermediate_size=24),
    "glm4_moe": dict(BASE, **GROUPED, model_type="glm4_moe", partial_rotary_factor=0.5, use_qk_norm=True, attention_bias=True,
                     moe_intermediate_size=16),
    "deepseek_v3": dict({**BASE, **GROUPED, "num_key_value_heads": 4}, model_type="deepseek_v3", q_lora_rank=24, kv_lora_rank=16, qk_nope_head_dim=12,
                        qk_rope_head_dim=8, v_head_dim=12, moe_intermediate_size=16),
}


def make_model(config):
    settings = CONFIG_MAPPING[config["model_type"]](**{k: v for k, v in config.items() if k != "model_type"})
    model = AutoModelForCausalLM.from_config(settings, attn_implementation="eager").float().eval()
    with torch.no_grad():
        for name, value in model.named_parameters():
            if "norm" in name:
                plain = not config["model_type"].startswith("qwen3_5") or "linear_attn" in name
                value.copy_((1.0 if plain else 0.0) + 0.2 * torch.randn_like(value))
            elif value.ndim >= 2 and "conv1d" not in name:
                scale = 2.0 if "embed" in name or "lm_head" in name else 1.0
                value.copy_(scale * torch.randn_like(value) / value.shape[-1] ** 0.5)
            else:
                value.copy_(0.3 * torch.randn_like(value))
        for name, value in model.named_buffers():
            if name.endswith("e_score_correction_bias"):
                value.copy_(0.1 * torch.randn_like(value))
    return model.requires_grad_(False)


class Drafting:
    """What both heads do with their rows: `rows` gives them, the model's head reads them."""

    def logits(self, rows):
        return self.model.lm_head(rows)

    def chain(self, ids, hidden, depth, forced=None):
        """Draft tokens after ids [n] and their logits, from the model's rows of ids[:-1]; `forced` ones go on instead."""
        y, past = self.rows(ids[1:], hidden[:len(ids) - 1], 0)
        y, tokens, logits = y[-1:], [], []
        for step in range(depth):
            logits.append(self.logits(y)[0])
            tokens.append(int(logits[-1].argmax()) if forced is None else int(forced[step]))
            if step + 1 < depth:
                y, past = self.rows(torch.tensor(tokens[-1:]), y, len(ids) - 1 + step, past)
        return tokens, torch.stack(logits)


class NextLayer(Drafting):
    """The head of GLM and DeepSeek: one more layer of the model between projections and norms of its own."""

    def __init__(self, config, model):
        self.model, self.number = model, config["num_hidden_layers"]
        larger = make_model(dict(config, num_hidden_layers=self.number + 1))
        self.layer = larger.model.layers[self.number].requires_grad_()
        hidden = config["hidden_size"]
        norms = {name: 1.0 + 0.2 * torch.randn(hidden) for name in ("enorm", "hnorm", "shared_head.norm")}
        own = {**norms, "eh_proj": torch.randn(hidden, 2 * hidden) / (2 * hidden) ** 0.5}
        self.own = {name: value.requires_grad_() for name, value in own.items()}
        self.weights = self.own | dict(self.layer.named_parameters())

    def norm(self, x, name):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.own[name]

    def rows(self, tokens, before, first, past=None):
        """As the other head's; the layer runs all rows again."""
        embedded = self.model.get_input_embeddings()(tokens)
        x = torch.cat([self.norm(embedded, "enorm"), self.norm(before, "hnorm")], -1) @ self.own["eh_proj"].T
        x = x if past is None else torch.cat([past, x])
        count = len(x)
        positions = torch.arange(count)[None]
        mask = torch.full((count, count), float("-inf")).triu(1)[None, None]
        y = self.layer(x[None], attention_mask=mask, position_ids=positions,
                       position_embeddings=self.model.model.rotary_emb(x[None], positions))
        y = y[0] if isinstance(y, tuple) else y
        return self.norm(y[0], "shared_head.norm")[-len(tokens):], x

    def stored(self):
        scope = f"model.layers.{self.number}."
        state = {f"{scope}{name}.weight": value for name, value in self.own.items()}
        state |= {scope + name: value for name, value in self.layer.state_dict().items()}
        return state | {f"{scope}embed_tokens.weight": self.model.get_input_embeddings().weight.clone(),
                        f"{scope}shared_head.head.weight": self.model.lm_head.weight.clone()}


class Head(Drafting):
    """Qwen 3.5's head: y[S] = norm(layer(fc [norm(embed(token S + 1)), norm(model's row S)])); the model's head reads y."""

    def __init__(self, config, model):
        self.model, self.heads, self.groups = model, config["num_attention_heads"], config["num_key_value_heads"]
        self.size, self.gated = config["head_dim"], config["model_type"] != "qwen3"
        self.offset = 1.0 if self.gated else 0.0
        rope = config.get("rope_parameters", {})
        self.rotated = int(self.size * rope.get("partial_rotary_factor", 1.0))
        self.theta = rope.get("rope_theta", config.get("rope_theta"))
        hidden, inner, width = config["hidden_size"], config["intermediate_size"], self.heads * self.size
        layer = "layers.0."
        shapes = {
            "fc": (hidden, 2 * hidden), "pre_fc_norm_embedding": (hidden,), "pre_fc_norm_hidden": (hidden,), "norm": (hidden,),
            layer + "input_layernorm": (hidden,), layer + "post_attention_layernorm": (hidden,),
            layer + "self_attn.q_norm": (self.size,), layer + "self_attn.k_norm": (self.size,),
            layer + "self_attn.q_proj": (2 * width if self.gated else width, hidden),
            layer + "self_attn.k_proj": (self.groups * self.size, hidden),
            layer + "self_attn.v_proj": (self.groups * self.size, hidden), layer + "self_attn.o_proj": (hidden, width)}
        self.experts, self.chosen = config.get("num_experts", 0), config.get("num_experts_per_tok", 0)
        mlps = {layer + "mlp": inner}
        if self.experts:
            mlps = {f"{layer}mlp.experts.{e}": config["moe_intermediate_size"] for e in range(self.experts)}
            mlps[layer + "mlp.shared_expert"] = config["shared_expert_intermediate_size"]
            shapes |= {layer + "mlp.gate": (self.experts, hidden), layer + "mlp.shared_expert_gate": (1, hidden)}
        for mlp, size in mlps.items():
            shapes |= {mlp + ".gate_proj": (size, hidden), mlp + ".up_proj": (size, hidden), mlp + ".down_proj": (hidden, size)}
        self.weights = {
            name: (torch.randn(shape) / shape[-1] ** 0.5 if len(shape) == 2
                   else 1.0 - self.offset + 0.2 * torch.randn(shape)).requires_grad_()
            for name, shape in shapes.items()}

    def norm(self, x, name):
        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return x * scale * (self.weights[name] + self.offset)

    def linear(self, x, name):
        return x @ self.weights[name].T

    def rotate(self, x, positions):
        """x [n, heads, size]: the first `rotated` elements of each head turn, halves against each other."""
        half = self.rotated // 2
        angles = positions[:, None, None] * self.theta ** (-torch.arange(half) * 2.0 / self.rotated)
        cos, sin = angles.cos(), angles.sin()
        a, b, rest = x[..., :half], x[..., half:self.rotated], x[..., self.rotated:]
        return torch.cat([a * cos - b * sin, b * cos + a * sin, rest], -1)

    def attend(self, x, positions, past):
        n, layer = x.shape[0], "layers.0.self_attn."
        q = self.linear(x, layer + "q_proj").view(n, self.heads, -1)
        gate = None
        if self.gated:
            q, gate = q.chunk(2, -1)
        k = self.linear(x, layer + "k_proj").view(n, self.groups, self.size)
        v = self.linear(x, layer + "v_proj").view(n, self.groups, self.size)
        q = self.rotate(self.norm(q, layer + "q_norm"), positions)
        k = self.rotate(self.norm(k, layer + "k_norm"), positions)
        if past is not None:
            k, v = torch.cat([past[0], k]), torch.cat([past[1], v])
        kept, seen = (k, v), torch.arange(k.shape[0])[None, :] <= torch.arange(k.shape[0] - n, k.shape[0])[:, None]
        k, v = (rows.repeat_interleave(self.heads // self.groups, 1) for rows in (k, v))
        scores = torch.einsum("nhd,mhd->hnm", q, k) / self.size ** 0.5
        weights = scores.masked_fill(~seen, float("-inf")).softmax(-1)
        rows = torch.einsum("hnm,mhd->nhd", weights, v)
        rows = rows * torch.sigmoid(gate) if self.gated else rows
        return self.linear(rows.reshape(n, -1), layer + "o_proj"), kept

    def rows(self, tokens, before, first, past=None):
        """Rows from position `first` on: tokens [n] are those after them; `before` [n, hidden] as the model gave them."""
        embedded = self.model.get_input_embeddings()(tokens)
        x = self.linear(torch.cat([self.norm(embedded, "pre_fc_norm_embedding"),
                                   self.norm(before, "pre_fc_norm_hidden")], -1), "fc")
        positions = torch.arange(first, first + len(tokens)).float()
        attended, kept = self.attend(self.norm(x, "layers.0.input_layernorm"), positions, past)
        x = x + attended
        normed = self.norm(x, "layers.0.post_attention_layernorm")
        x = x + (self.mixture(normed, "layers.0.mlp") if self.experts else self.mlp(normed, "layers.0.mlp"))
        return self.norm(x, "norm"), kept

    def mlp(self, x, scope):
        inner = torch.nn.functional.silu(self.linear(x, scope + ".gate_proj")) * self.linear(x, scope + ".up_proj")
        return self.linear(inner, scope + ".down_proj")

    def mixture(self, x, scope):
        best, chosen = self.linear(x, scope + ".gate").topk(self.chosen, -1)
        shares = torch.zeros(x.shape[0], self.experts).scatter(-1, chosen, best.softmax(-1))
        routed = sum(shares[:, e:e + 1] * self.mlp(x, f"{scope}.experts.{e}") for e in range(self.experts))
        return routed + torch.sigmoid(self.linear(x, scope + ".shared_expert_gate")) * self.mlp(x, scope + ".shared_expert")

    def stored(self):
        return {f"mtp.{name}.weight": value for name, value in self.weights.items()}


def hidden_of(model, ids):
    with torch.no_grad():
        return model.model(ids[None]).last_hidden_state[0]


def greedy(model, ids, count):
    for _ in range(count):
        with torch.no_grad():
            ids = torch.cat([ids, model(ids[None]).logits[0, -1:].argmax(-1)])
    return ids


def one_by_one(state):
    """Fused experts as checkpoints have them."""
    result = {}
    for name, value in state.items():
        scope, fused, part = name.rpartition(".experts.")
        if not fused:
            result[name] = value
            continue
        halves = value.chunk(2, 1) if part == "gate_up_proj" else [value]
        for single, rows in zip(("gate_proj", "up_proj") if part == "gate_up_proj" else (part,), halves):
            result.update({f"{scope}.experts.{i}.{single}.weight": rows[i] for i in range(rows.shape[0])})
    return result


def learn(head, ids, start):
    """The tokens after `start` by heart, in chains as they are drafted."""
    hidden = hidden_of(head.model, ids)
    optimizer = torch.optim.Adam(head.weights.values(), RATE)
    anchors = torch.arange(start, len(ids) - DEPTH)
    for _ in range(STEPS):
        loss = 0.0
        for anchor in anchors[torch.randperm(len(anchors))[:ANCHORS]].tolist():
            wanted = ids[anchor:anchor + DEPTH]
            loss = loss + torch.nn.functional.cross_entropy(head.chain(ids[:anchor], hidden, DEPTH, wanted)[1], wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def make(name, config, out):
    torch.manual_seed(11)
    model = make_model(config)
    head = (NextLayer if "num_nextn_predict_layers" in config else Head)(config, model)
    prompt = torch.randint(1, config["vocab_size"], (PROMPT,))
    ids = greedy(model, prompt, NEW)
    learn(head, ids, PROMPT)
    hidden = hidden_of(model, ids)
    rounds, context = [], PROMPT + 1  # The first token comes without a draft.
    with torch.no_grad():
        true_logits = head.logits(head.rows(ids[1:], hidden[:-1], 0)[0])
        while context + DEPTH + 1 <= len(ids):
            drafts, logits = head.chain(ids[:context], hidden, DEPTH)
            right = [a == b for a, b in zip(drafts, ids[context:].tolist())] + [False]
            rounds.append((context, drafts, logits, right.index(False)))
            context += right.index(False) + 1
    accepted = [r[3] for r in rounds]
    print(f"{name}: {len(rounds)} rounds, {sum(accepted)} of {DEPTH * len(rounds)} draft tokens right")
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    state = {k: v for k, v in model.state_dict().items() if not (k == "lm_head.weight" and config["tie_word_embeddings"])}
    if config["model_type"].startswith("qwen3_5"):
        # As in checkpoints for text and images.
        state = {k.replace("model.", "model.language_model.", 1): v for k, v in state.items()}
        config = dict(model_type=config["model_type"].removesuffix("_text"), tie_word_embeddings=False, text_config=config)
    state.update({k: v.detach() for k, v in head.stored().items()})
    state = one_by_one(state) if isinstance(head, NextLayer) else state
    save_file({k: v.contiguous() for k, v in state.items()}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    save_file({
        "ids": prompt.int(), "tokens": ids[PROMPT:].int(), "logits": true_logits.contiguous(),
        "context": torch.tensor([r[0] for r in rounds]).int(), "drafts": torch.tensor([r[1] for r in rounds]).int(),
        "drafted": torch.stack([r[2] for r in rounds]), "accepted": torch.tensor(accepted).int(),
    }, folder / "golden.safetensors")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(CASES)} [all]")
    parser.add_argument("--out", type=pathlib.Path, default=GOLDEN)
    args = parser.parse_args()
    torch.set_num_threads(1)
    for case in args.names or CASES:
        make(case, CASES[case], args.out)
