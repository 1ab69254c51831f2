# SPDX-License-Identifier: Apache-2.0
"""Records that many workers share: what a job is, and what one worker does. ``saker.ray`` runs jobs on a cluster.

A record's result has the bits that it has alone, so that it does not matter which worker gets it, when, and how often.
"""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import saker
from saker import _native
from saker.model import Model, View
from saker.scores import rolling_logprob

Row = dict[str, Any]
COMMANDS = ("score", "generate", "embed", "perplexity")


@dataclass(frozen=True)
class Job:
    """What is asked of which model, for every record."""

    command: str
    """One of ``COMMANDS``."""
    model: str
    adapter: str | Mapping[str, str] | None = None
    view: str | None = None
    """Answers and vectors are this view's; without it ``ft`` where there is an adapter, else ``base``."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Where a record has its parts (``text``, ``prompt``, ``completion``, ``messages``): names of columns."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Those of the call that the command makes."""
    load: Mapping[str, Any] = field(default_factory=dict)
    """Keywords of ``saker.load`` that change no result, such as ``threads``."""


def describe(job: Job) -> dict[str, Any]:
    """What the results depend on, as JSON: jobs with equal descriptions give equal bits.

    Reads all files of the model and of the adapters.
    """
    named = job.adapter if isinstance(job.adapter, Mapping) else {"": job.adapter} if job.adapter else {}
    return {
        "saker": saker.__version__,
        "command": job.command,
        "model": _native.model_identity(os.path.expanduser(job.model)),
        "adapters": {name: checksum(folder) for name, folder in named.items()},
        "view": job.view,
        "columns": dict(job.columns),
        "options": dict(job.options),
    }


def checksum(path: str) -> str:
    """SHA-256 of a file, or of the names and contents of a folder's files."""
    found = Path(path).expanduser()
    if not found.exists():
        raise saker.NotFoundError(f"{path}: no such file or folder")
    total = hashlib.sha256()
    for file in sorted(found.iterdir()) if found.is_dir() else [found]:
        if file.is_file():
            total.update(file.name.encode() if found.is_dir() else b"")
            with file.open("rb") as content:
                total.update(hashlib.file_digest(content, "sha256").digest())
    return total.hexdigest()


def difference(one: Mapping[str, Any], other: Mapping[str, Any]) -> str | None:
    """The first member that two descriptions differ in, in words."""
    for name in [*one, *(name for name in other if name not in one)]:
        if one.get(name) != other.get(name):
            return f"{name} is {other.get(name)!r}, not {one.get(name)!r}"
    return None


class Worker:
    """A loaded model that runs a job's records. A record that fails gives a row with an error and stops no other."""

    def __init__(self, job: Job, expected: Mapping[str, Any] | None = None) -> None:
        """``expected``: the job's description elsewhere; another one here is an ``InvalidArgumentError``."""
        if expected is not None and (differs := difference(expected, describe(job))) is not None:
            raise saker.InvalidArgumentError(f"{job.model}: this machine has another job: {differs}")
        self._job = job
        self._run = {
            "score": self._score, "generate": self._generate, "embed": self._embed, "perplexity": self._perplexity,
        }[job.command]
        self._model: Model = saker.load(job.model, adapter=job.adapter, **job.load)
        self._view: View = self._model.view(job.view) if job.view else self._model.default_view

    def run(self, rows: Sequence[Row]) -> list[Row]:
        """A row of results for each record, in order: ``error`` is None, or has ``code`` and ``message``."""
        return self._run(rows)

    def _part(self, row: Row, name: str) -> Any:
        return row.get(self._job.columns.get(name, name))

    def _request(self, row: Row, **options: Any) -> _native.ScoreRequest | saker.Error:
        parts = {name: self._part(row, name) for name in ("text", "prompt", "completion")}
        try:
            for name, part in parts.items():
                if part is not None and not isinstance(part, str):
                    raise saker.InvalidArgumentError(f"{name}: got {type(part).__name__}, expected a text")
            return _native.ScoreRequest(**parts, **options)
        except saker.Error as error:
            return error

    def _scored(self, rows: Sequence[Row], views: Sequence[str | View] | None) -> list[Any]:
        """A ``ScoreResult`` or an error for each row."""
        options = {name: value for name, value in self._job.options.items() if name in ("top_k", "stride")}
        requests = [self._request(row, **options) for row in rows]
        valid = [request for request in requests if not isinstance(request, saker.Error)]
        results = iter(self._model.score(valid, views=views))
        return [request if isinstance(request, saker.Error) else next(results) for request in requests]

    def _score(self, rows: Sequence[Row]) -> list[Row]:
        with_logprobs = bool(self._job.options.get("logprobs"))
        results = self._scored(rows, cast("Sequence[str] | None", self._job.options.get("views")))
        return [_failed(result) or _score_row(result, with_logprobs) for result in results]

    def _perplexity(self, rows: Sequence[Row]) -> list[Row]:
        results = self._scored(rows, [self._view])
        return [_failed(result) or _perplexity_row(rolling_logprob(result)) for result in results]

    def _submit(self, row: Row) -> saker.Stream | saker.Error:
        messages, prompt = self._part(row, "messages"), self._part(row, "prompt")
        if prompt is None:
            prompt = self._part(row, "text")
        try:
            if messages is not None:
                prompt = [_without_none(message) for message in messages]
            if prompt is None:
                raise saker.InvalidArgumentError("a record has neither messages nor a prompt")
            return self._view.stream(prompt, **self._job.options)
        except (saker.Error, TypeError) as error:
            return error if isinstance(error, saker.Error) else saker.InvalidArgumentError(str(error))

    def _generate(self, rows: Sequence[Row]) -> list[Row]:
        return [_answer(stream) for stream in [self._submit(row) for row in rows]]

    def _embed(self, rows: Sequence[Row]) -> list[Row]:
        texts = [self._part(row, "text") for row in rows]
        try:
            vectors = self._view.embed(texts, **self._job.options)
            return [{"embedding": vector, "error": None} for vector in vectors]
        except (saker.Error, TypeError):
            return [self._embed_one(text) for text in texts]

    def _embed_one(self, text: object) -> Row:
        try:
            if not isinstance(text, str):
                raise saker.InvalidArgumentError(f"text: got {type(text).__name__}, expected a text")
            return {"embedding": self._view.embed(text, **self._job.options), "error": None}
        except saker.Error as error:
            return _error_row(error)


def _error_row(error: saker.Error) -> Row:
    return {"error": {"code": error.code, "message": str(error)}}


def _failed(result: object) -> Row | None:
    return _error_row(result) if isinstance(result, saker.Error) else None


def _score_row(result: saker.ScoreResult, with_logprobs: bool) -> Row:
    views = []
    for scores in result.views:
        view: Row = {"view": scores.view, "sum": scores.sum, "mean": scores.mean}
        if with_logprobs:
            view["logprobs"] = scores.logprobs
        views.append(view)
    return {"tokens": len(result.tokens), "views": views, "error": None}


def _perplexity_row(rolled: saker.RollingLogprob) -> Row:
    return {
        "tokens": rolled.num_tokens, "mean_logprob": rolled.mean_logprob, "perplexity": rolled.perplexity, "error": None,
    }


def _answer(stream: saker.Stream | saker.Error) -> Row:
    if isinstance(stream, saker.Error):
        return _error_row(stream)
    try:
        result = stream.result()
    except saker.Error as error:
        return _error_row(error)
    return {
        "text": result.text,
        "content": result.content,
        "reasoning": result.reasoning,
        "tool_calls": result.tool_calls,
        "finish_reason": result.finish_reason,
        "prompt_tokens": result.stats.prompt_tokens,
        "completion_tokens": result.stats.generation_tokens,
        "error": None,
    }


def _without_none(message: Mapping[str, Any]) -> dict[str, Any]:
    """Columns of structures have every member, absent ones as None."""
    return {name: value for name, value in message.items() if value is not None or name == "content"}
