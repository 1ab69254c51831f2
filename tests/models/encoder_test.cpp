// SPDX-License-Identifier: Apache-2.0
// Encoders with random weights: the bits of a text's rows do not depend on the texts beside it or on
// the number of threads; what is wrong in a configuration is named.
#include "saker/base/error.h"
#include "saker/models/encoder_config.h"
#include "saker/models/model.h"
#include "saker/models/tensor_roster.h"
#include "saker/models/token_ids.h"

#include "tests/kernels/saved_machine.h"
#include "tests/nn/random_weights.h"
#include "tests/support/expect_error.h"
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace saker::models {
namespace {

using testing::expect_error;

Json small_encoder(std::string_view model_type) {
  return {
      {"model_type", model_type},
      {"hidden_size", 32},
      {"intermediate_size", 64},
      {"num_hidden_layers", 4},
      {"num_attention_heads", 2},
      {"vocab_size", 50},
      {"max_position_embeddings", 128},
      {"pad_token_id", 1},
      {"local_attention", 6},
  };
}

// The roster says which tensors there are.
std::unique_ptr<const Model> random_encoder(
    const Json& config, const kernels::WeightFormat& format, unsigned seed, bool classifies = false
) {
  nn::RandomWeights random(format, seed);
  const int hidden = static_cast<int>(json_int(config, "hidden_size", 0));
  const TensorRoster roster = tensor_roster(config);
  for (const auto& [name, module] : roster.modules()) {
    if (module.kind == RosterModule::Kind::kLayerNorm && module.rows > 0) {
      random.add_vector(name + ".weight", hidden, 1.0F, 0.2F);
      random.add_vector(name + ".bias", hidden, 0.0F, 0.2F);
    } else if (module.kind == RosterModule::Kind::kLinear) {
      random.add_linear(name, module.rows, module.columns);
    }
  }
  if (classifies) {
    random.add_linear("pooler.dense", hidden, hidden);
    random.add_linear("classifier", 1, hidden);
  }
  return make_model(config, nn::Weights(random.tensors(), {}), {});
}

std::vector<std::vector<float>> rows_of(
    const Model& model, const std::vector<std::vector<int>>& texts
) {
  std::vector<cache::SequenceCache> caches;
  std::vector<int> ids;
  for (const auto& text : texts) {
    caches.push_back(model.make_cache({}));
    ids.insert(ids.end(), text.begin(), text.end());
  }
  std::vector<nn::Span> spans;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    spans.push_back({&caches[i], static_cast<int>(texts[i].size())});
  }
  nn::ForwardContext context(spans);
  const auto tokens = mx::array(ids.data(), {static_cast<int>(ids.size())}, mx::int32);
  auto rows = mx::contiguous(model.forward(tokens, context));
  mx::eval(rows);
  const float* from = rows.data<float>();
  std::vector<std::vector<float>> result;
  for (const auto& text : texts) {
    const auto count = text.size() * static_cast<std::size_t>(model.info().hidden_size);
    result.emplace_back(from, from + count);
    from += count;
  }
  return result;
}

TEST(EncoderRows, AreIndependentOfTheirNeighbours) {
  const kernels::SavedMachine saved;
  const std::vector<kernels::WeightFormat> formats = {
      {.kind = kernels::WeightKind::kFloat32},
      {.kind = kernels::WeightKind::kBFloat16},
      {.kind = kernels::WeightKind::kAffine, .bits = 4, .group_size = 32},
  };
  std::mt19937 random(1);
  for (const std::string_view type : encoder_model_types()) {
    for (const kernels::WeightFormat& format : formats) {
      const auto model = random_encoder(small_encoder(type), format, 3);
      std::vector<std::vector<int>> texts(9);
      for (auto& text : texts) {
        text.resize(1 + random() % 100);
        std::ranges::generate(text, [&] { return static_cast<int>(random() % 50); });
      }
      kernels::set_threads(3);
      const auto together = rows_of(*model, texts);
      kernels::set_threads(1);
      for (std::size_t i = 0; i < texts.size(); ++i) {
        EXPECT_EQ(rows_of(*model, {texts[i]}).front(), together[i]) << type << ", text " << i;
      }
    }
  }
}

TEST(Encoder, ReadsWholeTextsAlone) {
  const auto model =
      random_encoder(small_encoder("bert"), {.kind = kernels::WeightKind::kFloat32}, 1);
  auto cache = model->make_cache({});
  const std::vector<int> ids = {1, 2, 3};
  const auto tokens = mx::array(ids.data(), {3}, mx::int32);
  nn::ForwardContext first({{&cache, 3}});
  auto rows = model->forward(tokens, first);
  mx::eval(rows);
  nn::ForwardContext second({{&cache, 3}});
  expect_error(ErrorCode::kInvalidArgument, {"token 3", "whole text"}, [&] {
    model->forward(tokens, second);
  });
  expect_error(ErrorCode::kUnsupported, {"[bert]", "does not generate", "saker embed"}, [&] {
    model->unembed(rows, {});
  });
  const auto judge =
      random_encoder(small_encoder("bert"), {.kind = kernels::WeightKind::kFloat32}, 1, true);
  expect_error(ErrorCode::kUnsupported, {"[bert]", "saker rerank"}, [&] {
    check_predicts_tokens(judge->info());
  });
}

TEST(EncoderConfigs, PositionsBeginBehindThePaddingToken) {
  const EncoderConfig config = roberta().read(small_encoder("xlm-roberta"));
  EXPECT_EQ(config.first_position, 2);
  EXPECT_EQ(config.context_length, 126);
  EXPECT_EQ(bert().read(small_encoder("bert")).context_length, 128);
}

TEST(EncoderConfigs, NameWhatIsWrong) {
  struct Wrong {
    std::string_view type;
    Json change;
    ErrorCode code;
    std::string_view word;
  };

  const auto corrupt = ErrorCode::kCorruptData;
  const auto unsupported = ErrorCode::kUnsupported;
  const std::vector<Wrong> all = {
      {"bert", {{"hidden_size", 0}}, corrupt, "hidden_size"},
      {"bert", {{"hidden_size", "a"}}, corrupt, "hidden_size"},
      {"bert", {{"intermediate_size", -1}}, corrupt, "intermediate_size"},
      {"bert", {{"num_hidden_layers", 1 << 20}}, corrupt, "num_hidden_layers"},
      {"bert", {{"vocab_size", nullptr}}, corrupt, "vocab_size"},
      {"bert", {{"num_attention_heads", 3}}, unsupported, "num_attention_heads"},
      {"bert", {{"num_attention_heads", 32}}, unsupported, "num_attention_heads"},
      {"bert", {{"layer_norm_eps", 2.0}}, corrupt, "layer_norm_eps"},
      {"bert", {{"hidden_act", "relu"}}, unsupported, "hidden_act"},
      {"bert", {{"position_embedding_type", "relative_key"}}, unsupported, "relative_key"},
      {"bert", {{"is_decoder", true}}, unsupported, "is_decoder"},
      {"bert", {{"type_vocab_size", -1}}, corrupt, "type_vocab_size"},
      {"xlm-roberta", {{"pad_token_id", 127}}, corrupt, "max_position_embeddings"},
      {"xlm-roberta", {{"pad_token_id", -2}}, corrupt, "pad_token_id"},
      {"nomic_bert", {{"activation_function", "gelu"}}, unsupported, "activation_function"},
      {"nomic_bert", {{"prenorm", true}}, unsupported, "prenorm"},
      {"nomic_bert", {{"rotary_emb_interleaved", true}}, unsupported, "rotary_emb_interleaved"},
      {"nomic_bert", {{"rotary_scaling_factor", 2}}, unsupported, "rotary_scaling_factor"},
      {"nomic_bert", {{"rotary_emb_fraction", 1.5}}, corrupt, "rotary_emb_fraction"},
      {"nomic_bert", {{"num_experts", 8}}, unsupported, "num_experts"},
      {"modernbert", {{"local_attention", 0}}, corrupt, "local_attention"},
      {"modernbert", {{"global_attn_every_n_layers", 0}}, corrupt, "global_attn_every_n_layers"},
      {"modernbert", {{"classifier_pooling", "max"}}, unsupported, "classifier_pooling"},
      {"modernbert", {{"classifier_activation", "relu"}}, unsupported, "classifier_activation"},
      {"modernbert", {{"global_rope_theta", 0}}, corrupt, "global_rope_theta"},
      {"modernbert", {{"layer_types", {"full_attention"}}}, corrupt, "layer_types"},
  };
  for (const Wrong& wrong : all) {
    Json config = small_encoder(wrong.type);
    EXPECT_NO_THROW(check_config(config)) << wrong.type;
    config.update(wrong.change);
    expect_error(wrong.code, {wrong.word}, [&] { check_config(config); });
  }
}

TEST(EncoderConfigs, AreNoDecoders) {
  for (const std::string_view type : encoder_model_types()) {
    const Json config = small_encoder(type);
    EXPECT_TRUE(is_encoder(config));
    EXPECT_TRUE(layer_caches(config, {}, mx::float32).empty());
  }
  EXPECT_FALSE(is_encoder({{"model_type", "llama"}}));
}

}  // namespace
}  // namespace saker::models
