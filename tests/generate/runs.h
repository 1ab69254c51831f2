// SPDX-License-Identifier: Apache-2.0
#pragma once

// Requests for a batch generator, what came of them, and how to compare it.

#include "saker/generate/batch_generator.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace saker::generate {

using Ids = std::vector<std::int32_t>;

// Prompt `i` of a batch gets each of them in as many batches.
inline constexpr std::array<int, 6> kAllDepths = {1, 2, 4, 7, 16, kAutoDepth};

inline int shifted_depth(std::size_t i, std::size_t shift) {
  return kAllDepths.at((i + shift) % kAllDepths.size());
}

// SAKER_ANSWER_TOKENS in the environment instead of `usual`: longer answers pass more pages and
// windows, and the end of the context (make check-speculation).
inline int answer_tokens(int usual) {
  const char* given = std::getenv("SAKER_ANSWER_TOKENS");
  return given == nullptr ? usual : std::stoi(given);
}

struct Outcome {
  Ids tokens;
  std::vector<GeneratedToken> details;
  std::vector<int> progress;
  int ends = 0;
  SequenceEnd end;
};

class Recorder : public Listener {
 public:
  explicit Recorder(Outcome& outcome, int stop_after = -1)
      : outcome_(outcome), stop_after_(stop_after) {}

  void on_prompt(int done, int /*total*/) override { outcome_.progress.push_back(done); }

  bool on_token(const GeneratedToken& token) override {
    outcome_.tokens.push_back(token.id);
    outcome_.details.push_back(token);
    return static_cast<int>(outcome_.tokens.size()) != stop_after_;
  }

  void on_end(SequenceEnd end) noexcept override {
    ++outcome_.ends;
    outcome_.end = std::move(end);
  }

 private:
  Outcome& outcome_;
  int stop_after_;
};

inline Outcome run_alone(
    const models::Model& model, SequenceRequest request, int prefill_step = 512
) {
  Outcome outcome;
  BatchGenerator generator(model, {.prefill_step = prefill_step, .max_batch = 1});
  generator.add(std::move(request), std::make_unique<Recorder>(outcome));
  while (!generator.idle()) {
    generator.step();
  }
  return outcome;
}

inline SequenceRequest request_of(Ids prompt, int max_tokens = 5) {
  SequenceRequest request;
  request.prompt = std::move(prompt);
  request.max_tokens = max_tokens;
  return request;
}

// Greedy and sampled, with and without penalty and log-probabilities, by the request's number.
inline void vary_options(SequenceRequest& request, std::size_t number) {
  request.logprobs = number % 3 == 0 ? 2 : -1;
  if (number % 2 == 1) {
    request.sampling.temperature = 0.8;
    request.sampling.top_p = 0.9;
    request.sampling.seed = number;
  }
  if (number % 4 >= 2) {
    request.sampling.repetition_penalty = 1.3;
  }
}

// A request of any length and any options.
inline SequenceRequest random_request(std::mt19937_64& random, int vocab_size) {
  const auto draw = [&random](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  SequenceRequest request;
  const int length = draw(0, 3) == 0 ? draw(50, 300) : draw(1, 20);
  for (int i = 0; i < length; ++i) {
    request.prompt.push_back(draw(0, vocab_size - 1));
  }
  request.max_tokens = draw(1, 40);
  request.logprobs = draw(-1, 5);
  if (draw(0, 1) == 1) {
    request.stop_tokens = {draw(0, vocab_size - 1), draw(0, vocab_size - 1)};
  }
  sample::SamplingOptions& sampling = request.sampling;
  sampling.temperature = draw(0, 2) * 0.7;
  sampling.top_p = draw(0, 1) == 1 ? 0.9 : 1.0;
  sampling.min_p = draw(0, 3) == 0 ? 0.05 : 0.0;
  sampling.top_k = draw(0, 1) * 20;
  sampling.xtc_probability = draw(0, 3) == 0 ? 0.5 : 0.0;
  sampling.typical_p = draw(0, 3) == 0 ? 0.8 : 1.0;
  sampling.top_n_sigma = draw(0, 3) == 0 ? 1.2 : 0.0;
  sampling.dynatemp_range = draw(0, 3) == 0 ? 0.5 : 0.0;
  sampling.dry_multiplier = draw(0, 3) == 0 ? 0.8 : 0.0;
  sampling.min_tokens = draw(0, 3) == 0 ? 8 : 0;
  sampling.repetition_penalty = draw(0, 2) == 0 ? 1.2 : 1.0;
  sampling.frequency_penalty = draw(0, 3) == 0 ? 0.3 : 0.0;
  sampling.seed = static_cast<std::uint64_t>(draw(0, 1000));
  return request;
}

inline SequenceRequest copy_of(const SequenceRequest& request) {
  SequenceRequest copy;
  copy.prompt = request.prompt;
  copy.max_tokens = request.max_tokens;
  copy.stop_tokens = request.stop_tokens;
  copy.sampling = request.sampling;
  copy.logprobs = request.logprobs;
  copy.max_kv_size = request.max_kv_size;
  copy.kv_bits = request.kv_bits;
  copy.speculation = request.speculation;
  return copy;
}

inline void expect_same(const Outcome& one, const Outcome& other) {
  EXPECT_EQ(one.tokens, other.tokens);
  EXPECT_EQ(one.end.reason, other.end.reason);
  EXPECT_EQ(one.end.context, other.end.context);
  ASSERT_EQ(one.end.cache.has_value(), other.end.cache.has_value());
  if (one.end.cache) {
    EXPECT_EQ(one.end.cache->offset(), other.end.cache->offset());
  }
  ASSERT_EQ(one.details.size(), other.details.size());
  for (std::size_t i = 0; i < one.details.size(); ++i) {
    EXPECT_EQ(one.details[i].logprob, other.details[i].logprob);
    EXPECT_EQ(one.details[i].top, other.details[i].top);
  }
}

}  // namespace saker::generate
