# SPDX-License-Identifier: Apache-2.0
"""Scores as dlm-sway's probes read them; natural logarithms."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from saker import _native
from saker.errors import InvalidArgumentError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class RollingLogprob:
    """The log-probability of each token of a text but the first, given those before it."""

    token_ids: NDArray[np.int64]
    """[N]"""
    logprobs: NDArray[np.float32]
    """[N - 1]; empty for fewer than two tokens."""
    num_tokens: int
    """N"""
    total_logprob: float
    """The sum, in float64."""

    @property
    def mean_logprob(self) -> float:
        """Per scored token; 0.0 when there is none."""
        return self.total_logprob / self.logprobs.size if self.logprobs.size else 0.0

    @property
    def perplexity(self) -> float:
        """``exp(-mean_logprob)``; inf where that is above the largest float."""
        try:
            return math.exp(-self.mean_logprob)
        except OverflowError:
            return math.inf


@dataclass(frozen=True, slots=True)
class TokenDist:
    """The best candidates for the next token, and the probability of all others together."""

    token_ids: NDArray[np.int64]
    """[K], best first; ties: the lower id first."""
    logprobs: NDArray[np.float32]
    """[K]"""
    vocab_size: int
    tail_logprob: float | None = None
    """None when the candidates are the whole vocabulary; 0.0 when the others have at most 1e-12 together; NaN when
    logits are broken."""
    tail_underflow: bool = False
    """Tells that 0.0 from a log-probability."""


def joined(parts: list[NDArray[np.float32]]) -> NDArray[np.float32]:
    """One array of several, which are at least one."""
    if len(parts) == 1:
        return parts[0]
    import numpy as np

    return np.concatenate(parts)


def logprob_of(result: _native.ScoreResult) -> float:
    """The first view's sum over all tokens of a completion."""
    if result.first_token_unscored:
        raise InvalidArgumentError(
            "the prompt has no tokens: nothing is before the completion's first one, which has no log-probability"
        )
    return result.views[0].sum


def rolling_logprob(result: _native.ScoreResult) -> RollingLogprob:
    """The first view of a scored text."""
    view = result.views[0]
    tokens = result.tokens
    return RollingLogprob(tokens, view.logprobs[1:].astype("float32"), len(tokens), view.sum)


def token_dist(result: _native.ScoreResult) -> TokenDist:
    """The first view of a scored prompt."""
    found = result.views[0].next
    assert found is not None
    return TokenDist(
        found.token_ids, found.logprobs.astype("float32"), found.vocab_size, found.tail_logprob, found.tail_underflow
    )
