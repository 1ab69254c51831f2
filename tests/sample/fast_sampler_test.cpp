// SPDX-License-Identifier: Apache-2.0
#include "saker/sample/fast_sampler.h"

#include "saker/base/log_prob.h"
#include "saker/sample/reference_sample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <random>
#include <vector>

namespace saker::sample {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

class Cases {
 public:
  explicit Cases(std::uint32_t seed) : random_(seed) {}

  template <typename Value>
  Value one_of(std::initializer_list<Value> values) {
    return values.begin()[random_() % values.size()];
  }

  double uniform() { return std::uniform_real_distribution<double>()(random_); }

  std::vector<float> smooth_row(int size) {
    std::normal_distribution<double> normal(0.0, one_of({0.01, 0.3, 1.0, 2.5, 6.0, 40.0}));
    std::vector<float> row(static_cast<std::size_t>(size));
    for (float& x : row) {
      x = static_cast<float>(normal(random_));
    }
    // Some rows have tokens that stand out.
    for (int i = one_of({0, 0, 3, 20}); i > 0; --i) {
      row[random_() % row.size()] = static_cast<float>(15.0 + uniform());
    }
    return row;
  }

  // Equal logits, neighbours whose log-probabilities round to the same, offsets that coarsen all,
  // and values that are no numbers.
  std::vector<float> rough_row(int size) {
    std::vector<float> row = smooth_row(size);
    const double levels = one_of({0.0, 1.0, 20.0});
    const float offset = one_of({0.0F, 0.0F, 17.0F, -3000.0F, 1e6F, -9e5F, 1e9F});
    const bool neighbours = one_of({false, true});
    for (float& x : row) {
      if (levels > 0.0) {
        x = static_cast<float>(std::round(static_cast<double>(x) * levels) / levels);
      }
      x += offset;
      for (auto i = neighbours ? random_() % 4 : 0; i > 0; --i) {
        x = std::nextafter(x, kInfinity);
      }
      if (random_() % 50 == 0) {
        x = one_of({kNaN, -kInfinity, -std::numeric_limits<float>::max()});
      }
    }
    return row;
  }

  // As users set them.
  SamplingOptions usual_options() {
    SamplingOptions result = options();
    result.temperature = one_of({0.3, 0.7, 1.0, 1.2});
    result.top_p = one_of({1.0, 0.5, 0.8, 0.9, 0.95});
    result.min_p = one_of({0.0, 0.01, 0.1});
    return result;
  }

  SamplingOptions options() {
    SamplingOptions result;
    result.temperature = one_of({1e-5, 0.05, 0.3, 0.7, 1.0, 1.5, 5.0, 100.0});
    result.top_p = one_of({1.0, 1.0, 0.0317, 0.5, 0.75, 0.9, 0.95, 0.999, 0.9999999});
    result.min_p = one_of({0.0, 0.0, 1e-300, 1e-4, 0.05, 0.5, 1.0});
    result.min_tokens_to_keep = one_of({1, 1, 2, 5});
    result.top_k = one_of({0, 0, 1, 2, 20, 300, 4000});
    result.seed = random_();
    return result;
  }

 private:
  std::mt19937 random_;
};

struct Outcome {
  int answers = 0;
  int wrong = 0;
};

// Both ways on the same row.
void compare(const std::vector<float>& row, const SamplingOptions& options, Outcome& outcome) {
  const BlockedRow blocked(row);
  const float max = max_logit(row);
  ASSERT_EQ(blocked.max(), max);
  if (std::isinf(max)) {
    return;
  }
  const Noise noise(options.seed, 0, 7, NoiseRole::kToken);
  const auto quick = choose_quickly(options, blocked, noise);
  if (!quick) {
    return;
  }
  ++outcome.answers;
  std::vector<float> scratch = row;
  const std::int32_t exact = choose_exactly(options, scratch, max, noise, false, {});
  if (*quick != exact) {
    ++outcome.wrong;
    ADD_FAILURE() << "got " << *quick << ", expected " << exact << ": size " << row.size()
                  << ", temperature " << options.temperature << ", top_p " << options.top_p
                  << ", min_p " << options.min_p << ", keeping " << options.min_tokens_to_keep
                  << ", top_k " << options.top_k;
  }
}

TEST(FastSampler, IsTheExactOneOnRowsOfAnyKind) {
  Cases cases(1);
  Outcome outcome;
  for (int i = 0; i < 40000 && outcome.wrong == 0; ++i) {
    const int size = cases.one_of({1, 2, 7, 100, 127, 128, 129, 300, 1000});
    compare(cases.rough_row(size), cases.options(), outcome);
  }
  EXPECT_GT(outcome.answers, 15000);
}

TEST(FastSampler, AnswersNearlyAlways) {
  Cases cases(2);
  Outcome outcome;
  int asked = 0;
  for (; asked < 20000 && outcome.wrong == 0; ++asked) {
    SamplingOptions options = cases.usual_options();
    compare(cases.smooth_row(cases.one_of({500, 2000})), options, outcome);
  }
  EXPECT_GT(outcome.answers, asked - asked / 50);
}

// Each value some forty times, as in a model whose embedding repeats.
TEST(FastSampler, AnswersWhereLogitsAreEqual) {
  Cases cases(5);
  Outcome outcome;
  int asked = 0;
  for (; asked < 3000 && outcome.wrong == 0; ++asked) {
    SamplingOptions options = cases.usual_options();
    options.top_k = cases.one_of({0, 1, 20, 39, 40});
    std::vector<float> row = cases.smooth_row(160);
    for (int i = 0; i < 39 * 160; ++i) {
      row.push_back(row[static_cast<std::size_t>(i)]);
    }
    compare(row, options, outcome);
  }
  EXPECT_GT(outcome.answers, asked - asked / 50);
}

TEST(FastSampler, LongRows) {
  Cases cases(3);
  Outcome outcome;
  constexpr int kRows = 150;
  for (int i = 0; i < kRows && outcome.wrong == 0; ++i) {
    SamplingOptions options = cases.options();
    options.temperature = cases.one_of({0.7, 1.0, 1.5});
    compare(cases.smooth_row(151936), options, outcome);
  }
  EXPECT_GT(outcome.answers, kRows * 9 / 10);
}

// Values that decide a comparison exactly: sums that reach top_p, a min_p of a token's own share,
// equals at the last place of top_k.
TEST(FastSampler, Borders) {
  Outcome outcome;
  const std::vector<float> row = {
      std::log(0.25F), std::log(0.5F), std::log(0.125F), std::log(0.0625F), std::log(0.0625F)
  };
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    for (const double temperature : {0.5, 1.0, 3.0}) {
      SamplingOptions options{.temperature = temperature, .seed = seed};
      compare(row, options, outcome);
      for (const double share : {0.125, 0.25, 0.5, 0.75, 0.875, 0.9375}) {
        options.top_p = share;
        compare(row, options, outcome);
        options.top_p = 1.0;
        options.min_p = share;
        compare(row, options, outcome);
        options.min_p = 0.0;
      }
      for (const int count : {1, 3, 4, 5, 6}) {
        options.top_k = count;
        compare(row, options, outcome);
      }
    }
  }
  EXPECT_EQ(outcome.wrong, 0);
  EXPECT_GT(outcome.answers, 50000);
}

// A top_p that is what lies above a token, or next to it.
TEST(FastSampler, NucleusThatEndsAtAToken) {
  Cases cases(4);
  Outcome outcome;
  for (int i = 0; i < 20000 && outcome.wrong == 0; ++i) {
    const std::vector<float> row = cases.smooth_row(cases.one_of({3, 10, 40}));
    const float border = row[0];
    const double log_sum = log_sum_exp(row);
    double above = 0.0;
    for (const float x : row) {
      const auto log_prob = static_cast<float>(static_cast<double>(x) - log_sum);
      above += x > border ? static_cast<double>(static_cast<float>(std::exp(log_prob))) : 0.0;
    }
    SamplingOptions options = cases.options();
    options.top_p = std::min(1.0, above * (1.0 + cases.one_of({0.0, 1e-9, -1e-9, 3e-7, -3e-7})));
    options.min_p = 0.0;
    options.top_k = 0;
    compare(row, options, outcome);
  }
  EXPECT_GT(outcome.answers, 15000);
}

}  // namespace
}  // namespace saker::sample
