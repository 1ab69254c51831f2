# SPDX-License-Identifier: Apache-2.0
"""Models of mlx-lm on saker's caches and on its own: the same tokens and log-probabilities, bit for bit, and the same files."""

import copy
import importlib
import pathlib
import tempfile
import types
import unittest

import mlx.core as mx
from mlx.utils import tree_map

from saker import caches

try:
    from mlx_lm.models import cache as theirs
    from mlx_lm.models import falcon_h1, gemma3_text, llama, llama4, mamba2

    theirs_generate = importlib.import_module("mlx_lm.generate")  # The package has a function of this name.
except ImportError:
    theirs = None

PROMPT = [(7 * i) % 61 for i in range(37)]
SHARED = {"vocab_size": 61, "hidden_size": 64, "num_hidden_layers": 4, "intermediate_size": 96, "rms_norm_eps": 1e-5}
HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64}


def with_weights(module, dtype=mx.bfloat16, **arguments):
    """A model with random weights."""
    mx.random.seed(3)
    model = module.Model(module.ModelArgs.from_dict(arguments))
    model.update(tree_map(lambda weight: (0.2 * mx.random.normal(weight.shape)).astype(dtype), model.parameters()))
    mx.eval(model.parameters())
    return model


def make_llama(**more):
    return with_weights(llama, model_type="llama", **SHARED, **HEADS, **more)


def make_gemma():
    return with_weights(gemma3_text, model_type="gemma3_text", **SHARED, **HEADS, sliding_window=16, sliding_window_pattern=2)


def make_llama4():
    text = {"model_type": "llama4_text", "attention_bias": False, "attention_chunk_size": 16, "interleave_moe_layer_step": 2}
    text |= {"intermediate_size_mlp": 96, "max_position_embeddings": 256, "num_experts_per_tok": 1, "num_local_experts": 2}
    text |= {"rope_scaling": None, "rope_theta": 10000.0, "use_qk_norm": True}
    return with_weights(llama4, mx.float32, model_type="llama4", text_config=SHARED | HEADS | text)


def make_mamba():
    sizes = {"num_heads": 4, "head_dim": 16, "state_size": 16, "conv_kernel": 4, "n_groups": 1, "time_step_rank": 4}
    sizes |= {"use_bias": False, "use_conv_bias": True, "tie_word_embeddings": True, "time_step_limit": (0.0, 10.0), "layer_norm_epsilon": 1e-5}
    return with_weights(mamba2, model_type="mamba2", **SHARED, **sizes)


def make_falcon():
    sizes = {"mamba_d_ssm": 64, "mamba_n_heads": 4, "mamba_d_head": 16, "mamba_d_state": 16, "mamba_chunk_size": 16}
    return with_weights(falcon_h1, model_type="falcon_h1", **SHARED, **HEADS, **sizes)


MODELS = {"llama": make_llama, "gemma3": make_gemma, "llama4": make_llama4, "mamba2": make_mamba, "falcon_h1": make_falcon}


@unittest.skipIf(theirs is None, "mlx_lm is not installed")
class MlxLm(unittest.TestCase):
    def assert_bits(self, found, expected):
        self.assertEqual(found.shape, expected.shape)
        self.assertTrue(mx.isfinite(expected).all().item())
        self.assertTrue(mx.array_equal(found, expected).item())

    def assert_caches(self, ours, others):
        """The same class names and valid rows, for classes with keys."""
        for one, other in zip(ours, others, strict=True):
            self.assertEqual(type(one).__name__, type(other).__name__)
            if hasattr(one, "keys") and isinstance(one.keys, mx.array):
                self.assert_bits(one.keys, other.keys_and_values()[0][..., : one.keys.shape[2], :])

    def answers(self, model, prompt_cache, **options):
        steps = theirs_generate.generate_step(
            mx.array(PROMPT), model, prompt_cache=prompt_cache, max_tokens=20, prefill_step_size=11, **options
        )
        tokens, logprobs = zip(*steps)
        return list(tokens), mx.stack(logprobs)

    def same_answers(self, model, ours, others, **options):
        tokens, logprobs = self.answers(model, ours, **options)
        expected, expected_logprobs = self.answers(model, others, **options)
        self.assertEqual(tokens, expected)
        self.assert_bits(logprobs, expected_logprobs)
        self.assert_caches(ours, others)

    def test_every_kind_of_layer(self):
        for name, make in MODELS.items():
            with self.subTest(name):
                model = make()
                self.same_answers(model, caches.make_prompt_cache(model), theirs.make_prompt_cache(model))

    def test_a_bounded_number_of_tokens(self):
        model = types.SimpleNamespace(layers=[None] * SHARED["num_hidden_layers"])
        for size in (8, 40, 512):
            self.same_answers(make_llama(), caches.make_prompt_cache(model, size), theirs.make_prompt_cache(model, size))

    def test_rows_that_become_quantized(self):
        model = make_llama()
        for start in (0, 40):
            with self.subTest(start):
                options = {"kv_bits": 4, "kv_group_size": 32, "quantized_kv_start": start}
                self.same_answers(model, caches.make_prompt_cache(model), theirs.make_prompt_cache(model), **options)

    def test_drafts_that_are_taken_back(self):
        model, draft = make_llama(), make_llama(rope_theta=9000.0)
        answers = []
        for module in (caches, theirs):
            prompt_cache = module.make_prompt_cache(model) + module.make_prompt_cache(draft)
            steps = theirs_generate.speculative_generate_step(
                mx.array(PROMPT), model, draft, num_draft_tokens=3, max_tokens=20, prompt_cache=prompt_cache
            )
            tokens, logprobs, drafted = zip(*steps)
            answers.append(([int(token) for token in tokens], mx.stack(logprobs), drafted))
        self.assertEqual((answers[0][0], answers[0][2]), (answers[1][0], answers[1][2]))
        self.assert_bits(answers[0][1], answers[1][1])

    def test_batches(self):
        prompts = [PROMPT[:9], PROMPT, PROMPT[5:22]]
        tokenizer = types.SimpleNamespace(eos_token_ids=[], decode=str)
        for name, make in MODELS.items():
            if name == "llama4":  # Chunks are not batched in mlx-lm.
                continue
            with self.subTest(name):
                model = make()
                made = []
                for module in (caches, theirs):
                    given = [module.make_prompt_cache(model) for _ in prompts]
                    answer = theirs_generate.batch_generate(
                        model, tokenizer, prompts, given, max_tokens=[12, 5, 9], return_token_ids=True, return_logprobs=True,
                        return_prompt_caches=True, prefill_step_size=8,
                    )  # fmt: skip
                    made.append((answer.token_ids, answer.logprobs))
                    self.assertIs(type(answer.caches[0][0]), getattr(module, type(answer.caches[0][0]).__name__))
                self.assertEqual(made[0], made[1])

    def test_files_go_both_ways(self):
        for name, make in MODELS.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                model, file = make(), str(pathlib.Path(folder) / "prompt.safetensors")
                ours, others = caches.make_prompt_cache(model), theirs.make_prompt_cache(model)
                for cache in (ours, others):
                    mx.eval(model(mx.array([PROMPT]), cache=cache))
                following = mx.array([[1]])
                expected = model(following, cache=copy.deepcopy(others))
                caches.save_prompt_cache(file, ours, {"model": "x"})
                loaded, metadata = theirs.load_prompt_cache(file, return_metadata=True)
                self.assertEqual(metadata, {"model": "x"})
                self.assert_bits(model(following, cache=loaded), expected)
                theirs.save_prompt_cache(file, others)
                self.assert_bits(model(following, cache=caches.load_prompt_cache(file)), expected)
                theirs.save_prompt_cache(file, ours)  # Its own writer takes our classes, too.
                self.assert_bits(model(following, cache=caches.load_prompt_cache(file)), expected)


if __name__ == "__main__":
    unittest.main()
