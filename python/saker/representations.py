# SPDX-License-Identifier: Apache-2.0
"""What results print as: their class and all that they hold, long lists and arrays cut."""

import reprlib
import sys
from typing import Any, cast

from saker import _native

_SHORT = reprlib.Repr()
_SHORT.maxlist = _SHORT.maxtuple = _SHORT.maxdict = 4
_SHORT.maxstring = _SHORT.maxother = 80
_SHORT.maxlevel = 4

RESULTS = (
    _native.AblationCurve,
    _native.ConvertReport,
    _native.Differences,
    _native.GenerateStats,
    _native.ModelFacts,
    _native.NextDistribution,
    _native.PrefixCacheStats,
    _native.PullReport,
    _native.ScoreResult,
    _native.ScoreStats,
    _native.TokenLogprob,
    _native.ViewDifference,
    _native.ViewScores,
)


def _describe(value: object) -> str:
    numpy = sys.modules.get("numpy")  # Without it nothing is an array.
    if numpy is not None and isinstance(value, numpy.ndarray):
        array = cast("Any", value)
        return f"<{array.dtype} {list(array.shape)}>"
    if isinstance(value, RESULTS):
        return represent(value)
    if isinstance(value, list) and any(isinstance(item, RESULTS) for item in value):
        return f"[{', '.join(map(represent, value))}]"
    return _SHORT.repr(value)


def represent(result: object) -> str:
    """``Class(name=value, ...)`` of all properties of a result."""
    names = [name for name, kind in vars(type(result)).items() if isinstance(kind, property)]
    return f"{type(result).__name__}({', '.join(f'{name}={_describe(getattr(result, name))}' for name in names)})"


for _result in RESULTS:
    _result.__repr__ = represent  # type: ignore[method-assign]
