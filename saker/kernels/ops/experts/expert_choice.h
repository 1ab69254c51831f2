// SPDX-License-Identifier: Apache-2.0
#pragma once

// Mixture of experts: which experts a row takes, the order in which their products are computed,
// and the sum over them (https://arxiv.org/abs/1701.06538).
//
// A pair is a row and one of its R experts: pair row * R + rank. Products run over the pairs sorted
// by expert, so that each weight is read once. The bits of a row's choice and sum do not depend on
// the rows beside it. If scores are equal, the lower expert wins; sums run by rank.

#include "saker/kernels/mx.h"
#include "saker/kernels/ops/experts/router_options.h"

namespace saker::kernels {

struct ExpertChoice {
  mx::array ids;      // int32 [N, R], best first.
  mx::array weights;  // float32 [N, R]
};

// The experts that each row of the router's outputs `logits` [N, E] takes. A NaN is never larger
// than a number. A row that has a NaN gets NaN weights.
ExpertChoice choose_experts(
    const mx::array& logits, const RouterOptions& options, const RouterTensors& tensors = {}
);

ExpertChoice choose_experts_reference(
    const mx::array& logits, const RouterOptions& options, const RouterTensors& tensors = {}
);

// P = N * R pairs, stably sorted by expert.
struct ExpertPermutation {
  mx::array pairs;    // int32 [P]: the pair at each place.
  mx::array experts;  // int32 [P]: the expert of that pair; ascending.
};

// ids: int32 [N, R], each in [0, experts).
ExpertPermutation sort_by_expert(const mx::array& ids, int experts);

ExpertPermutation sort_by_expert_reference(const mx::array& ids);

// Rows of x [N, K] in the order of the sorted pairs -> [P, K].
mx::array gather_rows(const mx::array& x, const ExpertPermutation& sorted);

// The sum of each row's results times its weights. y [P, K] is in sorted order, weights [N, R] -> [N,
// K], float32 inside.
mx::array combine_experts(
    const mx::array& y, const ExpertPermutation& sorted, const mx::array& weights
);

mx::array combine_experts_reference(
    const mx::array& y, const ExpertPermutation& sorted, const mx::array& weights
);

}  // namespace saker::kernels
