// SPDX-License-Identifier: Apache-2.0
#pragma once

// A model's speed as an engine measures it, and the machine's limits. Plain values; no MLX.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace saker::engine {

// A measurement: prompts, then answers after them.
struct BenchRequest {
  int prompt_tokens = 512;
  int generation_tokens = 128;
  int batch = 1;        // Sequences at once.
  int depth = 0;        // Cached rows before the measured tokens.
  int repetitions = 5;  // Besides a warm-up.
  int kv_bits = 16;     // 8 or 4: cached rows are codes of this many bits; 32: float32.
};

// Rates in tokens per second.
struct BenchResult {
  std::vector<double> prompt_tps;  // One per repetition; warm-up excluded; totals over the batch.
  std::vector<double> generation_tps;
};

// The machine's peak rates, measured now with the engine's threads. 0: it has no such instructions.
struct MachineLimits {
  double read_gbps = 0.0;
  double f32_gflops = 0.0;
  double bf16_gflops = 0.0;
  double int8_gops = 0.0;
};

// Requests on their way, at one moment.
struct QueueStats {
  int running = 0;                  // Their prompts have begun.
  int waiting = 0;                  // Behind them.
  std::int64_t waiting_tokens = 0;  // Prompt tokens of those that wait.
  double wait_s = 0.0;              // How long a new request would wait, by recent ones.
  std::int64_t preemptions = 0;     // Times that a running one gave its rows up, since the load.
  std::size_t cache_bytes = 0;      // Memory of cached rows and states, shared memory counted once.
  std::size_t cache_memory = 0;     // At most; 0: any.
};

}  // namespace saker::engine
