// SPDX-License-Identifier: Apache-2.0
#pragma once

// Rates of prefill and decode, measured with the generator that answers requests. Uses fixed
// pseudo-random ids; includes greedy sampling, excludes the warm-up. REQUIRES: called on the thread
// that owns MLX.

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

// Tokens per second, one value per repetition, summed over the batch; empty for a part that was not
// requested.
struct BenchRates {
  std::vector<double> prompt_tps;
  std::vector<double> generation_tps;
};

// Throws kInvalidArgument for plans that exceed the model's context. `progress` counts repetitions,
// warm-up included.
BenchRates run_bench(
    const models::Model& model,
    const BenchPlan& plan,
    const std::function<void(int done, int total)>& progress
);

}  // namespace saker::generate
