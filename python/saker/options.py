# SPDX-License-Identifier: Apache-2.0
"""The options of ``generate`` and ``stream`` as values that the library takes."""

import json
import operator
import os
import re
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal

from saker import _native
from saker.errors import InvalidArgumentError
from saker.generate_options import OTHER_NAMES, GenerateOptions

PATH = str | os.PathLike[str]
INTEGERS = (int, int | Literal["auto"])


def option_error(name: str, value: object) -> Exception:
    """Why an option does not take a value of this type."""
    return TypeError(f"{name}: got {value!r}, expected {_words(GenerateOptions.__annotations__[name])}")


def _words(expected: object) -> str:
    """A type as it is written: ``bool | None``."""
    if isinstance(expected, types.UnionType) or typing.get_origin(expected) is typing.Union:
        return " | ".join(_words(part) for part in typing.get_args(expected))
    if expected is types.NoneType:
        return "None"
    if isinstance(expected, type) and not typing.get_args(expected):
        return expected.__name__
    return str(expected).replace("typing.", "")


def canonical(options: GenerateOptions) -> dict[str, Any]:
    """By one name each, without those that ask for nothing."""
    found: dict[str, Any] = {}
    for given, value in options.items():
        name = OTHER_NAMES.get(given, given)
        if name not in GenerateOptions.__annotations__:
            raise TypeError(f"{given!r} is no option of generate; there are {', '.join(GenerateOptions.__annotations__)}")
        if name in found and found[name] != value:
            raise InvalidArgumentError(f"{given}: got {value!r}, but {name} is {found[name]!r}: give one of them")
        found[name] = value
    if found.get("logprobs") == -1:
        del found["logprobs"]
    return found


def set_option(request: _native.Request, name: str, value: object) -> None:
    """Sets the option by its own name; raises ``TypeError`` for a value of another type."""
    try:
        request.set_option(name, _as_json(name, value))
    except TypeError:
        raise option_error(name, value) from None


def _as_json(name: str, value: object) -> str:
    """Texts stay as they are: the reader of the JSON finds what UTF-8 can't hold."""
    expected = GenerateOptions.__annotations__[name]
    if expected == PATH:
        value = os.path.expanduser(os.fspath(value))  # type: ignore[call-overload]
    elif expected in INTEGERS and isinstance(value, int) and not isinstance(value, bool):
        low, high = (0, 2**64 - 1) if name == "seed" else (-(2**31), 2**31 - 1)
        if not low <= value <= high:
            raise InvalidArgumentError(f"{name}: got {value}, expected an integer from {low} to {high}")
    if name == "logit_bias" and isinstance(value, Mapping):
        value = {operator.index(token): bias for token, bias in value.items()}
    elif (name == "draft_depth" and value == -1) or (name == "think" and value is None):
        value = "auto"
    return json.dumps(value, ensure_ascii=False, default=_number)


def _number(value: object) -> int | float:
    """NumPy's numbers; raises ``TypeError`` for any other value."""
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return float(value)  # type: ignore[arg-type]


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
