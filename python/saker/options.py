# SPDX-License-Identifier: Apache-2.0
"""How a prompt is continued: the options of ``generate`` and ``stream``, by our names and those of the command line."""

import os
import re
from typing import Any, Literal, TypedDict

from saker.errors import InvalidArgumentError


class GenerateOptions(TypedDict, total=False):
    """How a prompt is continued; what is left out has its default."""

    max_tokens: int
    """-1: until the answer or the model's context ends [256]."""
    temperature: float
    """0, the default: the most probable token."""
    temp: float
    """Another name of ``temperature``."""
    top_p: float
    """Keeps the smallest set of tokens with this mass, from 0 to 1 [1: off, as is 0]."""
    min_p: float
    """Removes tokens below this share of the best one's probability [0]."""
    min_tokens_to_keep: int
    top_k: int
    """[0: off]"""
    xtc_probability: float
    xtc_threshold: float
    top_n_sigma: float
    """Keeps logits within so many standard deviations of the best [0: off]."""
    typical_p: float
    """Keeps the tokens of about the expected surprise, with this mass, from 0 to 1 [1: off, as is 0]."""
    dynatemp_range: float
    """Lets the temperature go with the entropy, up to so far from it [0]."""
    dynatemp_exponent: float
    repetition_penalty: float
    """[1: off]"""
    repetition_context_size: int
    presence_penalty: float
    presence_context_size: int
    frequency_penalty: float
    frequency_context_size: int
    dry_multiplier: float
    """Penalty on what would prolong a repetition [0: off]."""
    dry_base: float
    dry_allowed_length: int
    dry_context_size: int
    dry_sequence_breakers: str | list[str]
    """Texts that end a repetition."""
    dry_sequence_breaker: str | list[str]
    """Another name of ``dry_sequence_breakers``."""
    dry_breakers: str | list[str]
    """Another name of ``dry_sequence_breakers``."""
    min_tokens: int
    """The answer does not end by itself before [0]."""
    logit_bias: dict[int, float]
    seed: int
    """The same seed gives the same answer, whatever else runs [0]."""
    stop: str | list[str]
    """One text or several, never shown; the first one ends the answer."""
    ignore_eos: bool
    speculate: str
    """What drafts tokens, the answer being the same: ``none``, ``prompt-lookup``, ``draft``, ``mtp``, ``dflash`` [the draft
    that is loaded, else the model's MTP head]."""
    acceptance: str
    """Of drafts where tokens are sampled: ``coupled``, the same answer as without, or ``rejection``, more [coupled]."""
    draft_depth: int | Literal["auto"]
    """Draft tokens of one pass at most, 0 to 64 [``auto`` or -1: as many as pay]."""
    logprobs: int
    """Per token its log-probability and this many best alternatives [-1: none]."""
    max_kv_size: int
    """> 0: keeps that many cached rows."""
    kv_bits: int
    """Bits of an element of the KV cache: 32 (float32), 16 (as the model has it), 8 or 4 (codes) [16]."""
    cache_in: str | os.PathLike[str]
    """A prompt-cache file: the prompt goes on after what it holds."""
    cache_out: str | os.PathLike[str]
    """Where the KV cache of prompt and answer is kept as a prompt-cache file."""
    tools: list[dict[str, Any]]
    """For the chat template."""
    think: bool | None
    """Lets a chat model think before it answers; None, the default: as its template says."""
    enable_thinking: bool | None
    """Another name of ``think``."""
    template_kwargs: dict[str, Any]
    """More variables for the chat template, such as ``reasoning_effort``."""
    kwargs: dict[str, Any]
    """Another name of ``template_kwargs``."""
    chat_template_kwargs: dict[str, Any]
    """Another name of ``template_kwargs``."""


OTHER_NAMES = {
    "temp": "temperature",
    "dry_sequence_breaker": "dry_sequence_breakers",
    "dry_breakers": "dry_sequence_breakers",
    "enable_thinking": "think",
    "kwargs": "template_kwargs",
    "chat_template_kwargs": "template_kwargs",
}
"""Former names, and those of other programs."""


def option_error(name: str, value: object) -> Exception:
    """Why an option does not take a value."""
    expected = GenerateOptions.__annotations__[name]
    if (expected is int or name == "draft_depth") and isinstance(value, int):
        low, high = (0, 2**64 - 1) if name == "seed" else (-(2**31), 2**31 - 1)
        return InvalidArgumentError(f"{name}: got {value}, expected an integer from {low} to {high}")
    kind = expected.__name__ if isinstance(expected, type) else expected
    return TypeError(f"{name}: got {value!r}, expected {kind}")


def canonical(options: GenerateOptions) -> dict[str, Any]:
    """By one name each, with values as the library has them."""
    found: dict[str, Any] = {}
    for given, value in options.items():
        name = OTHER_NAMES.get(given, given)
        if name in found and found[name] != value:
            raise InvalidArgumentError(f"{given}: got {value!r}, but {name} is {found[name]!r}: give one of them")
        found[name] = value
    for name in ("stop", "dry_sequence_breakers"):
        if isinstance(found.get(name), str):
            found[name] = [found[name]]
    if found.get("draft_depth") == "auto":
        found["draft_depth"] = -1
    return found


def bytes_of(name: str, value: int | str) -> int:
    """Of a size as the command line takes it: bytes, ``512M``, ``2GB``, or ``off`` for none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if not isinstance(value, str):
        raise TypeError(f"{name}: got {value!r}, expected bytes or a size such as '512M'")
    if value == "off":
        return 0
    found = re.fullmatch(r"(\d+) *(?:([kmgt])(?:i?b)?|b)?", value.strip().lower())
    if found is None:
        raise InvalidArgumentError(f"{name}: got {value!r}, expected bytes, a size such as '512M' or '2G', or 'off'")
    return int(found[1]) << (10 * (" kmgt".index(found[2]) if found[2] else 0))
