# SPDX-License-Identifier: Apache-2.0
"""The model ``saker`` for lm-evaluation-harness.

    python -m saker.lm_eval run --model saker --model_args path=MODEL,adapter=DIR --tasks NAME --include_path DIR

is the harness's own command line with that model known to it; in Python, ``lm_eval.simple_evaluate(SakerLM(path), ...)``.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from lm_eval.__main__ import cli_evaluate
from lm_eval.api.instance import Instance
from lm_eval.api.model import TemplateLM
from lm_eval.api.registry import register_model
from lm_eval.models.utils import normalize_gen_kwargs
from lm_eval.utils import get_rolling_token_windows, make_disjoint_window
from tqdm import tqdm

import saker

SAMPLING = frozenset(
    ("temperature", "top_p", "top_k", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty", "seed")
)
LoglikelihoodRequest = tuple[tuple[str, str], list[int], list[int]]


@register_model("saker")
class SakerLM(TemplateLM):
    """A model, or one view of it, as the harness asks for it.

    ``view`` is a view's key (``ft``, ``0.5``, ``null:7``); without it the fine-tune where an adapter is given. Prompts are
    encoded as the tokenizer's configuration says. What has more than ``max_length`` tokens before its last one loses its
    beginning; rolling likelihoods are taken in windows of that length. ``batch_size`` requests run together.
    """

    def __init__(
        self,
        path: str,
        adapter: str | None = None,
        view: str | None = None,
        max_length: int | None = None,
        max_gen_toks: int = 256,
        threads: int = 0,
        batch_size: int | str = 64,
        max_batch_size: int | None = None,
        device: str | None = None,
    ) -> None:
        super().__init__()
        self._model = saker.load(path, adapter=adapter, threads=int(threads), device="gpu" if device == "gpu" else "cpu")
        self._view = self._model.default_view if view is None else self._model.view(str(view))
        context = self._model.facts.context_length
        self.max_length = min(int(max_length), context) if max_length else context
        self.max_gen_toks = int(max_gen_toks)
        self.batch_size = int(batch_size) if str(batch_size).isdigit() else 64
        self._tokens = special_tokens(self._model)

    @property
    def eot_token_id(self) -> int:
        if "eos" not in self._tokens:
            raise saker.UnsupportedError("the model's files name no end-of-sequence token")
        return self._tokens["eos"]

    @property
    def prefix_token_id(self) -> int:
        """What empty contexts are: BOS, or where there is none, end of sequence."""
        return self._tokens["bos"] if "bos" in self._tokens else self.eot_token_id

    @property
    def tokenizer_name(self) -> str:
        return self._model.path.replace("/", "__")

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        return self._model.render_chat(chat_history, add_generation_prompt=add_generation_prompt)

    def tok_encode(self, string: str, add_special_tokens: bool | None = None, **_: Any) -> list[int]:
        bos = self._tokens.get("bos")
        if add_special_tokens is None and bos is not None:
            add_special_tokens = not string.startswith(self._model.decode([bos]))  # A template wrote it.
        return self._model.encode(string, add_special_tokens=add_special_tokens is not False)

    def _loglikelihood_tokens(
        self, requests: Sequence[LoglikelihoodRequest], disable_tqdm: bool = False, **_: Any
    ) -> list[tuple[float, bool]]:
        wanted = [self._score_request(context, continuation) for _, context, continuation in requests]
        results = []
        for first in tqdm(range(0, len(wanted), self.batch_size), desc="Scoring", disable=disable_tqdm):
            results += self._scores(wanted[first : first + self.batch_size])
        for request, result in zip(requests, results, strict=True):
            self.cache_hook.add_partial("loglikelihood", request[0], result)
        return results

    def loglikelihood_rolling(self, requests: list[Instance], disable_tqdm: bool = False) -> list[float]:
        totals = []
        for request in tqdm(requests, desc="Scoring", disable=disable_tqdm):
            windows = get_rolling_token_windows(
                token_list=self.tok_encode(request.args[0]),
                prefix_token=self.prefix_token_id,
                max_seq_len=self.max_length,
                context_len=1,
            )
            scores = self._scores([self._score_request(*make_disjoint_window(window)) for window in windows])
            totals.append(sum(logprob for logprob, _ in scores))
            self.cache_hook.add_partial("loglikelihood_rolling", request.args, totals[-1])
        return totals

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        texts: list[str] = []
        progress = tqdm(total=len(requests), desc="Generating", disable=disable_tqdm)
        for first in range(0, len(requests), self.batch_size):
            chunk = requests[first : first + self.batch_size]
            streams = [self._stream(*request.args) for request in chunk]
            for request, stream in zip(chunk, streams, strict=True):
                texts.append(stream.result().text)
                self.cache_hook.add_partial("generate_until", request.args, texts[-1])
                progress.update()
        progress.close()
        return texts

    def _score_request(self, context: list[int], continuation: list[int]) -> saker.ScoreRequest:
        whole = (context + continuation)[-self.max_length - 1 :]  # The last token is only scored.
        seen = max(len(whole) - len(continuation), 0)
        return saker.ScoreRequest(tokens=whole[seen:], prompt_tokens=whole[:seen])

    def _scores(self, requests: list[saker.ScoreRequest]) -> list[tuple[float, bool]]:
        results = []
        for outcome in self._model.score(requests, views=[self._view]):
            if isinstance(outcome, saker.Error):
                raise outcome
            results.append((outcome.views[0].sum, outcome.views[0].is_greedy))
        return results

    def _stream(self, context: str, arguments: dict[str, Any]) -> saker.Stream:
        options: dict[str, Any] = dict(normalize_gen_kwargs(arguments, self.max_gen_toks))
        most = int(options["max_gen_toks"])
        room = self.max_length - most
        if room < 1:
            raise saker.InvalidArgumentError(
                f"max_gen_toks: got {most}, expected less than the {self.max_length} tokens of the context"
            )
        wanted = {name: options[name] for name in SAMPLING & options.keys()}
        wanted |= {"max_tokens": most, "stop": [text for text in options["until"] if text]}
        return self._view.stream(self.tok_encode(context)[-room:], **cast(saker.GenerateOptions, wanted))


def special_tokens(model: saker.Model) -> dict[str, int]:
    """Ids of ``bos`` and ``eos``: as the tokenizer names them, else as the model's files do."""
    found = {}
    for kind in ("bos", "eos"):
        token = model.special_token(f"{kind}_token")
        for name in ("generation_config.json", "config.json"):
            file = Path(model.path) / name
            if token is None and file.exists():
                token_or_tokens = json.loads(file.read_text(encoding="utf-8")).get(f"{kind}_token_id")
                token = token_or_tokens[0] if isinstance(token_or_tokens, list) else token_or_tokens
        if token is not None:
            found[kind] = int(token)
    return found


if __name__ == "__main__":
    cli_evaluate()
