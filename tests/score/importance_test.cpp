// SPDX-License-Identifier: Apache-2.0
// Sums of squares against plain sums, on tiny models with random weights.
#include "saker/score/importance.h"

#include "saker/base/error.h"
#include "saker/score/input_collector.h"

#include "tests/models/random_model.h"
#include "tests/support/expect_error.h"
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

namespace saker::score {
namespace {

using saker::testing::expect_error;
using Ids = std::vector<std::int32_t>;

Ids text_of(int count) {
  Ids tokens;
  for (int i = 0; i < count; ++i) {
    tokens.push_back((i * 37 + i * i) % 50);
  }
  return tokens;
}

// A part of gemma4's layers slides, and others share rows; qwen3_5 has linear attention.
class ImportanceOfModels : public ::testing::TestWithParam<std::string> {
 protected:
  static std::unique_ptr<const models::Model> model() {
    return models::random_model(models::small_config(GetParam()), {.seed = 3});
  }
};

mx::array run(
    const models::Model& model,
    const Ids& ids,
    nn::InputObserver* observer,
    std::map<int, mx::array>* captured = nullptr
) {
  cache::SequenceCache cache = model.make_cache({});
  nn::ForwardContext context({{.cache = &cache, .row_count = static_cast<int>(ids.size())}});
  if (observer != nullptr) {
    context.observe_inputs(*observer);
  }
  if (captured != nullptr) {
    for (int layer = -1; layer < model.info().layer_count; ++layer) {
      context.captured_layers.push_back(layer);
    }
  }
  auto hidden = model.forward(mx::array(ids.data(), {static_cast<int>(ids.size())}), context);
  mx::eval(hidden);
  if (captured != nullptr) {
    *captured = context.captured;
  }
  return hidden;
}

std::vector<double> plain_squares(const mx::array& rows) {
  const mx::array dense = mx::contiguous(mx::astype(rows, mx::float32));
  mx::eval(dense);
  const auto columns = static_cast<std::size_t>(dense.shape(1));
  std::vector<double> sums(columns);
  for (std::size_t i = 0; i < dense.size(); ++i) {
    const double x = dense.data<float>()[i];
    sums[i % columns] += x * x;
  }
  return sums;
}

void expect_near(const std::vector<double>& a, const std::vector<double>& b, double relative) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_NEAR(a[i], b[i], relative * std::abs(b[i])) << "column " << i;
  }
}

void expect_same(const Importance& a, const Importance& b) {
  ASSERT_EQ(a.modules.size(), b.modules.size());
  for (const auto& [module, squares] : a.modules) {
    EXPECT_EQ(squares->sums, b.modules.at(module)->sums) << module;
    EXPECT_EQ(squares->counts, b.modules.at(module)->counts) << module;
  }
}

TEST_P(ImportanceOfModels, ObservedPassesHaveTheSameBits) {
  const auto tiny = model();
  for (const int count : {1, 40, 130}) {
    InputCollector collector;
    const auto plain = run(*tiny, text_of(count), nullptr);
    EXPECT_TRUE(mx::array_equal(plain, run(*tiny, text_of(count), &collector)).item<bool>());
  }
}

TEST_P(ImportanceOfModels, EveryLinearLayerHasItsSums) {
  const auto tiny = model();
  const auto found = measure_importance(*tiny, text_of(40), {.chunk = 40, .head = true});
  for (const nn::Module& module : tiny->modules()) {
    if (module.embedding || module.norm) {
      continue;
    }
    const auto entry = found.modules.find(module.path);
    ASSERT_NE(entry, found.modules.end()) << module.path;
    EXPECT_EQ(entry->second->columns, module.inputs) << module.path;
    const std::vector<std::int64_t>& counts = entry->second->counts;
    if (module.experts) {  // Each token takes two of them.
      EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}), 80) << module.path;
    } else {
      EXPECT_EQ(counts, std::vector<std::int64_t>{40}) << module.path;
    }
  }
  // Without the head: nothing else is missing.
  const auto without = measure_importance(*tiny, text_of(40), {.chunk = 40});
  EXPECT_EQ(without.modules.size() + 1, found.modules.size());
  EXPECT_FALSE(without.modules.contains("lm_head"));
}

// Inputs of attention are the normed residual stream, and the head's is the pass's result.
TEST_P(ImportanceOfModels, SumsAreThoseOfPlainArithmetic) {
  const auto tiny = model();
  const Ids ids = text_of(60);
  std::map<int, mx::array> stream;
  const auto hidden = run(*tiny, ids, nullptr, &stream);
  const auto found = measure_importance(*tiny, ids, {.chunk = 60, .head = true});
  expect_near(found.modules.at("lm_head")->sums, plain_squares(hidden), 1e-12);
  for (int layer = 0; layer < tiny->info().layer_count; ++layer) {
    const auto path = fmt::format("model.layers.{}.", layer);
    const auto norm = std::ranges::find(
        tiny->modules(), path + "input_layernorm", [](const auto& module) { return module.path; }
    );
    ASSERT_NE(norm, tiny->modules().end());
    const mx::array& x = stream.at(layer - 1);
    const auto mean = mx::mean(mx::square(x), 1, true);
    const auto normed = x * mx::rsqrt(mean + mx::array(1e-6F)) * norm->norm->factors;
    const bool linear = found.modules.contains(path + "linear_attn.in_proj_qkv");
    const auto& sums =
        found.modules.at(path + (linear ? "linear_attn.in_proj_qkv" : "self_attn.q_proj"))->sums;
    expect_near(sums, plain_squares(normed), 1e-4);
  }
}

TEST_P(ImportanceOfModels, PassesDoNotMatter) {
  const auto tiny = model();
  const Ids ids = text_of(100);
  const auto whole = measure_importance(*tiny, ids, {.chunk = 50});
  EXPECT_EQ(whole.chunks, 2);
  for (const int budget : {1, 7, 64}) {
    SCOPED_TRACE(budget);
    const auto cut =
        measure_importance(*tiny, ids, {.chunk = 50, .before_pass = [&] { return budget; }});
    expect_same(whole, cut);
  }
}

TEST_P(ImportanceOfModels, ChunksAreTextsOfTheirOwn) {
  const auto tiny = model();
  const Ids ids = text_of(100);
  const auto both = measure_importance(*tiny, ids, {.chunk = 45});  // 10 tokens are left out.
  const auto first = measure_importance(*tiny, ids, {.chunk = 45, .chunks = 1});
  const auto second = measure_importance(*tiny, std::span(ids).subspan(45), {.chunk = 45});
  EXPECT_EQ(both.chunks, 2);
  for (const auto& [module, squares] : both.modules) {
    std::vector<double> sums = first.modules.at(module)->sums;
    const auto& more = second.modules.at(module)->sums;
    std::ranges::transform(sums, more, sums.begin(), std::plus{});
    expect_near(squares->sums, sums, 1e-12);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Architectures,
    ImportanceOfModels,
    ::testing::Values("llama", "gemma2", "gemma4", "qwen3", "qwen3_moe", "qwen3_5")
);

// All chosen experts of a token get the router's input.
TEST(Importance, CountsTheRowsOfExperts) {
  const auto model = models::random_model(models::small_config("qwen3_moe"), {.seed = 3});
  const auto found = measure_importance(*model, text_of(80), {.chunk = 80});
  for (const std::string layer : {"model.layers.0.mlp.", "model.layers.1.mlp."}) {
    const InputSquares& router = *found.modules.at(layer + "gate");
    const InputSquares& up = *found.modules.at(layer + "switch_mlp.up_proj");
    const InputSquares& down = *found.modules.at(layer + "switch_mlp.down_proj");
    EXPECT_EQ(found.modules.at(layer + "switch_mlp.gate_proj").get(), &up);
    ASSERT_EQ(up.counts.size(), 4U);
    EXPECT_EQ(up.counts, down.counts);
    EXPECT_EQ(std::reduce(up.counts.begin(), up.counts.end()), 80 * 2);
    ASSERT_EQ(up.sums.size(), 4U * 32U);
    std::vector<double> sums(32);
    for (std::size_t i = 0; i < up.sums.size(); ++i) {
      sums[i % 32] += up.sums[i] / 2;
      EXPECT_EQ(up.sums[i] > 0, up.counts[i / 32] > 0);
    }
    expect_near(sums, router.sums, 1e-12);
  }
}

TEST(Importance, ChunksBeginWithTheGivenToken) {
  const auto model = models::random_model(models::small_config("llama"), {.seed = 3});
  Ids ids = text_of(60);
  const auto replaced = measure_importance(*model, ids, {.chunk = 30, .first_token = 9});
  ids[0] = 9;
  ids[30] = 9;
  expect_same(replaced, measure_importance(*model, ids, {.chunk = 30}));
}

TEST(Importance, TellsProgress) {
  const auto model = models::random_model(models::small_config("llama"), {.seed = 3});
  std::vector<std::int64_t> done;
  measure_importance(
      *model,
      text_of(99),
      {.chunk = 20,
       .chunks = 3,
       .progress =
           [&](std::int64_t now, std::int64_t total) {
             done.push_back(now);
             EXPECT_EQ(total, 3);
           }}
  );
  EXPECT_EQ(done, (std::vector<std::int64_t>{1, 2, 3}));
}

TEST(Importance, RefusesWhatItCannotMeasure) {
  const auto model = models::random_model(models::small_config("llama"), {.seed = 3});
  const auto refused = [&](std::string_view word, const Ids& ids, ImportanceOptions options) {
    expect_error(ErrorCode::kInvalidArgument, {word}, [&] {
      measure_importance(*model, ids, options);
    });
  };
  refused("29 tokens, expected at least one chunk of 30", text_of(29), {.chunk = 30});
  refused("to 256", text_of(300), {.chunk = 257});
  refused("from 1", text_of(30), {.chunk = 0});
  refused("-1 chunks", text_of(30), {.chunk = 10, .chunks = -1});
  refused("50", {1, 50, 2}, {.chunk = 3});
  refused("50", {1, 2, 3}, {.chunk = 3, .first_token = 50});
}

TEST(InputSquares, RefuseNumbersThatAreNotFinite) {
  InputCollector collector;
  const auto x = mx::array({1.0F, std::numeric_limits<float>::quiet_NaN()}, {1, 2});
  collector.observe({.modules = {"a.weight"}, .rows = x});
  expect_error(ErrorCode::kCorruptData, {"a.weight"}, [&] { collector.result(); });
}

}  // namespace
}  // namespace saker::score
