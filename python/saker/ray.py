# SPDX-License-Identifier: Apache-2.0
"""Jobs over Ray data sets: many records, many workers, each record once. Needs ``pip install saker[ray]``.

    import ray.data
    import saker.ray

    texts = ray.data.read_json("texts.jsonl")
    report = saker.ray.score(texts, model="path/to/model", adapter="path/to/adapter", output="scores")
    answers = saker.ray.generate(texts, model="path/to/model", max_tokens=50).take_all()

Each call adds result columns to the column ``id`` and to those of ``keep``. With ``output``, a folder or address that all
nodes see, it runs the job, writes Parquet files and gives a ``Report``; called again, it runs what is missing. Without, it
gives the lazy data set. Results have the bits that one process gives: ``saker.jobs``.
"""

import json
import logging
import math
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Unpack

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.fs
import ray
import ray.data
from ray.data.checkpoint import CheckpointConfig

import saker
from saker import jobs
from saker.embed_options import EmbedOptions
from saker.generate_options import GenerateOptions

MANIFEST = "_saker_job.json"
CHECKPOINT = "_saker_checkpoint"
"""Both begin with an underscore: readers of Parquet folders leave them out."""
ROWS_PER_BLOCK = 4096
"""What a worker that is killed runs again at most."""
UNRESERVED = 2
"""Processors of a node that Ray does not count for an actor: without some for reading, filtering and writing nothing moves."""

log = logging.getLogger(__name__)

ERROR = pa.field("error", pa.struct([("code", pa.string()), ("message", pa.string())]))
CALL = pa.struct([("id", pa.string()), ("name", pa.string()), ("arguments", pa.string())])
COLUMNS = {
    "generate": [
        pa.field("text", pa.string()),
        pa.field("content", pa.string()),
        pa.field("reasoning", pa.string()),
        pa.field("tool_calls", pa.list_(CALL)),
        pa.field("finish_reason", pa.string()),
        pa.field("prompt_tokens", pa.int64()),
        pa.field("completion_tokens", pa.int64()),
    ],
    "embed": [pa.field("embedding", pa.list_(pa.float32()))],
    "perplexity": [
        pa.field("tokens", pa.int64()),
        pa.field("mean_logprob", pa.float64()),
        pa.field("perplexity", pa.float64()),
    ],
}


@dataclass(frozen=True)
class Workers:
    """How a job spreads over the cluster; none of it changes a result."""

    count: int | None = None
    """Actors at most, each with a model of its own; None: as many as the nodes have processors for."""
    threads: int | None = None
    """Processors of an actor; None: all of the smallest node."""
    memory: int | None = None
    """Bytes that an actor reserves; None: what ``saker.inspect`` says the model needs."""
    batch: int = 256
    """Records that an actor runs together."""
    rows_per_block: int = ROWS_PER_BLOCK
    instruction_set: str | None = None
    """``SAKER_CPU`` of all actors: one that all nodes have, such as ``avx2``."""
    load: Mapping[str, Any] = field(default_factory=dict)
    """More keywords of ``saker.load``, such as ``batch`` or ``draft``."""


@dataclass(frozen=True)
class Report:
    """What a job wrote."""

    output: str
    rows: int
    failed: dict[str, int]
    """Rows with an error, by code."""
    duplicates: int
    """Rows whose id another row has: ids have to be unique."""
    seconds: float
    """Of this call."""


def score(
    dataset: ray.data.Dataset,
    *,
    model: str,
    adapter: str | Mapping[str, str] | None = None,
    views: Sequence[str] | None = None,
    top_k: int = 0,
    stride: int = 0,
    logprobs: bool = False,
    id: str = "id",
    columns: Mapping[str, str] | None = None,
    keep: Sequence[str] = (),
    output: str | None = None,
    workers: Workers = Workers(),
) -> ray.data.Dataset | Report:
    """Log-probabilities of ``text``, or of ``completion`` after ``prompt``, in each view.

    Adds ``tokens``, ``views`` (``view``, ``sum``, ``mean``; ``logprobs`` of each token if asked for) and ``error``.
    ``columns`` names the columns of the parts where they have other names, such as ``{"text": "body"}``.
    """
    options: dict[str, Any] = {"top_k": top_k, "stride": stride, "logprobs": logprobs}
    options["views"] = None if views is None else list(views)
    job = jobs.Job("score", model, adapter, columns=columns or {}, options=options)
    return _run(dataset, job, id, keep, output, workers)


def perplexity(
    dataset: ray.data.Dataset,
    *,
    model: str,
    adapter: str | Mapping[str, str] | None = None,
    view: str | None = None,
    stride: int = 0,
    id: str = "id",
    columns: Mapping[str, str] | None = None,
    keep: Sequence[str] = (),
    output: str | None = None,
    workers: Workers = Workers(),
) -> ray.data.Dataset | Report:
    """The perplexity of each record's ``text``. Adds ``tokens``, ``mean_logprob``, ``perplexity`` and ``error``."""
    job = jobs.Job("perplexity", model, adapter, view, columns or {}, {"stride": stride})
    return _run(dataset, job, id, keep, output, workers)


def generate(
    dataset: ray.data.Dataset,
    *,
    model: str,
    view: str | None = None,
    id: str = "id",
    columns: Mapping[str, str] | None = None,
    keep: Sequence[str] = (),
    output: str | None = None,
    workers: Workers = Workers(),
    **options: Unpack[GenerateOptions],
) -> ray.data.Dataset | Report:
    """An answer to each record's ``messages`` or ``prompt``; the options are those of ``Model.generate``.

    Adds ``text``, ``content``, ``reasoning``, ``tool_calls``, ``finish_reason``, ``prompt_tokens``, ``completion_tokens`` and
    ``error``. ``view`` is the base, the adapter (``ft``) or the adapter at a strength.
    """
    given: dict[str, Any] = dict(options)
    adapter = given.pop("adapter", None)
    job = jobs.Job("generate", model, os.fspath(adapter) if adapter else None, view, columns or {}, given)
    return _run(dataset, job, id, keep, output, workers)


def embed(
    dataset: ray.data.Dataset,
    *,
    model: str,
    adapter: str | Mapping[str, str] | None = None,
    view: str | None = None,
    id: str = "id",
    columns: Mapping[str, str] | None = None,
    keep: Sequence[str] = (),
    output: str | None = None,
    workers: Workers = Workers(),
    **options: Unpack[EmbedOptions],
) -> ray.data.Dataset | Report:
    """A vector of each record's ``text``, as ``Model.embed`` gives it. Adds ``embedding`` and ``error``."""
    job = jobs.Job("embed", model, adapter, view, columns or {}, dict(options))
    return _run(dataset, job, id, keep, output, workers)


def schema_of(job: jobs.Job) -> pa.Schema:
    """The result columns of a job."""
    if job.command != "score":
        return pa.schema([*COLUMNS[job.command], ERROR])
    view = [("view", pa.string()), ("sum", pa.float64()), ("mean", pa.float64())]
    if job.options.get("logprobs"):
        view.append(("logprobs", pa.list_(pa.float64())))
    return pa.schema([pa.field("tokens", pa.int64()), pa.field("views", pa.list_(pa.struct(view))), ERROR])


class _Actor:
    """A worker as Ray calls it: a table of records in, a table of results out."""

    def __init__(self, job: jobs.Job, expected: Mapping[str, Any], kept: Sequence[str]) -> None:
        self._kept = kept
        self._schema = schema_of(job)
        self._worker = jobs.Worker(job, expected)

    def __call__(self, table: pa.Table) -> pa.Table:
        results = pa.Table.from_pylist(self._worker.run(table.to_pylist()), schema=self._schema)
        for place, name in enumerate(self._kept):
            results = results.add_column(place, table.schema.field(name), table.column(name))
        return results


def _run(
    dataset: ray.data.Dataset, job: jobs.Job, id: str, keep: Sequence[str], output: str | None, workers: Workers
) -> ray.data.Dataset | Report:
    kept = list(dict.fromkeys([id, *keep]))
    clash = next((name for name in kept if name in schema_of(job).names), None)
    if clash is not None:
        raise saker.InvalidArgumentError(f"keep: the results have a column {clash!r} of their own")
    begin = time.monotonic()
    nodes = _processors_of_nodes()
    threads = workers.threads or min(nodes)
    load = {"threads": threads, "prefix_cache": "off" if job.command != "generate" else None, **workers.load}
    job = jobs.Job(job.command, job.model, job.adapter, job.view, job.columns, job.options, load)
    expected = jobs.describe(job)
    if output is not None:
        _check_manifest(output, {**expected, "id": id, "keep": list(keep)})
        dataset.context.checkpoint_config = CheckpointConfig(
            id_column=id, checkpoint_path=f"{output.rstrip('/')}/{CHECKPOINT}", delete_checkpoint_on_success=False
        )
    results = dataset.repartition(target_num_rows_per_block=workers.rows_per_block).map_batches(
        _Actor,
        fn_constructor_kwargs={"job": job, "expected": expected, "kept": kept},
        compute=ray.data.ActorPoolStrategy(
            min_size=1, max_size=workers.count or max(1, sum(count // threads for count in nodes))
        ),
        batch_size=workers.batch,
        batch_format="pyarrow",
        num_cpus=max(0, threads - UNRESERVED),
        memory=workers.memory or _memory_of(job.model),
        runtime_env={"env_vars": {"SAKER_CPU": workers.instruction_set}} if workers.instruction_set else None,
    )
    if output is None:
        return results
    results.write_parquet(output)
    return _report(output, id, time.monotonic() - begin)


def _processors_of_nodes() -> list[int]:
    """Of the nodes that run work."""
    if not ray.is_initialized():
        ray.init()
    counts = [math.floor(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]]
    return [count for count in counts if count >= 1] or [1]


def _memory_of(model: str) -> int:
    found = saker.inspect(model)
    return int(found.get("memory", {}).get("needed_bytes", found["file_bytes"]))


def _check_manifest(output: str, description: Mapping[str, Any]) -> None:
    """Writes what the job is beside its results; an output of another job is an ``InvalidArgumentError``."""
    files, folder = pa.fs.FileSystem.from_uri(output) if "://" in output else (pa.fs.LocalFileSystem(), output)
    files.create_dir(folder, recursive=True)
    path = f"{folder.rstrip('/')}/{MANIFEST}"
    if files.get_file_info(path).type == pa.fs.FileType.File:
        with files.open_input_stream(path) as stream:
            text = stream.read()
        try:
            known = json.loads(text)
        except ValueError as error:
            raise saker.CorruptDataError(f"{path}: it is no JSON: {error}") from None
        if not isinstance(known, dict):
            raise saker.CorruptDataError(f"{path}: got {type(known).__name__}, expected a job's description")
        if (differs := jobs.difference(known, json.loads(json.dumps(description)))) is not None:
            raise saker.InvalidArgumentError(f"{output}: has results of another job: {differs}")
        return
    others = files.get_file_info(pa.fs.FileSelector(folder))
    if others:
        raise saker.InvalidArgumentError(f"{output}: has {others[0].base_name}, but no {MANIFEST}: no results of a job")
    with files.open_output_stream(path) as stream:
        stream.write(json.dumps(description, indent=2).encode() + b"\n")


def _report(output: str, id: str, seconds: float) -> Report:
    written = pa.dataset.dataset(output, format="parquet", exclude_invalid_files=False)
    rows, ids, failed = 0, 0, dict[str, int]()
    if written.schema.names:
        table = written.to_table(columns=[id, "error"])
        rows, ids = table.num_rows, pc.count_distinct(table.column(id), mode="all").as_py()
        codes = pc.struct_field(table.column("error"), "code").drop_null()
        failed = {item["values"].as_py(): item["counts"].as_py() for item in pc.value_counts(codes)}
    if rows > ids:
        log.warning("%s: %d rows have an id that another row has", output, rows - ids)
    return Report(output, rows, failed, rows - ids, seconds)
