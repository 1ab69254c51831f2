# SPDX-License-Identifier: Apache-2.0
"""A backend for dlm-sway: base, fine-tune, scaled and null views on one copy of the weights.

    models:
      base: {kind: custom, base: path/to/model, entry_point: "saker.sway:SakerBackend"}
      ft:   {kind: custom, base: path/to/model, adapter: path/to/adapter, entry_point: "saker.sway:SakerBackend"}

The checkpoint decides precision and tokenizer: ``dtype`` and ``trust_remote_code`` of the specification have no effect,
and a tokenizer in the adapter's folder is not read.
"""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import numpy as np
from dlm_sway.core.errors import BackendNotAvailableError, ProbeError, SpecValidationError
from dlm_sway.core.model import ModelSpec
from dlm_sway.core.scoring import RollingLogprob, TokenDist

import saker
from saker.sway_instruments import Instruments

PREFLIGHT_PROMPT = "hello"
PREFLIGHT_TOP_K = 8


class SakerView:
    """What probes see of one view: dlm-sway's ``Model`` and ``ScoringBackend``."""

    def __init__(self, view: saker.View, instruments: Instruments) -> None:
        self.id = view.id
        self._view = view
        self._inst = instruments

    def generate(
        self, prompt: str, *, max_new_tokens: int, temperature: float = 0.0, top_p: float = 1.0, seed: int = 0
    ) -> str:
        """The new text; the same seed gives the same text."""
        with probe_errors("generate"):
            answer = self._view.generate(
                prompt, max_tokens=max_new_tokens, temperature=max(temperature, 0.0), top_p=top_p, seed=seed
            )
        return answer.text

    def logprob_of(self, prompt: str, completion: str) -> float:
        """The sum of log p of the completion's tokens, in nats."""

        def compute() -> float:
            with probe_errors("logprob_of"):
                return self._view.logprob_of(prompt, completion)

        return self._inst.cached_one("logprob_of", self._view, f"{prompt}\0{completion}", 0, compute)

    def rolling_logprob(self, text: str) -> RollingLogprob:
        """log p of every token but the first."""

        def compute() -> RollingLogprob:
            with probe_errors("rolling_logprob"):
                found = self._view.rolling_logprob(text)
            return RollingLogprob(found.token_ids, found.logprobs, found.num_tokens, found.total_logprob)

        return self._inst.cached_one("rolling_logprob", self._view, text, 0, compute)

    def next_token_dist(self, prompt: str, *, top_k: int = 256) -> TokenDist:
        """The best candidates after the prompt, and the tail."""
        return self.next_token_dist_batch([prompt], top_k=top_k)[0]

    def next_token_dist_batch(self, prompts: Sequence[str], *, top_k: int = 256) -> list[TokenDist]:
        """``next_token_dist`` of several prompts; those that are not known run in common passes."""

        def compute(missing: list[str]) -> list[TokenDist]:
            with probe_errors("next_token_dist"):
                found = self._view.next_token_dist_batch(missing, top_k=top_k)
            return [TokenDist(each.token_ids, each.logprobs, each.vocab_size, each.tail_logprob) for each in found]

        return self._inst.cached_batch("next_token_dist", self._view, prompts, top_k, compute)

    def close(self) -> None:
        """Nothing: the backend holds the model."""


class SakerBackend:
    """dlm-sway's differential, scalable, null-calibrated backend with a preflight check.

    Views may be used at the same time, from any thread. ``single_view`` refuses a second one while one is active, as
    backends that switch a single model have to.
    """

    safe_for_concurrent_views: bool = True

    def __init__(self, *, base_spec: ModelSpec, adapter_path: Path | None, single_view: bool = False) -> None:
        if adapter_path is None:
            raise SpecValidationError("saker: an adapter is missing; set `adapter:` on the ft model")
        self._base = base_spec.base
        self._adapter = Path(adapter_path).expanduser().resolve()
        self._single_view = single_view
        self.safe_for_concurrent_views = not single_view
        self._active: str | None = None
        self._inst = Instruments()
        base = Path(base_spec.base).expanduser()
        device = "cpu" if base_spec.device in ("auto", "cpu") else "gpu"
        try:
            self._model = saker.load(base if base.exists() else base_spec.base, adapter=self._adapter, device=device)
        except saker.UnsupportedError as error:
            raise BackendNotAvailableError("saker", extra="mlx", hint=str(error)) from error

    def as_base(self) -> AbstractContextManager[SakerView]:
        """The model without adapter."""
        return self._enter(self._model.base())

    def as_finetuned(self) -> AbstractContextManager[SakerView]:
        """The adapter as it is."""
        return self._enter(self._model.ft())

    def as_scaled_adapter(self, lam: float) -> AbstractContextManager[SakerView]:
        """The adapter at a strength; 0 gives the base's bits."""
        return self._enter(self._model.scaled(lam))

    def as_null_adapter(
        self, seed: int, *, init_scale: float = 0.02, rank_scale: float = 1.0
    ) -> AbstractContextManager[SakerView]:
        """Noise in the adapter's shape; scales that are not positive raise ``ValueError``."""
        return self._enter(self._model.null(seed, init_scale=init_scale, rank_scale=rank_scale))

    def preflight_finite_check(self) -> tuple[bool, str]:
        """Whether base and fine-tune give finite numbers, and if not, what is wrong."""
        request = saker.ScoreRequest(prompt=PREFLIGHT_PROMPT, top_k=PREFLIGHT_TOP_K)
        try:
            (outcome,) = self._model.score([request], views=["base", "ft"])
        except saker.Error as error:
            return False, str(error)
        if isinstance(outcome, saker.Error):
            return False, str(outcome)
        for view in outcome.views:
            assert view.next is not None
            bad = int((~np.isfinite(view.next.logprobs)).sum())
            tail = view.next.tail_logprob
            if bad > 0 or (tail is not None and not np.isfinite(tail)):
                return False, (
                    f"{view.view} view: {bad} of {view.next.logprobs.size} log-probabilities after {PREFLIGHT_PROMPT!r} "
                    f"are not finite, and the tail is {tail}"
                )
        return True, ""

    def cache_identity(self) -> str:
        """Names what the numbers depend on: saker's version, the base, and the adapter's content."""
        digest = hashlib.blake2b(digest_size=16)
        for file in sorted(self._adapter.glob("adapter*")):
            if file.is_file():
                digest.update(file.name.encode() + b"\0" + file.read_bytes())
        return f"saker-{saker.__version__}:{self._base}:{self._adapter}:{digest.hexdigest()}"

    def close(self) -> None:
        """Frees the model; may be called again, and on what was never whole."""
        if hasattr(self, "_inst"):
            self._inst.close()
        if hasattr(self, "_model"):
            self._model.close()

    @contextmanager
    def _enter(self, view: saker.View) -> Iterator[SakerView]:
        if self._single_view and self._active is not None:
            raise RuntimeError(
                f"SakerBackend view {self._active!r} already active; exit it before entering {view.id!r}."
            )
        self._active = view.id
        try:
            yield SakerView(view, self._inst)
        finally:
            self._active = None


@contextmanager
def probe_errors(operation: str) -> Iterator[None]:
    """What saker refuses becomes dlm-sway's ``ProbeError``."""
    try:
        yield
    except saker.Error as error:
        raise ProbeError(operation, str(error)) from error
