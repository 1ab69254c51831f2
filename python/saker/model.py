# SPDX-License-Identifier: Apache-2.0
"""A loaded model and its views."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, cast

from saker import _native, bundled, hub, scores
from saker.embed_options import EMBED_DEFAULTS, EmbedOptions
from saker.errors import Error, InvalidArgumentError
from saker.generate_options import GenerateOptions
from saker.options import bytes_of, canonical, set_option
from saker.scores import RollingLogprob, TokenDist

if TYPE_CHECKING:  # NumPy takes longer to import than all else.
    import numpy as np
    from numpy.typing import NDArray

Path = str | os.PathLike[str]
Message = Mapping[str, Any]
Prompt = str | Sequence[int] | Sequence[Message]
"""A text, token ids, or chat messages (``[{"role", "content"}, ...]``) for the model's template."""

Result = TypeVar("Result")
MOST_CANDIDATES = 2**31 - 1
"""More than any vocabulary has."""
BATCH = 64
"""Requests that run together; between such batches Python sees signals."""
EMBED_BATCH = 256
"""Texts that become vectors together."""


def _json(value: object) -> str:
    """Texts as they are: what UTF-8 can't hold is found where the JSON is read."""
    return json.dumps(value, ensure_ascii=False)


def _set_up(request: _native.Request, prompt: Prompt, options: GenerateOptions) -> None:
    if isinstance(prompt, str):
        request.prompt = prompt
    elif not hasattr(prompt, "__len__") or isinstance(prompt, Mapping | bytes):
        raise TypeError(f"prompt: got {type(prompt).__name__}, expected a text, token ids or chat messages")
    elif len(prompt) > 0 and isinstance(prompt[0], Mapping):
        request.set_messages(_json(prompt))
    else:
        request.tokens = cast("Sequence[int]", prompt)
    for name, value in canonical(options).items():
        set_option(request, name, value)


class Stream(Iterator[str], AsyncIterator[str]):
    """An answer on its way: an iterator over pieces of its text, for ``for`` and ``async for``.

    An answer to messages gives its content here; ``events`` has its reasoning and calls as well. Several readers share
    the events. Ends cancelled when nobody holds it.
    """

    def __init__(self, native: _native.Stream) -> None:
        self._native = native

    def __next__(self) -> str:
        for event in self.events():
            if event.kind == "content":
                return cast("str", event.text)
        raise StopIteration

    async def __anext__(self) -> str:
        import asyncio

        piece = await asyncio.to_thread(next, self, None)
        if piece is None:
            raise StopAsyncIteration
        return piece

    def __aiter__(self) -> "Stream":
        return self

    def events(self) -> Iterator[_native.Event]:
        """All that happens, in order; see ``saker.Event``."""
        while (event := self._native.next()) is not None:
            yield event

    def cancel(self) -> None:
        """Ends the answer with what it has so far; may be called from any thread."""
        self._native.cancel()

    def result(self) -> _native.GenerateResult:
        """Waits for the end: the whole answer."""
        return self._native.wait()

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: object) -> None:
        self.cancel()


class View:
    """One way to see the model: the base, an adapter at a strength, or a null adapter.

    A view holds nothing of its own: any number may be used at the same time, in and after a ``with`` block. A model that
    was loaded with ``single_view`` refuses a ``with`` block inside another one.
    """

    def __init__(self, model: "Model", key: str) -> None:
        self._model = model
        self.key = key
        """As ``Model.score`` names it."""
        self.id = model._native.view_id(key)
        """``base``, ``ft``, ``scaled_0.50``, ``null_7``, ``null_7_rank2.00``; ``ft:NAME`` of an adapter after the first."""

    def __repr__(self) -> str:
        return f"View({self.key!r})"

    def __enter__(self) -> "View":
        self._model._enter(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._model._leave()

    def generate(self, prompt: Prompt, **options: Unpack[GenerateOptions]) -> _native.GenerateResult:
        """Continues a prompt and waits for the whole answer."""
        return self.stream(prompt, **options).result()

    def stream(self, prompt: Prompt, **options: Unpack[GenerateOptions]) -> Stream:
        """Continues a prompt; iterate over the pieces of text, or over ``events()``."""
        native = self._model._native
        request = native.request(self.key)
        _set_up(request, prompt, options)
        return Stream(native.submit(request))

    def logprob_of(self, prompt: str, completion: str) -> float:
        """The sum of log p of the completion's tokens after the prompt, in nats.

        A prompt without tokens, such as ``""`` where the tokenizer puts no BOS, is an error.
        """
        return self.logprob_of_batch([(prompt, completion)])[0]

    def logprob_of_batch(self, pairs: Iterable[tuple[str, str]]) -> list[float]:
        """``logprob_of`` of (prompt, completion) pairs, in common passes: the same bits, less time."""
        requests = [_native.ScoreRequest(prompt=prompt, completion=completion) for prompt, completion in pairs]
        return self._each(requests, scores.logprob_of)

    def rolling_logprob(self, text: str, *, stride: int = 0) -> RollingLogprob:
        """log p of every token of a text after those before it.

        A text longer than the model's context is an error, unless ``stride`` > 0: then windows of the context's length
        move by so many tokens.
        """
        return self.rolling_logprob_batch([text], stride=stride)[0]

    def rolling_logprob_batch(self, texts: Iterable[str], *, stride: int = 0) -> list[RollingLogprob]:
        """``rolling_logprob`` of several texts, in common passes."""
        return self._each([_native.ScoreRequest(text=text, stride=stride) for text in texts], scores.rolling_logprob)

    def forward_logits(self, prompt: str | Sequence[int]) -> NDArray[np.float32]:
        """The raw logits after each token of a text, or of token ids: float32 [T, V], row t after token t.

        They take 4 T V bytes; a text longer than the model's context is an error.
        """
        request = (
            _native.ScoreRequest(text=prompt) if isinstance(prompt, str) else _native.ScoreRequest(tokens=prompt)
        )
        return self._model._native.logits(request, self.key)

    def next_token_dist(self, prompt: str, *, top_k: int = 256) -> TokenDist:
        """The distribution of the token after a prompt: its ``top_k`` best and the tail."""
        return self.next_token_dist_batch([prompt], top_k=top_k)[0]

    def next_token_dist_batch(self, prompts: Iterable[str], *, top_k: int = 256) -> list[TokenDist]:
        """``next_token_dist`` of several prompts, in common passes."""
        if top_k < 1:
            raise InvalidArgumentError(f"top_k: got {top_k}, expected 1 or more")
        top_k = min(top_k, MOST_CANDIDATES)
        return self._each([_native.ScoreRequest(prompt=prompt, top_k=top_k) for prompt in prompts], scores.token_dist)

    def embed(
        self, texts: str | Sequence[str | Sequence[int]], **options: Unpack[EmbedOptions]
    ) -> NDArray[np.float32]:
        """Vectors of texts or token ids: float32 [N, size], in common passes; [size] of a single text.

        Each vector has the bits that it has alone. Keywords: ``EmbedOptions``.
        """
        inputs: list[str | Iterable[int]] = [texts] if isinstance(texts, str) else list(texts)
        given = {**EMBED_DEFAULTS, **options}
        parts = [
            self._model._native.embed(inputs[first : first + EMBED_BATCH], self.key, **given)
            for first in range(0, max(len(inputs), 1), EMBED_BATCH)
        ]
        vectors = scores.joined(parts)
        return vectors[0] if isinstance(texts, str) else vectors

    def rerank(
        self, query: str, documents: Sequence[str], *, instruction: str = "", truncate: bool = False
    ) -> NDArray[np.float64]:
        """The score of each document, float64 [N]: the probability that it answers the query.

        ``instruction`` is the task in a sentence (default: the model's own). Documents that do not fit the model's context
        are an error, unless ``truncate`` is set.
        """
        return self._model._native.rerank(query, list(documents), self.key, instruction, truncate)

    def _each(
        self, requests: list[_native.ScoreRequest], read: Callable[[_native.ScoreResult], Result]
    ) -> list[Result]:
        """Raises the first error."""
        results = []
        for outcome in self._model.score(requests, views=[self]):
            if isinstance(outcome, Error):
                raise outcome
            results.append(read(outcome))
        return results


class Model:
    """A loaded model: made by ``load``. Its own ``generate`` and scores are those of ``default_view``."""

    def __init__(self, native: _native.Model, default_key: str, single_view: bool = False) -> None:
        self._native = native
        self._single_view = single_view
        self._active: str | None = None
        self._lock = threading.Lock()
        self.default_view = View(self, default_key)
        """``ft`` where an adapter was loaded, else ``base``."""

    @property
    def path(self) -> str:
        """The folder or file that was loaded."""
        return self._native.path

    @property
    def facts(self) -> _native.ModelFacts:
        """What was asked for and found, type, sizes, instruction set."""
        return self._native.facts

    @property
    def prefix_cache_stats(self) -> _native.PrefixCacheStats:
        """What prompts shared since the model was loaded."""
        return self._native.prefix_cache_stats

    def __repr__(self) -> str:
        return f"Model({self.path!r}, {self.facts.model_type!r})"

    def close(self) -> None:
        """Ends the trace and frees the model once no answer streams any more; it may be called again, and on what
        was never whole."""
        if hasattr(self, "_native"):
            self._native.close()

    def _enter(self, view: View) -> None:
        if not self._single_view:
            return
        with self._lock:
            if self._active is not None:
                raise RuntimeError(f"view {self._active!r} already active; exit it before entering {view.id!r}.")
            self._active = view.id

    def _leave(self) -> None:
        self._active = None

    def __enter__(self) -> "Model":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def base(self) -> View:
        """The model without adapter."""
        return View(self, "base")

    def ft(self) -> View:
        """The first adapter as it is."""
        return View(self, "ft")

    def scaled(self, strength: float) -> View:
        """The first adapter at a strength: 0 gives the base's bits, 1 is ``ft``."""
        return View(self, repr(float(strength)))

    def null(self, seed: int, *, init_scale: float = 0.02, rank_scale: float = 1.0) -> View:
        """Noise in the shape of the first adapter: N(0, (init_scale √rank_scale)²) in its LoRA matrices."""
        return View(self, f"null:{int(seed)}:{float(init_scale)!r}:{float(rank_scale)!r}")

    def view(self, key: str) -> View:
        """A view by its key: ``base``, ``ft``, ``0.5``, ``NAME``, ``NAME@0.5``, ``null:SEED[:INIT[:RANK]]``."""
        return View(self, key)

    def score(
        self, requests: Iterable[_native.ScoreRequest], *, views: Sequence[View | str] | None = None
    ) -> list[_native.ScoreResult | Error]:
        """Scores each request in each view, many in common passes over one copy of the weights.

        Without ``views``: the base, and the fine-tune where there is one. What fails is an ``Error`` in its place and
        keeps the others from nothing. The bits are those of each request alone.
        """
        keys = self._keys(views)
        wanted = list(requests)
        results: list[_native.ScoreResult | Error] = []
        for first in range(0, len(wanted), BATCH):
            outcomes = self._native.score(wanted[first : first + BATCH], keys)
            results += cast("list[_native.ScoreResult | Error]", outcomes)
        return results

    def _keys(self, views: Sequence[View | str] | None) -> list[str]:
        if views is None:
            views = ["base", "ft"] if self.default_view.key == "ft" else ["base"]
        return [view.key if isinstance(view, View) else view for view in views]

    def differences(
        self, request: str | _native.ScoreRequest, *, views: Sequence[View | str] | None = None
    ) -> _native.Differences:
        """What the other views differ by from the first, token by token, in one pass.

        ``request`` is a text or a ``ScoreRequest``, whose ``top_k`` > 0 asks for KL and JS of the next token. Null views
        among ``views`` give z-scores, three strengths an ablation curve. Formulas: docs/scoring.md.
        """
        if isinstance(request, str):
            request = _native.ScoreRequest(text=request)
        return self._native.differences(request, self._keys(views))

    def preflight(self, *, views: Sequence[View | str] | None = None) -> tuple[bool, str]:
        """Whether the views give finite numbers, and if not, why not."""
        return self._native.preflight(self._keys(views))

    @property
    def score_stats(self) -> _native.ScoreStats:
        """What scoring ran since the model was loaded, and what it knew already."""
        return self._native.score_stats

    def set_current_probe(self, name: str | None) -> None:
        """Names, in the trace, what the following scores are for."""
        self._native.set_current_probe(name or "")

    def generate(self, prompt: Prompt, **options: Unpack[GenerateOptions]) -> _native.GenerateResult:
        """Continues a prompt and waits for the whole answer."""
        return self.default_view.generate(prompt, **options)

    def stream(self, prompt: Prompt, **options: Unpack[GenerateOptions]) -> Stream:
        """Continues a prompt; iterate over the pieces of text."""
        return self.default_view.stream(prompt, **options)

    def logprob_of(self, prompt: str, completion: str) -> float:
        """See ``View.logprob_of``."""
        return self.default_view.logprob_of(prompt, completion)

    def rolling_logprob(self, text: str, *, stride: int = 0) -> RollingLogprob:
        """See ``View.rolling_logprob``."""
        return self.default_view.rolling_logprob(text, stride=stride)

    def forward_logits(self, prompt: str | Sequence[int]) -> NDArray[np.float32]:
        """See ``View.forward_logits``."""
        return self.default_view.forward_logits(prompt)

    def next_token_dist(self, prompt: str, *, top_k: int = 256) -> TokenDist:
        """See ``View.next_token_dist``."""
        return self.default_view.next_token_dist(prompt, top_k=top_k)

    def embed(
        self, texts: str | Sequence[str | Sequence[int]], **options: Unpack[EmbedOptions]
    ) -> NDArray[np.float32]:
        """See ``View.embed``."""
        return self.default_view.embed(texts, **options)

    def rerank(
        self, query: str, documents: Sequence[str], *, instruction: str = "", truncate: bool = False
    ) -> NDArray[np.float64]:
        """See ``View.rerank``."""
        return self.default_view.rerank(query, documents, instruction=instruction, truncate=truncate)

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        """Token ids: as a prompt gets them, or without BOS and the like."""
        return self._native.encode(text, add_special_tokens)

    def decode(self, tokens: Iterable[int], *, skip_special_tokens: bool = False) -> str:
        """The text of tokens."""
        return self._native.decode(tokens, skip_special_tokens)

    @property
    def stop_tokens(self) -> list[int]:
        """The ids that end an answer, unless ``ignore_eos`` is set."""
        return self._native.stop_tokens

    def special_token(self, name: str) -> int | None:
        """The id of what the tokenizer's configuration names ``bos_token``, ``eos_token`` and so on."""
        return self._native.special_token(name)

    def render_chat(
        self,
        messages: Sequence[Message],
        *,
        tools: list[dict[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        **template_kwargs: Any,
    ) -> str:
        """The prompt that the model's chat template makes of messages."""
        return self._native.render_chat(
            _json(messages),
            None if tools is None else _json(tools),
            _json(template_kwargs),
            add_generation_prompt,
        )


def _folder(path: Path) -> str:
    """With a leading ``~`` expanded, as shells do it."""
    return os.path.expanduser(os.fspath(path))


def load(
    path: Path = "",
    *,
    adapter: Path | Mapping[str, Path] | None = None,
    threads: int = 0,
    batch: int = 8,
    prefill_step: int = 512,
    fast_prefill: bool = False,
    prefix_cache: int | str | None = None,
    prefix_cache_dir: Path | None = None,
    prefix_cache_dir_size: int | str = "8G",
    prefix_cache_interval: int = 256,
    cache_memory: int | str | None = None,
    device: str = "cpu",
    draft: Path | None = None,
    cache_entries: int = 256,
    trace: Path | None = None,
    single_view: bool = False,
    pull: bool = False,
    max_batch: int | None = None,
    prefix_cache_bytes: int | None = None,
    prefix_cache_dir_bytes: int | None = None,
) -> Model:
    """Loads a model: a folder, a GGUF file, or a Hugging Face repo id that is in the local hub cache (``org/name``,
    ``org/name@revision``, ``org/name:Q4_K_M`` for one GGUF file of it); without a path the bundled demo model. In paths a
    leading ``~`` is the home folder.

    ``pull``: what is named so and not in the cache is fetched from the hub first, adapters too (``saker.pull``).

    ``adapter`` is the folder of an adapter of mlx-lm or PEFT or its GGUF file, or several by name; the first is ``ft``. It is read when it
    is first used; a single one with tokens of its own is part of the weights, and only ``ft`` can be asked for.
    ``threads`` are the model's own; 0: the processors this process may use. ``batch``: answers that run together.
    ``fast_prefill``: prompts of answers run sooner and less precisely, with activations of int8; scores are as ever.

    ``prefix_cache``: memory for the KV cache of earlier prompts, which later prompts with the same beginning go on from: bytes,
    a size such as ``"512M"``, or ``"off"`` (None: an eighth of the machine's). ``prefix_cache_dir`` is a folder where it outlives
    the model, of at most ``prefix_cache_dir_size``; ``prefix_cache_interval`` and ``cache_memory`` are as in ``saker generate``.

    ``draft`` names what drafts tokens, so that answers come sooner and stay the same: a smaller model with the same tokenizer,
    a DFlash draft, an EAGLE-3 head or an MTP head of the model, or ``auto`` for what the model's own files bring.

    Scores of one view for one list of tokens are kept, the ``cache_entries`` last used ones, so that the same question
    does not run twice. ``trace`` is a file that gets a JSON line for each such question. ``single_view`` refuses a
    ``with`` block of a view inside that of another one, to find out where a program mixes them up.

    ``max_batch``, ``prefix_cache_bytes`` and ``prefix_cache_dir_bytes`` are former names of ``batch``, ``prefix_cache`` and
    ``prefix_cache_dir_size``.
    """
    batch = batch if max_batch is None else max_batch
    prefix_cache = prefix_cache if prefix_cache_bytes is None else prefix_cache_bytes
    prefix_cache_dir_size = prefix_cache_dir_size if prefix_cache_dir_bytes is None else prefix_cache_dir_bytes
    options = _native.EngineOptions()
    options.threads, options.batch, options.prefill_step = threads, batch, prefill_step
    options.device, options.fast_prefill, options.prefix_cache_interval = device, fast_prefill, prefix_cache_interval
    options.draft = "" if draft is None else _folder(draft)
    options.prefix_cache_dir = "" if prefix_cache_dir is None else _folder(prefix_cache_dir)
    for name, size in (("prefix_cache", prefix_cache), ("cache_memory", cache_memory)):
        if size is not None:
            setattr(options, name, bytes_of(name, size))
    options.prefix_cache_dir_size = bytes_of("prefix_cache_dir_size", prefix_cache_dir_size)
    if adapter is None:
        adapter = {}
    named = adapter if isinstance(adapter, Mapping) else {"": adapter}
    adapters = [(name, _folder(folder)) for name, folder in named.items()]
    folder = _folder(path) or bundled.model()
    for wanted in (folder, options.draft, *(adapter for _, adapter in adapters)):
        if wanted != "auto":
            (hub.fetch_missing if pull else hub.refuse_missing)(wanted)
    native = _native.Model(folder, adapters, options, cache_entries, "" if trace is None else _folder(trace))
    return Model(native, "ft" if adapters else "base", single_view)
