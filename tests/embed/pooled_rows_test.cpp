// SPDX-License-Identifier: Apache-2.0
#include "saker/embed/pooled_rows.h"

#include "saker/base/error.h"
#include "saker/nn/forward_context.h"

#include "tests/embed/golden_models.h"
#include "tests/models/random_model.h"
#include "tests/support/expect_error.h"
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace saker::embed {
namespace {

using models::Pooling;
using testing::expect_error;
using Ids = std::vector<std::int32_t>;

// Sequences of one token, of a few, and of more than a page of the cache has.
std::vector<Ids> sequences_of(int count) {
  std::vector<Ids> all;
  for (int i = 0; i < count; ++i) {
    const int length = i % 5 == 3 ? 70 + i : 1 + i * 7 % 20;
    Ids ids;
    for (int t = 0; t < length; ++t) {
      ids.push_back((t * 31 + i * 17) % 50);
    }
    all.push_back(std::move(ids));
  }
  return all;
}

Json config_of(const std::string& kind) {
  Json config = models::small_config(kind == "bidirectional" ? "gemma3_text" : kind);
  if (kind == "bidirectional") {
    config["use_bidirectional_attention"] = true;
    config["sliding_window"] = 12;
    config["sliding_window_pattern"] = 2;
  }
  return config;
}

class PooledRows : public ::testing::TestWithParam<std::string> {};

// A row has the same bits alone, beside others, and whatever fits into a pass.
TEST_P(PooledRows, BitsDoNotDependOnPasses) {
  const auto model = models::random_model(config_of(GetParam()), {});
  const std::vector<Ids> ids = sequences_of(24);
  const std::vector<TokenSpan> all(ids.begin(), ids.end());
  for (const Pooling pooling : {Pooling::kLast, Pooling::kMean, Pooling::kCls}) {
    std::vector<float> alone;
    for (const TokenSpan one : all) {
      const auto row = pool_rows(*model, std::span(&one, 1), {.pooling = pooling});
      alone.insert(alone.end(), row.begin(), row.end());
    }
    for (const int step : {1, 7, 64, 512}) {
      SCOPED_TRACE(step);
      EXPECT_EQ(pool_rows(*model, all, {.pooling = pooling, .prefill_step = step}), alone);
    }
    // What else the thread does may change each pass's size.
    int passes = 0;
    const auto before_pass = [&passes] { return ++passes * 13 % 40; };
    EXPECT_EQ(pool_rows(*model, all, {.pooling = pooling, .before_pass = before_pass}), alone);
    EXPECT_GT(passes, 1);
  }
}

// The rows are those of one pass over the whole sequence.
TEST_P(PooledRows, AreRowsOfTheModel) {
  const auto model = models::random_model(config_of(GetParam()), {});
  const Ids ids = sequences_of(4)[3];
  cache::SequenceCache cache = model->make_cache({});
  nn::ForwardContext context({{&cache, static_cast<int>(ids.size())}});
  mx::array hidden = model->forward(mx::array(ids.data(), {static_cast<int>(ids.size())}), context);
  hidden = mx::contiguous(mx::astype(hidden, mx::float32));
  mx::eval(hidden);
  const auto width = static_cast<std::size_t>(model->info().hidden_size);
  const std::span<const float> rows(hidden.data<float>(), hidden.size());
  const auto row = [&](std::size_t at) {
    const auto part = rows.subspan(at * width, width);
    return std::vector<float>(part.begin(), part.end());
  };
  const TokenSpan tokens(ids);
  const auto pooled = [&](Pooling pooling) {
    return pool_rows(*model, std::span(&tokens, 1), {.pooling = pooling});
  };
  EXPECT_EQ(pooled(Pooling::kLast), row(ids.size() - 1));
  EXPECT_EQ(pooled(Pooling::kCls), row(0));
  const auto mean = pooled(Pooling::kMean);
  for (std::size_t i = 0; i < width; ++i) {
    double sum = 0.0;
    for (std::size_t t = 0; t < ids.size(); ++t) {
      sum += static_cast<double>(rows[t * width + i]);
    }
    EXPECT_NEAR(mean[i], sum / static_cast<double>(ids.size()), 1e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, PooledRows, ::testing::Values("qwen3", "gemma3_text", "qwen3_5_text", "bidirectional")
);

// The last token changes the first one's row exactly if tokens see later ones.
TEST(PooledRowsOfDirections, FirstRowSeesTheLastToken) {
  for (const std::string kind : {"gemma3_text", "bidirectional"}) {
    const auto model = models::random_model(config_of(kind), {});
    const Ids one = {1, 2, 3};
    const Ids other = {1, 2, 4};
    const std::vector<TokenSpan> both = {one, other};
    const std::vector<float> rows = pool_rows(*model, both, {.pooling = Pooling::kCls});
    const auto half = static_cast<std::ptrdiff_t>(rows.size() / 2);
    const bool same = std::equal(rows.begin(), rows.begin() + half, rows.begin() + half);
    EXPECT_EQ(same, kind == "gemma3_text") << kind;
  }
}

TEST(PooledRowsErrors, NameWhatIsWrong) {
  const auto model = models::random_model(config_of("qwen3"), {});
  const auto pool = [&](const Ids& ids, int step) {
    const TokenSpan tokens(ids);
    return pool_rows(*model, std::span(&tokens, 1), {.prefill_step = step});
  };
  expect_error(ErrorCode::kInvalidArgument, {"no tokens"}, [&] { pool({}, 8); });
  expect_error(ErrorCode::kInvalidArgument, {"50", "49"}, [&] { pool({50}, 8); });
  expect_error(ErrorCode::kInvalidArgument, {"-1"}, [&] { pool({-1}, 8); });
  expect_error(ErrorCode::kInvalidArgument, {"257", "256"}, [&] { pool(Ids(257, 1), 8); });
  expect_error(ErrorCode::kInvalidArgument, {"prefill_step"}, [&] { pool({1}, 0); });
  EXPECT_EQ(pool_rows(*model, {}, {}), std::vector<float>());
}

}  // namespace
}  // namespace saker::embed
