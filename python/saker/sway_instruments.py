# SPDX-License-Identifier: Apache-2.0
"""What dlm-sway's runner reads of a backend, its cache, statistics and trace, for views that are known exactly.

dlm-sway's own keys hold 48 bits of a hash of the prompt and the view's id. Keys here hold the prompt itself and the view's key with all its numbers; the trace has the ids.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

from dlm_sway.backends._instrumentation import (
    _MISS,
    BackendInstrumentation,
    BackendStats,
    _prompt_hash,
    _TraceEvent,
)

import saker

Result = TypeVar("Result")


@dataclass(slots=True)
class BatchStats(BackendStats):
    """``forward_passes`` are calls that reached the model, be it with several prompts."""

    batches_sent: int = 0
    """Such calls with two prompts or more, and what they held."""
    batched_prompts: int = 0
    max_batch_size: int = 0

    @property
    def avg_batch_size(self) -> float:
        return self.batched_prompts / self.batches_sent if self.batches_sent else 0.0

    def to_dict(self) -> dict[str, float | int]:
        return BackendStats.to_dict(self) | {
            "batches_sent": self.batches_sent,
            "batched_prompts": self.batched_prompts,
            "max_batch_size": self.max_batch_size,
            "avg_batch_size": self.avg_batch_size,
        }


class Instruments(BackendInstrumentation):
    """Safe for views that are used at the same time."""

    def __init__(self) -> None:
        super().__init__()
        self.stats: BatchStats = BatchStats()
        self._counting = threading.Lock()

    def cached_one(
        self, op: str, view: saker.View, prompt: str, top_k: int, compute: Callable[[], Result]
    ) -> Result:
        """The known result, or what ``compute`` gives."""
        return self.cached_batch(op, view, [prompt], top_k, lambda _: [compute()])[0]

    def cached_batch(
        self,
        op: str,
        view: saker.View,
        prompts: Sequence[str],
        top_k: int,
        compute: Callable[[list[str]], list[Result]],
    ) -> list[Result]:
        """A result for each prompt: the known ones, and those that one call of ``compute`` gives for the others."""
        start = time.perf_counter()
        keys = [(op, view.key, prompt, top_k) for prompt in prompts]
        known = [self.cache.get(key) for key in keys]
        missing = [i for i, value in enumerate(known) if value is _MISS]
        looked_up = time.perf_counter()
        if missing:
            computed = compute([prompts[i] for i in missing])
            if len(computed) != len(missing):
                raise RuntimeError(f"{op}: got {len(computed)} results for {len(missing)} prompts, a backend bug")
            for i, value in zip(missing, computed, strict=True):
                known[i] = value
                self.cache.put(keys[i], value)
        done = time.perf_counter()
        self._count(len(prompts), len(missing), done - start)
        hits = len(prompts) - len(missing)
        computing = set(missing)
        for i, prompt in enumerate(prompts):
            hit = i not in computing
            wall = (looked_up - start) / hits if hit else (done - looked_up) / len(missing)
            self.trace.write(
                _TraceEvent(
                    ts=time.time(),
                    probe=self._current_probe,
                    view_id=view.id,
                    prompt_hash=_prompt_hash(prompt),
                    top_k=top_k,
                    op=op,
                    wall_ms=wall * 1000.0,
                    hit=hit,
                )
            )
        return cast("list[Result]", known)

    def _count(self, prompts: int, missing: int, wall_s: float) -> None:
        with self._counting:
            self.stats.cache_hits += prompts - missing
            self.stats.cache_misses += missing
            self.stats.scoring_wall_s += wall_s
            self.stats.forward_passes += 1 if missing else 0
            if missing > 1:
                self.stats.batches_sent += 1
                self.stats.batched_prompts += missing
                self.stats.max_batch_size = max(self.stats.max_batch_size, missing)
