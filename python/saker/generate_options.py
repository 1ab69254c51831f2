# SPDX-License-Identifier: Apache-2.0
# tools/make_option_pages.py writes this file.
"""The options of ``generate`` and ``stream`` with their types, and other names of options."""

import os
from typing import Any, Literal, TypedDict


class GenerateOptions(TypedDict, total=False):
    """How a prompt is continued. An option that is left out has its default."""

    max_tokens: int
    """Maximum number of tokens to generate; -1: until the answer or the context ends [256]."""
    min_tokens: int
    """Minimum number of tokens before the answer may end [0]."""
    stop: str | list[str]
    """Texts that end the answer and are not shown."""
    ignore_eos: bool
    """Continue after end-of-sequence tokens."""
    logprobs: int
    """Report the log-probability of each token and of this many alternatives."""
    temperature: float
    """Temperature; 0: the most probable token [0]."""
    temp: float
    """Another name of ``temperature``."""
    top_p: float
    """Keep the smallest set of tokens with this mass; 0 or 1: off [1]."""
    top_k: int
    """Keep this many best tokens; 0: off [0]."""
    min_p: float
    """Remove tokens below this fraction of the best one's probability [0]."""
    seed: int
    """Seed of the sampling noise: the same seed gives the same answer."""
    min_tokens_to_keep: int
    """Minimum number of tokens that min-p keeps [1]."""
    xtc_probability: float
    """Chance to exclude top choices at a position [0]."""
    xtc_threshold: float
    """Minimum probability of a top choice [0.1]."""
    typical_p: float
    """Keep the tokens of about the expected surprise, with this mass; 0 or 1: off [1]."""
    top_n_sigma: float
    """Keep logits within this many standard deviations of the best; 0: off [0]."""
    dynatemp_range: float
    """Vary the temperature with the entropy, up to this far from ``temperature``; 0: off [0]."""
    dynatemp_exponent: float
    """Exponent of the entropy for ``dynatemp_range`` [1]."""
    logit_bias: dict[int, float]
    """Numbers added to logits, by token id."""
    repetition_penalty: float
    """Penalty on recent tokens; 1: off [1]."""
    repetition_context_size: int
    """Number of recent tokens that count; 0: all [20]."""
    presence_penalty: float
    """Subtracted once from recent tokens' logits [0]."""
    presence_context_size: int
    """Number of recent tokens that count; 0: all [20]."""
    frequency_penalty: float
    """Subtracted per occurrence in recent tokens [0]."""
    frequency_context_size: int
    """Number of recent tokens that count; 0: all [20]."""
    dry_multiplier: float
    """Penalty on tokens that would extend a repetition (DRY); 0: off [0]."""
    dry_base: float
    """Growth of the DRY penalty with each repeated token [1.75]."""
    dry_allowed_length: int
    """Repeated tokens that DRY allows without a penalty [2]."""
    dry_context_size: int
    """Number of recent tokens that count; 0: all [0]."""
    dry_sequence_breakers: str | list[str]
    """Texts that end a repetition [line break, colon, quotation mark, *]."""
    dry_sequence_breaker: str | list[str]
    """Another name of ``dry_sequence_breakers``."""
    dry_breakers: str | list[str]
    """Another name of ``dry_sequence_breakers``."""
    json_schema: dict[str, Any] | bool
    """JSON schema that the answer fits; {}: any JSON."""
    regex: str
    """Regular expression that the whole answer matches."""
    grammar: str
    """Grammar that gives the answer, in llguidance's form of Lark or in GBNF."""
    choices: str | list[str]
    """Texts, one of which the answer is."""
    json_object: bool
    """The answer is a JSON object."""
    token_events: bool
    """The stream has an event for each token."""
    speculate: str
    """Source of draft tokens; the answer stays the same [the draft that is loaded, else the model's MTP head]. Values:
    none, prompt-lookup, draft, mtp, dflash, eagle3."""
    acceptance: str
    """Drafts to take: coupled, those that sampling without drafts chooses; rejection, more, for another answer of the
    same distribution [coupled]. Values: coupled, rejection."""
    draft_depth: int | Literal["auto"]
    """Draft tokens of one pass at most, up to 64; auto: as many as pay [auto]."""
    check_speculation: bool
    """Compare every pass that checks draft tokens with plain decoding, bit by bit, and stop at a difference; slow, CPU
    only."""
    timeout: float
    """Seconds after which the answer ends with what it has; 0: no limit [0]."""
    priority: int
    """Answers of higher priority begin first [0]."""
    user: str
    """Who asks: answers of different users take turns."""
    cache_in: str | os.PathLike[str]
    """Continue after the tokens in this prompt-cache file."""
    cache_out: str | os.PathLike[str]
    """Save the cache of prompt and answer to this file."""
    max_kv_size: int
    """Maximum number of tokens in the cache; the first 4 always stay; 0: no limit [0]."""
    kv_bits: int
    """Bits of each element that the cache keeps of a token: 4, 8, 16, or 32 for float32 [16]. Values: 4, 8, 16, 32."""
    adapter: str | os.PathLike[str]
    """Folder of an adapter (mlx-lm or PEFT) or its GGUF file in place of the view's; empty: the base."""
    adapter_scale: float
    """Strength of the adapter; 0: the base model [1]."""
    think: bool | Literal["auto"] | None
    """Let a chat model think before it answers; auto: as its template says [auto]."""
    enable_thinking: bool | Literal["auto"] | None
    """Another name of ``think``."""
    template_kwargs: dict[str, Any]
    """More variables for the chat template."""
    kwargs: dict[str, Any]
    """Another name of ``template_kwargs``."""
    chat_template_kwargs: dict[str, Any]
    """Another name of ``template_kwargs``."""
    reasoning_budget: int
    """Most tokens of thoughts; then the model has to answer."""
    tools: list[dict[str, Any]]
    """Functions that the model may call."""
    tool_choice: str
    """Calls: the model decides, none, at least one, or one of the tool of this name [auto]."""
    parallel_tool_calls: bool | Literal["auto"] | None
    """Let an answer have several calls; off: it ends after the first [auto]."""


OTHER_NAMES = {
    "temp": "temperature",
    "dry_sequence_breaker": "dry_sequence_breakers",
    "dry_breakers": "dry_sequence_breakers",
    "enable_thinking": "think",
    "kwargs": "template_kwargs",
    "chat_template_kwargs": "template_kwargs",
}
"""Former names and names of other programs, and ours."""
