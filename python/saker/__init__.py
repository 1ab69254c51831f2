# SPDX-License-Identifier: Apache-2.0
"""Language models on MLX: generation, and exact scores of a base model and of what adapters change.

    import saker

    model = saker.load("org/name", pull=True)            # or a folder, a GGUF file, "org/name:Q4_K_M"; nothing: a demo
    answer = model.generate("Once upon a time", max_tokens=50, temperature=0.8, seed=7)
    print(answer.text, answer.finish_reason, answer.stats.generation_tps)

    question = [{"role": "user", "content": "Why is the sky blue?"}]
    for piece in model.stream(question):                 # chat messages go through the model's template
        print(piece, end="", flush=True)

    tuned = saker.load("path/to/model", adapter="path/to/adapter")
    print(tuned.base().logprob_of("2 + 2 =", " 4"), tuned.ft().logprob_of("2 + 2 =", " 4"))

What there is:

    load(path, ...)          a Model; its keywords are those of the command line (help(saker.load))
    Model.generate, stream   answers; options: help(saker.GenerateOptions)
    Model.encode, decode, render_chat, stop_tokens, special_token
    Model.base, ft, scaled, null, view    a View: generate, logprob_of, rolling_logprob, next_token_dist, forward_logits
    Model.embed, rerank      vectors of texts (help(saker.EmbedOptions)); documents by how they answer a query
    Model.score, differences, preflight   many requests in many views; what an adapter changes
    Model.facts, score_stats, prefix_cache_stats
    inspect(path)            what a model is and whether it runs: sizes, quantization, tensors
    pull(name)               a model from the Hugging Face hub into the cache
    convert(source, target, bits=4)       a model quantized, dequantized or in another dtype
    caches                   mlx-lm's cache classes over arrays of mlx.core (help(saker.caches))
    set_log_level("debug")   what comes on standard error
    Error and its classes    each also the built-in class that fits it: NotFoundError is a FileNotFoundError

One copy of the weights serves all views: the base, adapters at any strength, and null adapters. Everything may be
called from several threads; the GIL is free while the model runs. docs/python.md of the source says more.
"""

from typing import TYPE_CHECKING

from saker import mlx_library

mlx_library.load()

# What follows needs MLX.
from saker._native import VERSION as __version__  # noqa: E402
from saker._native import (  # noqa: E402
    ConvertReport,
    Differences,
    Event,
    GenerateResult,
    ModelFacts,
    PrefixCacheStats,
    PullReport,
    ScoreRequest,
    ScoreResult,
    ScoreStats,
    ViewDifference,
    ViewScores,
    set_log_level,
)
from saker import representations  # noqa: E402, F401
from saker.conversion import convert  # noqa: E402
from saker.embed_options import EmbedOptions  # noqa: E402
from saker.errors import (  # noqa: E402
    CancelledError,
    CapacityError,
    CorruptDataError,
    Error,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    UnsupportedError,
)
from saker.generate_options import GenerateOptions  # noqa: E402
from saker.hub import pull  # noqa: E402
from saker.inspection import inspect  # noqa: E402
from saker.model import Model, Stream, View, load  # noqa: E402
from saker.scores import RollingLogprob, TokenDist  # noqa: E402

if TYPE_CHECKING:
    from saker import caches as caches
else:

    def __getattr__(name: str) -> object:
        """``saker.caches`` when it is first used: it imports mlx.core, which the rest does not need."""
        if name == "caches":
            import importlib

            return importlib.import_module("saker.caches")
        raise AttributeError(f"module 'saker' has no attribute {name!r}")


__all__ = [
    "CancelledError",
    "CapacityError",
    "ConvertReport",
    "CorruptDataError",
    "Differences",
    "EmbedOptions",
    "Error",
    "GenerateOptions",
    "Event",
    "GenerateResult",
    "InternalError",
    "InvalidArgumentError",
    "Model",
    "ModelFacts",
    "NotFoundError",
    "PrefixCacheStats",
    "PullReport",
    "RollingLogprob",
    "ScoreRequest",
    "ScoreResult",
    "ScoreStats",
    "Stream",
    "TokenDist",
    "UnsupportedError",
    "View",
    "ViewDifference",
    "ViewScores",
    "__version__",
    "convert",
    "inspect",
    "load",
    "pull",
    "set_log_level",
]
