// SPDX-License-Identifier: Apache-2.0
#pragma once

// An adapter's effect on one scored text: every view against the first one. Formulas:
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

// One view beside the first one.
struct ViewDifference {
  std::string view;
  score::TokenLogprobs deltas = {};  // Per token, in nats; positive: more probable in this view.
  // Computed from the finite deltas, as all members below. total.left_out counts the others; NaN:
  // no delta is finite.
  score::Summary total = {};
  double mean_change = 0.0;            // Mean of the absolute deltas.
  score::Interval mean_interval = {};  // 95 % of the mean delta, by bootstrap over tokens.
  // Between the next-token distributions. None if they were not requested or the model is broken.
  std::optional<score::Divergence> next = {};
  // How far mean_change lies above that of the null views, in standard deviations. None for a null
  // view, and with fewer than two null views whose mean_change is finite.
  std::optional<double> z = {};
};

// Divergence from the base at one strength of the adapter.
struct AblationPoint {
  double strength = 0.0;    // 0: the base.
  double divergence = 0.0;  // Jensen-Shannon, in nats.
};

// All views of one text beside the first one.
struct Differences {
  std::string reference;              // The first view.
  std::vector<ViewDifference> views;  // The others.
  // Next-token JS over the strengths of the first adapter; needs three or more different strengths.
  std::optional<score::AblationCurve> ablation;
  std::vector<AblationPoint> points = {};  // Points of the curve, by strength.
};

// `views` are those of the request. Throws kInvalidArgument for fewer than two.
Differences differences(const ScoreResult& result, std::span<const View> views);

}  // namespace saker::engine
