// SPDX-License-Identifier: Apache-2.0
#pragma once

// Steps of operations on experts, inside their tasks (see ops/expert_choice.h).

#include "saker/kernels/ops/experts/expert_choice.h"

#include <span>
#include <vector>

namespace saker::kernels {

// A router's rules; its tensors [E], or null.
struct RowRouter {
  RouterOptions options;
  const float* bias = nullptr;
  const float* scales = nullptr;
  bool compares_logits = true;  // See kernels::compares_logits.

  RowRouter(const RouterOptions& rules, const RouterTensors& tensors);
};

// Fills `ids` and `weights` [ids.size()] from one row of the router's outputs.
void choose_row(
    std::span<const float> logits, const RowRouter& router, std::span<int> ids, float* weights
);

// A counting sort: the pair at each place, and its expert. Ids outside [0, experts) come last, as
// expert `experts`.
void sort_pairs(std::span<const int> ids, int experts, int* pairs, int* sorted);

// Adjacent pairs of one expert.
struct ExpertRun {
  int expert = 0;
  int first = 0;  // Place.
  int count = 0;
};

std::vector<ExpertRun> runs_of(std::span<const int> sorted);

// The place of each pair.
std::vector<int> places_of_pairs(std::span<const int> pairs);

// A row's sum: its products y at `places`, weighted, one after the other in order of rank.
void combine_row(
    const float* y, std::span<const int> places, const float* weights, int width, float* out
);

// Sums of `rows` rows, on all threads. y [P, width] is in sorted order, `places` and `weights` are in
// order of pairs; out [rows, width].
void combine_rows(
    const float* y,
    std::span<const int> places,
    const float* weights,
    int rows,
    int width,
    float* out
);

}  // namespace saker::kernels
