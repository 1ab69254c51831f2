// SPDX-License-Identifier: Apache-2.0
// One token chosen from a row of logits of a vocabulary of 152k: the part of a decode step that no
// kernel does. Rows as a model makes them (most of the mass on few tokens) and flat ones, where
// a filter keeps tens of thousands. Each includes copy_row, which makes the row fresh.
#include "saker/base/log_prob.h"
#include "saker/sample/noise.h"
#include "saker/sample/sampler.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace saker::sample {
namespace {

constexpr int kVocabulary = 151936;
constexpr std::int64_t kRows = 8;

// Normal logits; in a peaked row a few stand out as in an answer.
std::vector<float> make_row(std::uint64_t seed, double spread, int peaks) {
  const Noise first(seed, 0, 0, NoiseRole::kToken);
  const Noise second(seed, 1, 0, NoiseRole::kToken);
  std::vector<float> row(kVocabulary);
  for (std::int32_t id = 0; id < kVocabulary; ++id) {
    const double radius = std::sqrt(-2.0 * std::log(Noise::to_uniform(first.bits(id))));
    const double angle = 2.0 * std::numbers::pi * Noise::to_uniform(second.bits(id));
    row[static_cast<std::size_t>(id)] = static_cast<float>(spread * radius * std::cos(angle));
  }
  for (int i = 0; i < peaks; ++i) {
    const auto id = static_cast<std::size_t>(first.bits(i) % kVocabulary);
    row[id] = static_cast<float>(6.0 * spread + 5.0 - 0.7 * i);
  }
  return row;
}

std::vector<std::vector<float>> make_rows(bool flat) {
  std::vector<std::vector<float>> rows;
  for (std::int64_t i = 0; i < kRows; ++i) {
    rows.push_back(make_row(static_cast<std::uint64_t>(i), flat ? 1.0 : 2.5, flat ? 0 : 12));
  }
  return rows;
}

void choose(benchmark::State& state, const SamplingOptions& options, bool flat) {
  const auto rows = make_rows(flat);
  // 4096 tokens of a prompt of some thousand different ones.
  std::vector<std::int32_t> context(4096);
  for (std::size_t i = 0; i < context.size(); ++i) {
    context[i] = static_cast<std::int32_t>(i * i * 7919 % kVocabulary);
  }
  Sampler sampler(options, kVocabulary);
  std::vector<float> row(kVocabulary);
  std::int64_t position = 0;
  for (auto _ : state) {
    std::ranges::copy(rows[static_cast<std::size_t>(position % kRows)], row.begin());
    context.push_back(sampler.choose(row, context, position));
    ++position;
  }
}

void peaked(benchmark::State& state, const SamplingOptions& options) {
  choose(state, options, false);
}

void flat(benchmark::State& state, const SamplingOptions& options) {
  choose(state, options, true);
}

void copy_row(benchmark::State& state) {
  const auto rows = make_rows(true);
  std::vector<float> row(kVocabulary);
  std::size_t i = 0;
  for (auto _ : state) {
    std::ranges::copy(rows[i++ % kRows], row.begin());
    benchmark::DoNotOptimize(row.data());
  }
}

// What a request for log-probabilities adds.
void log_probabilities(benchmark::State& state, int count) {
  const auto rows = make_rows(false);
  std::size_t i = 0;
  for (auto _ : state) {
    const auto& row = rows[i++ % kRows];
    const double log_sum = log_sum_exp(row);
    benchmark::DoNotOptimize(log_prob(row, 17, log_sum));
    benchmark::DoNotOptimize(top_tokens(row, count, log_sum));
  }
}

SamplingOptions penalties() {
  SamplingOptions options{.temperature = 0.7, .top_p = 0.95, .top_k = 20};
  options.repetition_penalty = 1.1;
  options.presence_penalty = 0.5;
  options.presence_context_size = 0;
  options.frequency_penalty = 0.2;
  options.frequency_context_size = 0;
  return options;
}

SamplingOptions xtc() {
  SamplingOptions options{.temperature = 1.0, .min_p = 0.02};
  options.xtc_probability = 1.0;
  return options;
}

BENCHMARK(copy_row)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(peaked, greedy, SamplingOptions{})->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(peaked, plain, SamplingOptions{.temperature = 0.7})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(peaked, top_k, SamplingOptions{.temperature = 0.7, .top_k = 20})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(peaked, top_p, SamplingOptions{.temperature = 0.7, .top_p = 0.95})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(peaked, min_p, SamplingOptions{.temperature = 0.7, .min_p = 0.05})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(peaked, penalties, penalties())->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(peaked, xtc, xtc())->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(flat, plain, SamplingOptions{.temperature = 1.0})->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(flat, top_k, SamplingOptions{.temperature = 1.0, .top_k = 20})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(flat, top_p, SamplingOptions{.temperature = 1.0, .top_p = 0.95})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(flat, min_p, SamplingOptions{.temperature = 1.0, .min_p = 0.05})
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(flat, penalties, penalties())->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(flat, xtc, xtc())->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(log_probabilities, of_the_token, 0)->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(log_probabilities, with_20_others, 20)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace saker::sample
