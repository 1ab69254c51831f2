// SPDX-License-Identifier: Apache-2.0
// The bits of a row's logits don't depend on the rows beside it, on where chunks end or on the
// number of threads.
#include "saker/base/error.h"
#include "saker/kernels/gpu/backend.h"

#include "tests/kernels/saved_machine.h"
#include "tests/models/random_model.h"
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

namespace saker::models {
namespace {

constexpr unsigned kCases = 60;

struct Sequence {
  std::vector<int> ids;
  std::size_t done = 0;
  cache::SequenceCache cache;
  std::vector<float> logits;    // [done, V]
  std::vector<float> captured;  // [done, 3 * hidden]
};

std::vector<float> to_floats(const mx::array& array) {
  auto evaluated = mx::contiguous(array);
  mx::eval(evaluated);
  return {evaluated.data<float>(), evaluated.data<float>() + evaluated.size()};
}

// Choices of one test case.
class Choices {
 public:
  explicit Choices(unsigned seed) : random_(seed) {}

  // In [low, high].
  int number(int low, int high) {
    return low + static_cast<int>(random_() % static_cast<unsigned>(high - low + 1));
  }

  template <typename T>
  T one_of(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(number(0, static_cast<int>(values.size()) - 1))];
  }

 private:
  std::mt19937 random_;
};

Json random_config(Choices& choices) {
  const int kv_heads = choices.number(1, 3);
  auto config = small_config(choices.one_of(supported_architectures()));
  config["num_key_value_heads"] = kv_heads;
  config["num_attention_heads"] = kv_heads * choices.number(1, 3);
  config["head_dim"] = 2 * choices.number(2, 20);
  config["sliding_window"] = choices.number(1, 90);
  config["sliding_window_pattern"] = 2;
  config["use_sliding_window"] = true;
  config["max_window_layers"] = 1;
  config["attention_chunk_size"] = config["sliding_window"];
  if (config["model_type"].get<std::string>() == "smollm3") {
    config["no_rope_layer_interval"] = 2;
  }
  const int experts = choices.number(1, 9);
  const int chosen = choices.number(1, experts);
  set_experts(config, experts, chosen);
  config["top_k_experts"] = chosen;
  config["enable_moe_block"] = choices.number(0, 1) == 1;
  config["norm_topk_prob"] = choices.number(0, 1) == 1;
  if (has_latents(config["model_type"].get<std::string>())) {
    if (experts < 4) {
      for (const auto* key : {"n_group", "num_expert_group"}) {
        config[key] = 1;  // Groups have two experts or more.
      }
    }
    config["norm_topk_prob"] = config["model_type"] != "deepseek_v2";
    config["q_lora_rank"] = choices.number(0, 1) == 1 ? Json(choices.number(1, 40)) : Json(nullptr);
    config["kv_lora_rank"] = choices.number(1, 90);
    config["qk_nope_head_dim"] = choices.number(1, 40);
    config["qk_rope_head_dim"] = 2 * choices.number(1, 12);
    config["v_head_dim"] = choices.number(1, 40);
    config["n_shared_experts"] = choices.number(0, 1);
  }
  config["global_head_dim"] = 8 * choices.number(1, 9);  // A quarter of them rotates.
  config["num_global_key_value_heads"] = kv_heads;
  config["attention_k_eq_v"] = choices.number(0, 1) == 1;
  config["num_kv_shared_layers"] = choices.number(0, config["num_hidden_layers"].get<int>() - 2);
  config["hidden_size_per_layer_input"] =
      is_gemma4(config["model_type"].get<std::string>()) ? choices.number(0, 40) : 0;
  return config;
}

// Widths fit the format's groups, and need not be a multiple of anything otherwise.
RandomModelOptions random_options(Choices& choices, Json& config) {
  RandomModelOptions options;
  options.biases = choices.number(0, 1) == 1;
  options.seed = static_cast<unsigned>(choices.number(0, 1000));
  options.format = choices.one_of<kernels::WeightFormat>({
      {.kind = kernels::WeightKind::kFloat32},
      {.kind = kernels::WeightKind::kBFloat16},
      {.kind = kernels::WeightKind::kAffine, .bits = 4, .group_size = 32},
      {.kind = kernels::WeightKind::kAffine, .bits = 8, .group_size = 32},
      {.kind = kernels::WeightKind::kAffine, .bits = 3, .group_size = 32},
  });
  const bool grouped = options.format.bits > 0;
  config["hidden_size"] = grouped ? 32 * choices.number(1, 3) : choices.number(3, 100);
  const int width = grouped ? 32 * choices.number(1, 4) : choices.number(1, 150);
  set_widths(config, width, grouped ? 32 * choices.number(1, 3) : choices.number(1, 90));
  config["shared_intermediate_size"] = config["intermediate_size"];
  if (grouped && has_latents(config["model_type"].get<std::string>())) {
    config["q_lora_rank"] = 32;
    config["kv_lora_rank"] = 32 * choices.number(1, 3);
    config["v_head_dim"] = 32;
  }
  if (grouped) {
    config["head_dim"] = 32;
    config["global_head_dim"] = 32 * choices.number(1, 3);
    config["hidden_size_per_layer_input"] = config["hidden_size_per_layer_input"] > 0 ? 32 : 0;
  }
  return options;
}

std::vector<int> random_ids(Choices& choices, int max_length) {
  std::vector<int> ids(static_cast<std::size_t>(choices.number(1, max_length)));
  for (auto& id : ids) {
    id = choices.number(0, 49);
  }
  return ids;
}

// One pass over the next rows of some sequences.
void run_pass(const Model& model, const std::vector<std::pair<Sequence*, std::size_t>>& parts) {
  std::vector<nn::Span> spans;
  std::vector<int> ids;
  for (const auto& [sequence, count] : parts) {
    const auto first = sequence->ids.begin() + static_cast<std::ptrdiff_t>(sequence->done);
    ids.insert(ids.end(), first, first + static_cast<std::ptrdiff_t>(count));
    sequence->cache.begin();
    spans.push_back({&sequence->cache, static_cast<int>(count)});
  }
  nn::ForwardContext context(spans);
  context.captured_layers = {1, -1, 0};
  const auto rows = mx::array(ids.data(), {static_cast<int>(ids.size())}, mx::int32);
  const auto hidden = model.forward(rows, context);
  const auto logits = to_floats(model.unembed(hidden, context.adapters()));
  auto next = logits.begin();
  std::int32_t first_row = 0;
  for (const auto& [sequence, count] : parts) {
    const auto end =
        next +
        static_cast<std::ptrdiff_t>(count * static_cast<std::size_t>(model.info().vocab_size));
    sequence->logits.insert(sequence->logits.end(), next, end);
    std::vector<std::int32_t> own(count);
    std::iota(own.begin(), own.end(), first_row);
    const auto captured = to_floats(context.captured_hidden(hidden, own));
    sequence->captured.insert(sequence->captured.end(), captured.begin(), captured.end());
    first_row += static_cast<std::int32_t>(count);
    sequence->cache.commit(static_cast<std::int64_t>(count));
    sequence->done += count;
    next = end;
  }
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void check_rows(unsigned seed) {
  Choices choices(seed);
  auto config = random_config(choices);
  const auto options = random_options(choices, config);
  const auto model = random_model(config, options);
  CacheOptions cache_options{
      .max_kv_size = choices.one_of<int>({0, 0, 9, 70}),
      .kv_bits = choices.one_of<int>({16, 16, 32, 8, 4}),
  };
  if (has_latents(config["model_type"].get<std::string>()) && cache_options.kv_bits < 16) {
    cache_options.kv_bits = 16;  // Latents are not quantized.
  }
  std::vector<Sequence> sequences;
  const auto count = choices.number(1, 16);
  sequences.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    sequences.push_back(
        {random_ids(choices, i == 0 ? 150 : 24), 0, model->make_cache(cache_options), {}, {}}
    );
  }
  while (std::ranges::any_of(sequences, [](const auto& s) { return s.done < s.ids.size(); })) {
    std::vector<std::pair<Sequence*, std::size_t>> parts;
    for (auto& sequence : sequences) {
      const auto left = static_cast<int>(sequence.ids.size() - sequence.done);
      if (left > 0 && choices.number(0, 3) > 0) {
        const auto rows = choices.number(1, std::min(left, choices.one_of<int>({1, 7, 70})));
        parts.emplace_back(&sequence, static_cast<std::size_t>(rows));
      }
    }
    if (!parts.empty()) {
      kernels::set_threads(choices.number(1, 4));
      run_pass(*model, parts);
    }
  }
  kernels::set_threads(choices.number(1, 4));
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    Sequence alone{sequences[i].ids, 0, model->make_cache(cache_options), {}, {}};
    run_pass(*model, {{&alone, alone.ids.size()}});
    EXPECT_TRUE(same_bits(alone.logits, sequences[i].logits))
        << config.dump() << ", sequence " << i << " of " << count;
    EXPECT_TRUE(same_bits(alone.captured, sequences[i].captured))
        << config.dump() << ", captured of sequence " << i << " of " << count;
  }
}

class Rows : public ::testing::TestWithParam<const char*> {
  kernels::SavedMachine saved_;
};

TEST_P(Rows, AreIndependentOfTheirNeighbours) {
  try {
    kernels::select_instruction_set(GetParam());
  } catch (const Error& error) {
    ASSERT_EQ(error.code(), ErrorCode::kUnsupported);
    GTEST_SKIP() << error.what();
  }
  for (unsigned seed = 0; seed < kCases && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    check_rows(seed);
  }
}

INSTANTIATE_TEST_SUITE_P(
    InstructionSets,
    Rows,
    ::testing::Values(
        "portable", "avx2", "avx512", "avx512_vnni", "avx512_bf16", "avx512_bf16_zen4"
    ),
    [](const auto& test) { return std::string(test.param); }
);

}  // namespace
}  // namespace saker::models
