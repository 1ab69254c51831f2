# SPDX-License-Identifier: Apache-2.0
"""Language models on MLX: generation, and exact scores of a base model and of what adapters change.

    import saker

    model = saker.load("path/to/model", adapter="path/to/adapter")
    print(model.generate("Once upon a time", max_tokens=50).text)
    print(model.base().logprob_of("2 + 2 =", " 4"), model.ft().logprob_of("2 + 2 =", " 4"))

One copy of the weights serves all views: the base, adapters at any strength, and null adapters. Everything may be
called from several threads; the GIL is free while the model runs.
"""

from saker import mlx_library

mlx_library.load()

# What follows needs MLX.
from saker._native import VERSION as __version__  # noqa: E402
from saker._native import (  # noqa: E402
    ConvertReport,
    Differences,
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
from saker.hub import pull  # noqa: E402
from saker.model import GenerateOptions, Model, Stream, View, load  # noqa: E402
from saker.scores import RollingLogprob, TokenDist  # noqa: E402

__all__ = [
    "CancelledError",
    "CapacityError",
    "ConvertReport",
    "CorruptDataError",
    "Differences",
    "Error",
    "GenerateOptions",
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
    "load",
    "pull",
    "set_log_level",
]
