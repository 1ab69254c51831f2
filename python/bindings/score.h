// SPDX-License-Identifier: Apache-2.0
#pragma once

// Scores and next-token distributions, with NumPy arrays.

#include "saker/engine/measures/differences.h"

#include "python/bindings/model.h"
#include <nanobind/nanobind.h>

#include <string>
#include <utility>
#include <vector>

namespace saker::python {

inline constexpr char kScoreSignature[] =
    "def score(self, requests: list[ScoreRequest], views: list[str]) -> list[ScoreResult | "
    "Exception]";

// The outcome of each request, in order: a ScoreResult, or an exception of saker.errors. Raises for
// keys that are no view.
nanobind::list score(
    Model& model, std::vector<engine::ScoreRequest> requests, const std::vector<std::string>& views
);

inline constexpr char kLogitsSignature[] =
    "def logits(self, request: ScoreRequest, view: str) -> numpy.typing.NDArray[numpy.float32]";

// The logits of one view after each token, float32 [T, V]; raises the request's error, and
// MemoryError where there is no room for them.
nanobind::object logits(Model& model, engine::ScoreRequest request, const std::string& view);

// What the other views differ by from the first; raises the request's error.
engine::Differences differences(
    Model& model, engine::ScoreRequest request, const std::vector<std::string>& views
);

// Whether the views give finite numbers, and if not, why not.
std::pair<bool, std::string> preflight(Model& model, const std::vector<std::string>& views);

void bind_scores(nanobind::module_& module);

}  // namespace saker::python
