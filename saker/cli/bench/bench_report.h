// SPDX-License-Identifier: Apache-2.0
#pragma once

// The results of `saker bench` as text, JSON, a Markdown table, CSV, or a plot.

#include "saker/base/json/json.h"
#include "saker/engine/engine.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace saker::cli {

struct BenchReport {
  engine::ModelFacts facts;
  engine::BenchRequest request;
  engine::BenchResult result;
  engine::MachineLimits limits;
  std::size_t cache_bytes = 0;   // Read by one decode step.
  std::size_t peak_bytes = 0;    // Peak of the process, up to this model.
  std::int64_t cold_faults = 0;  // While it was measured, warm-up included (base/memory.h).
};

Json bench_json(const BenchReport& report);

// For people: several lines.
std::string bench_text(const BenchReport& report);

// A row per model: medians, and the spread of repetitions.
std::string bench_markdown(std::span<const BenchReport> reports);

// With a header line; numbers are not rounded.
std::string bench_csv(std::span<const BenchReport> reports);

// An SVG picture with a bar per model.
std::string bench_plot(std::span<const BenchReport> reports);

}  // namespace saker::cli
