// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/measures/preflight.h"

#include "saker/base/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <variant>

namespace saker::engine {
namespace {

bool all_finite(const score::NextDistribution& next) {
  return std::ranges::all_of(next.logprobs, [](double value) { return std::isfinite(value); }) &&
         (!next.tail_logprob || std::isfinite(*next.tail_logprob));
}

}  // namespace

Preflight preflight_finite_check(Engine& engine, std::span<const View> views) {
  constexpr int kCandidates = 8;
  for (const View& view : views) {
    ScoreRequest request{.top_k = kCandidates, .views = {view}};
    if (engine.tokenizer() != nullptr) {
      request.prompt = "hello";
    } else {
      request.tokens = {0};
    }
    const auto outcome = engine.score({&request, 1}).front();
    if (const Error* error = std::get_if<Error>(&outcome)) {
      return {false, fmt::format("view {:?}: {}", view.key, error->what())};
    }
    const auto& next = std::get<ScoreResult>(outcome).views.front().next;
    if (!next || !all_finite(*next)) {
      return {false, fmt::format("view {:?} gives numbers that are not finite", view.key)};
    }
  }
  return {};
}

}  // namespace saker::engine
