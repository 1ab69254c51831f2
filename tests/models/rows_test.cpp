// SPDX-License-Identifier: Apache-2.0
// The bits of a row's logits don't depend on the rows beside it, on where chunks end or on the
// number of threads.
#include "saker/base/error.h"
#include "saker/kernels/backend.h"

#include "tests/models/random_model.h"
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstring>

namespace saker::models {
namespace {

struct Sequence {
  std::vector<int> ids;
  std::size_t done = 0;
  cache::SequenceCache cache;
  std::vector<float> logits;  // [done, V]
};

std::vector<float> to_floats(const mx::array& array) {
  auto evaluated = mx::contiguous(array);
  mx::eval(evaluated);
  return {evaluated.data<float>(), evaluated.data<float>() + evaluated.size()};
}

Json random_config() {
  const int kv_heads = *rc::gen::inRange(1, 4);
  auto config = small_config(*rc::gen::elementOf(supported_model_types()));
  config["num_key_value_heads"] = kv_heads;
  config["num_attention_heads"] = kv_heads * *rc::gen::inRange(1, 4);
  config["head_dim"] = 2 * *rc::gen::inRange(2, 20);
  config["sliding_window"] = *rc::gen::inRange(1, 90);
  config["sliding_window_pattern"] = 2;
  config["use_sliding_window"] = true;
  config["max_window_layers"] = 1;
  return config;
}

// Widths fit the format's groups, and need not be a multiple of anything otherwise.
RandomModelOptions random_options(Json& config) {
  RandomModelOptions options;
  options.biases = *rc::gen::arbitrary<bool>();
  options.seed = *rc::gen::inRange(0U, 1000U);
  options.format = *rc::gen::element(
      kernels::WeightFormat{.kind = kernels::WeightKind::kFloat32},
      kernels::WeightFormat{.kind = kernels::WeightKind::kBFloat16},
      kernels::WeightFormat{.kind = kernels::WeightKind::kAffine, .bits = 4, .group_size = 32},
      kernels::WeightFormat{.kind = kernels::WeightKind::kAffine, .bits = 8, .group_size = 32},
      kernels::WeightFormat{.kind = kernels::WeightKind::kAffine, .bits = 3, .group_size = 32}
  );
  const bool grouped = options.format.bits > 0;
  config["hidden_size"] = grouped ? 32 * *rc::gen::inRange(1, 4) : *rc::gen::inRange(3, 100);
  config["intermediate_size"] = grouped ? 32 * *rc::gen::inRange(1, 5) : *rc::gen::inRange(1, 150);
  if (grouped) {
    config["head_dim"] = 32;
  }
  return options;
}

std::vector<int> random_ids(int max_length) {
  const auto length = *rc::gen::inRange(1, max_length);
  return *rc::gen::container<std::vector<int>>(
      static_cast<std::size_t>(length), rc::gen::inRange(0, 50)
  );
}

// One pass over the next rows of some sequences.
void run_pass(const Model& model, std::vector<std::pair<Sequence*, std::size_t>> parts) {
  std::vector<nn::Span> spans;
  std::vector<int> ids;
  for (const auto& [sequence, count] : parts) {
    const auto first = sequence->ids.begin() + static_cast<std::ptrdiff_t>(sequence->done);
    ids.insert(ids.end(), first, first + static_cast<std::ptrdiff_t>(count));
    sequence->cache.begin();
    spans.push_back({&sequence->cache, static_cast<int>(count)});
  }
  nn::ForwardContext context(spans);
  const auto rows = mx::array(ids.data(), {static_cast<int>(ids.size())}, mx::int32);
  const auto logits = to_floats(model.unembed(model.forward(rows, context)));
  auto next = logits.begin();
  for (const auto& [sequence, count] : parts) {
    const auto end =
        next +
        static_cast<std::ptrdiff_t>(count * static_cast<std::size_t>(model.info().vocab_size));
    sequence->logits.insert(sequence->logits.end(), next, end);
    sequence->cache.commit(static_cast<std::int64_t>(count));
    sequence->done += count;
    next = end;
  }
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void check_rows() {
  auto config = random_config();
  const auto options = random_options(config);
  const auto model = random_model(config, options);
  const CacheOptions cache_options{.max_kv_size = *rc::gen::element(0, 0, 9, 70)};
  std::vector<Sequence> sequences;
  const auto count = *rc::gen::inRange(1, 17);
  for (int i = 0; i < count; ++i) {
    sequences.push_back({random_ids(i == 0 ? 150 : 24), 0, model->make_cache(cache_options), {}});
  }
  while (std::ranges::any_of(sequences, [](const auto& s) { return s.done < s.ids.size(); })) {
    std::vector<std::pair<Sequence*, std::size_t>> parts;
    for (auto& sequence : sequences) {
      const auto left = sequence.ids.size() - sequence.done;
      if (left > 0 && *rc::gen::inRange(0, 4) > 0) {
        parts.emplace_back(
            &sequence, *rc::gen::inRange(std::size_t{1}, std::min<std::size_t>(left, 70) + 1)
        );
      }
    }
    if (parts.empty()) {  // Small test sizes draw the lowest number again and again.
      const auto next =
          std::ranges::find_if(sequences, [](const auto& s) { return s.done < s.ids.size(); });
      parts.emplace_back(&*next, 1);
    }
    kernels::set_threads(*rc::gen::inRange(1, 5));
    run_pass(*model, parts);
  }
  kernels::set_threads(*rc::gen::inRange(1, 5));
  for (const auto& sequence : sequences) {
    Sequence alone{sequence.ids, 0, model->make_cache(cache_options), {}};
    run_pass(*model, {{&alone, alone.ids.size()}});
    RC_ASSERT(same_bits(alone.logits, sequence.logits));
  }
}

class Rows : public ::testing::TestWithParam<const char*> {
 protected:
  void TearDown() override {
    kernels::select_instruction_set(default_set_);
    kernels::set_threads(default_threads_);
  }

  std::string default_set_{kernels::instruction_set()};
  int default_threads_ = kernels::threads();
};

TEST_P(Rows, AreIndependentOfTheirNeighbours) {
  try {
    kernels::select_instruction_set(GetParam());
  } catch (const Error& error) {
    ASSERT_EQ(error.code(), ErrorCode::kUnsupported);  // This machine lacks it.
    return;
  }
  EXPECT_TRUE(rc::check(check_rows));
}

INSTANTIATE_TEST_SUITE_P(
    InstructionSets,
    Rows,
    ::testing::Values("portable", "avx2", "avx512", "avx512_bf16"),
    [](const auto& test) { return std::string(test.param); }
);

}  // namespace
}  // namespace saker::models
