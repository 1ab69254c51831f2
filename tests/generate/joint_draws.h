// SPDX-License-Identifier: Apache-2.0
#pragma once

// Many sampled answers to one prompt, and whether their second and third tokens together have the
// distribution that the target gives: the first one ends the prompt's pass, which has no drafts.

#include "saker/base/log_prob.h"
#include "saker/generate/batch_generator.h"

#include "tests/generate/runs.h"
#include "tests/support/chi_square.h"
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace saker::generate {

inline constexpr int kDrawnVocabulary = 5;
inline constexpr int kDrawnBatch = 256;
inline constexpr double kUnlikely = 1e-3;

// 2 * 10^5 of them, fewer or more by SAKER_DRAWS.
inline int draws() {
  const char* wanted = std::getenv("SAKER_DRAWS");
  return wanted == nullptr ? 200'000 : std::stoi(wanted);
}

// What a target gives for the token after a context.
using NextLogits = std::function<std::vector<float>(const Ids& context)>;

inline std::vector<double> next_probabilities(const NextLogits& logits_of, const Ids& context) {
  const std::vector<float> logits = logits_of(context);
  const double log_sum = log_sum_exp(logits);
  std::vector<double> probabilities;
  probabilities.reserve(kDrawnVocabulary);
  for (std::int32_t id = 0; id < kDrawnVocabulary; ++id) {
    probabilities.push_back(std::exp(log_prob(logits, id, log_sum)));
  }
  return probabilities;
}

// Of each three tokens after a context, the last one running fastest.
inline std::vector<double> joint_probabilities(const NextLogits& logits_of, const Ids& context) {
  std::vector<double> joint = {1.0};
  std::vector<Ids> contexts = {context};
  for (int length = 1; length <= 3; ++length) {
    std::vector<double> longer_joint;
    std::vector<Ids> longer;
    for (std::size_t i = 0; i < contexts.size(); ++i) {
      const auto next = next_probabilities(logits_of, contexts[i]);
      for (std::int32_t id = 0; id < kDrawnVocabulary; ++id) {
        longer_joint.push_back(joint[i] * next[static_cast<std::size_t>(id)]);
        longer.push_back(contexts[i]);
        longer.back().push_back(id);
      }
    }
    joint = std::move(longer_joint);
    contexts = std::move(longer);
  }
  return joint;
}

// Counts answers by their first three tokens.
class Triples : public Listener {
 public:
  explicit Triples(std::vector<int>& counts) : counts_(counts) {}

  bool on_token(const GeneratedToken& token) override {
    tokens_.push_back(token.id);
    return true;
  }

  void on_end(SequenceEnd /*end*/) noexcept override {
    int cell = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      cell = cell * kDrawnVocabulary + tokens_.at(i);
    }
    ++counts_.at(static_cast<std::size_t>(cell));
  }

 private:
  std::vector<int>& counts_;
  Ids tokens_;
};

// So many answers with these drafts at temperature 1, a seed each.
inline void expect_joint_distribution(
    BatchGenerator& generator,
    const NextLogits& logits_of,
    const Ids& prompt,
    Speculation how,
    int answers
) {
  const std::vector<double> probabilities = joint_probabilities(logits_of, prompt);
  std::vector<int> counts(probabilities.size(), 0);
  for (int seed = 0; seed < answers; ++seed) {
    SequenceRequest request = request_of(prompt, 4);
    request.sampling.temperature = 1.0;
    request.sampling.seed = static_cast<std::uint64_t>(seed);
    request.speculation = how;
    generator.add(std::move(request), std::make_unique<Triples>(counts));
    const bool full = seed % kDrawnBatch == kDrawnBatch - 1 || seed + 1 == answers;
    while (full && !generator.idle()) {
      generator.step();
    }
  }
  EXPECT_GT(saker::testing::chi_square_p(counts, probabilities), kUnlikely);
}

}  // namespace saker::generate
