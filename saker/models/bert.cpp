// SPDX-License-Identifier: Apache-2.0
// BERT (https://arxiv.org/abs/1810.04805) and RoBERTa, of which XLM-RoBERTa is the larger
// vocabulary: learned positions, types of tokens, norms after attention and MLP. RoBERTa's
// positions begin behind the padding token's id, and its classifier has its own dense layer instead
// of the pooler.
#include "saker/base/error.h"
#include "saker/models/decoder_config.h"
#include "saker/models/encoder_config.h"

#include <algorithm>
#include <array>

namespace saker::models {
namespace {

EncoderNames names() {
  return {
      .bodies = {"bert", "roberta"},
      .words = "embeddings.word_embeddings",
      .positions = "embeddings.position_embeddings",
      .types = "embeddings.token_type_embeddings",
      .input_norm = "embeddings.LayerNorm",
      .layers = "encoder.layer",
      .attention_inputs = {"attention.self.query", "attention.self.key", "attention.self.value"},
      .attention_output = "attention.output.dense",
      .attention_norm = "attention.output.LayerNorm",
      .mlp_inputs = {"intermediate.dense"},
      .mlp_output = "output.dense",
      .mlp_norm = "output.LayerNorm",
  };
}

// Heads of the training, a pooler that no vector reads, and positions as a tensor.
bool is_unread(std::string_view name, const Json&) {
  constexpr std::array<std::string_view, 5> kScopes{
      "cls.", "lm_head.", "pooler.", "bert.pooler.", "roberta.pooler."
  };
  return name.ends_with("embeddings.position_ids") || name.ends_with("embeddings.token_type_ids") ||
         std::ranges::any_of(kScopes, [&](std::string_view scope) {
           return name.starts_with(scope);
         });
}

EncoderConfig read_common(const Json& json) {
  refuse_flag(json, "is_decoder");
  require_value(json, "position_embedding_type", "absolute");
  EncoderConfig config = read_encoder_config(json, {});
  config.position_count = static_cast<int>(config.context_length);
  config.type_count = read_type_count(json);
  config.names = names();
  return config;
}

EncoderConfig read_bert(const Json& json) {
  EncoderConfig config = read_common(json);
  config.classifier = {.pooling = Pooling::kCls, .dense = "pooler.dense", .output = "classifier"};
  return config;
}

EncoderConfig read_roberta(const Json& json) {
  EncoderConfig config = read_common(json);
  config.first_position =
      json_has(json, "pad_token_id")
          ? static_cast<int>(json_int_in(json, "pad_token_id", 0, config.context_length)) + 1
          : 2;
  require(
      config.first_position < config.position_count,
      ErrorCode::kCorruptData,
      "[config] max_position_embeddings is {}, expected more than pad_token_id {} and 1",
      config.position_count,
      config.first_position - 1
  );
  config.context_length = config.position_count - config.first_position;
  config.classifier = {
      .pooling = Pooling::kCls, .dense = "classifier.dense", .output = "classifier.out_proj"
  };
  return config;
}

}  // namespace

EncoderArchitecture bert() {
  return {read_bert, {.is_unread = is_unread}};
}

EncoderArchitecture roberta() {
  return {read_roberta, {.is_unread = is_unread}};
}

}  // namespace saker::models
