// SPDX-License-Identifier: Apache-2.0
#pragma once

// What an adapter changes in one scored text: every view against the first one. Formulas:
// docs/scoring.md. Plain C++.

#include "saker/engine/request.h"
#include "saker/engine/views.h"
#include "saker/score/divergence.h"
#include "saker/score/measures.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace saker::engine {

struct ViewDifference {
  std::string view;
  score::TokenLogprobs deltas = {};  // Per token, in nats: positive where it became more probable.
  // Of the finite deltas, as all that follows; total.left_out says how many are not, and NaN that
  // none is.
  score::Summary total = {};
  double mean_change = 0.0;            // Mean of their absolute values.
  score::Interval mean_interval = {};  // 95 % of the mean delta, by bootstrap over tokens.
  // Of the next-token distributions; none where they were not asked for or the model is broken.
  std::optional<score::Divergence> next = {};
  // How far mean_change lies above that of the null views; none without two of them whose
  // mean_change is finite, or for one.
  std::optional<double> z = {};
};

// The divergence that a strength of the adapter gives.
struct AblationPoint {
  double strength = 0.0;
  double divergence = 0.0;
};

struct Differences {
  std::string reference;              // The first view.
  std::vector<ViewDifference> views;  // The others.
  // Of the next-token JS over the strengths of the first adapter, where three or more
  // different ones are there.
  std::optional<score::AblationCurve> ablation;
  std::vector<AblationPoint> points = {};  // What the curve goes through, by strength.
};

// `views` are those of the request. Throws kInvalidArgument for fewer than two.
Differences differences(const ScoreResult& result, std::span<const View> views);

}  // namespace saker::engine
