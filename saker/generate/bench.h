// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rates of prompt processing and generation, measured with the generator that answers requests:
// fixed pseudo-random ids, greedy sampling included, warm-up excluded. REQUIRES: called on the
// thread that owns MLX.

#include "saker/generate/batch_generator.h"

#include <functional>
#include <vector>

namespace saker::generate {

struct BenchPlan {
  int prompt_tokens = 512;
  int generation_tokens = 128;
  int batch = 1;
  int depth = 0;  // Rows cached before the measured prompt.
  int repetitions = 5;
  int prefill_step = 512;
  bool fast_prefill = false;                // See BatchLimits.
  int kv_bits = kernels::kUnquantizedBits;  // See models::CacheOptions.
};

// Tokens a second, one per repetition, totals over the batch; empty where nothing of that kind was
// asked for.
struct BenchRates {
  std::vector<double> prompt_tps;
  std::vector<double> generation_tps;
};

// Throws kInvalidArgument for plans that the model's context cannot hold. `progress` counts
// repetitions, the warm-up too.
BenchRates run_bench(
    const models::Model& model,
    const BenchPlan& plan,
    const std::function<void(int done, int total)>& progress
);

}  // namespace saker::generate
