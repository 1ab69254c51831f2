// SPDX-License-Identifier: Apache-2.0
#include "saker/base/error.h"
#include "saker/models/architecture.h"
#include "saker/models/decoder.h"
#include "saker/models/encoder.h"
#include "saker/models/model.h"
#include "saker/models/mtp.h"
#include "saker/models/tensor_roster.h"
#include "saker/models/tensor_rules.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace saker::models {
namespace {

struct Row {
  std::string_view model_type;
  Architecture (*architecture)();
};

constexpr std::array kTable{
    Row{"afmoe", afmoe},
    Row{"apertus", apertus},
    Row{"bailing_hybrid", bailing_hybrid},
    Row{"bailing_moe", bailing_moe},
    Row{"bailing_moe_v2", bailing_moe},
    Row{"cohere2", cohere2},
    Row{"deepseek_v2", deepseek_v2},
    Row{"deepseek_v3", deepseek_v3},
    Row{"cohere2_moe", cohere2_moe},
    Row{"dots1", dots1},
    Row{"ernie4_5", ernie4_5},
    Row{"ernie4_5_moe", ernie4_5_moe},
    Row{"exaone4", exaone4},
    Row{"falcon_h1", falcon_h1},
    Row{"gemma", gemma},
    Row{"gemma2", gemma2},
    Row{"gemma3", gemma3},
    Row{"gemma3_text", gemma3},
    Row{"gemma4", gemma4},
    Row{"gemma4_text", gemma4},
    Row{"gemma4_unified", gemma4},
    Row{"gemma4_unified_text", gemma4},
    Row{"generic", generic},
    Row{"glm4_moe_lite", glm4_moe_lite},
    Row{"glm4_moe", glm4_moe},
    Row{"gpt_oss", gpt_oss},
    Row{"granite", granite},
    Row{"granitemoe", granitemoe},
    Row{"granitemoehybrid", granitemoehybrid},
    Row{"hunyuan_v1_dense", hunyuan_v1_dense},
    Row{"kimi_k2", deepseek_v3},
    Row{"kimi_k25", deepseek_v3},
    Row{"kimi_linear", kimi_linear},
    Row{"hunyuan_v1_moe", hunyuan_v1_moe},
    Row{"laguna", laguna},
    Row{"lfm2", lfm2},
    Row{"lfm2_moe", lfm2_moe},
    Row{"llama", llama},
    Row{"llama4", llama4},
    Row{"llama4_text", llama4},
    Row{"mimo", mimo},
    Row{"minimax_m2", minimax_m2},
    Row{"ministral3", ministral3},
    Row{"mistral", mistral},
    Row{"mistral3", ministral3},
    Row{"mistral4", mistral4},
    Row{"mixtral", mixtral},
    Row{"nemotron_h", nemotron_h},
    Row{"olmo2", olmo2},
    Row{"olmo3", olmo3},
    Row{"olmoe", olmoe},
    Row{"phi3", phi3},
    Row{"qwen2", qwen2},
    Row{"qwen2_moe", qwen2_moe},
    Row{"qwen3", qwen3},
    Row{"qwen3_5", qwen3_5},
    Row{"qwen3_5_moe", qwen3_5_moe},
    Row{"qwen3_5_moe_text", qwen3_5_moe},
    Row{"qwen3_5_text", qwen3_5},
    Row{"qwen3_moe", qwen3_moe},
    Row{"qwen3_next", qwen3_next},
    Row{"qwen3_vl", qwen3_vl},
    Row{"qwen3_vl_moe", qwen3_vl_moe},
    Row{"qwen3_vl_moe_text", qwen3_vl_moe},
    Row{"qwen3_vl_text", qwen3_vl},
    Row{"seed_oss", seed_oss},
    Row{"smollm3", smollm3},
};

struct EncoderRow {
  std::string_view model_type;
  EncoderArchitecture (*architecture)();
};

constexpr std::array kEncoders{
    EncoderRow{"bert", bert},
    EncoderRow{"modernbert", modernbert},
    EncoderRow{"nomic_bert", nomic_bert},
    EncoderRow{"roberta", roberta},
    EncoderRow{"xlm-roberta", roberta},
};

// Drafts whose layers are of one of these architectures, see assistant.h.
constexpr std::array kAssistants{
    Row{"gemma4_assistant", gemma4},
    Row{"gemma4_unified_assistant", gemma4},
};

std::optional<Architecture> find_row(std::span<const Row> table, std::string_view model_type) {
  const auto found = std::ranges::find(table, model_type, &Row::model_type);
  return found != table.end() ? std::optional(found->architecture()) : std::nullopt;
}

// Empty for configurations without one.
std::string model_type_of(const Json& config) {
  const auto given = config.is_object() ? config.find("model_type") : config.end();
  return given != config.end() && given->is_string() ? given->get<std::string>() : "";
}

std::optional<EncoderArchitecture> find_encoder(const Json& config) {
  const std::string model_type = model_type_of(config);
  const auto* const found = std::ranges::find(kEncoders, model_type, &EncoderRow::model_type);
  return found != kEncoders.end() ? std::optional(found->architecture()) : std::nullopt;
}

EncoderConfig read_config(const EncoderArchitecture& architecture, const Json& config) {
  EncoderConfig encoder = architecture.read(config);
  encoder.embedding = read_embedding_config(config, encoder.embedding);
  return encoder;
}

// The architecture of a decoder.
Architecture find_architecture(const Json& config) {
  require(
      config.is_object(),
      ErrorCode::kCorruptData,
      "[config] is of type {}, expected an object",
      config.type_name()
  );
  const auto model_type = json_string(config, "model_type", "");
  require(!model_type.empty(), ErrorCode::kCorruptData, "[config] model_type is missing");
  if (const auto found = find_row(kTable, model_type)) {
    return *found;
  }
  require(
      !is_encoder(config),
      ErrorCode::kUnsupported,
      "[config] model_type is \"{}\", which is an encoder, expected a decoder",
      model_type
  );
  throw Error(
      ErrorCode::kUnsupported,
      fmt::format(
          "[config] model_type is \"{}\", expected one of {}; {}",
          model_type,
          fmt::join(all_model_types(), ", "),
          kHowToAdd
      )
  );
}

DecoderConfig read_config(const Architecture& architecture, const Json& config) {
  DecoderConfig decoder = architecture.read(config);
  if (architecture.always_tied) {
    decoder.head = HeadChoice::kTied;
  }
  decoder.embedding = read_embedding_config(config, decoder.embedding);
  return decoder;
}

}  // namespace

std::optional<Architecture> assistant_architecture(const Json& config) {
  return find_row(kAssistants, model_type_of(config));
}

TensorRules tensor_rules(const Json& config) {
  if (const auto encoder = find_encoder(config)) {
    return encoder->tensors;
  }
  const auto model = find_row(kTable, model_type_of(config));
  const auto found = model ? model : assistant_architecture(config);
  return found ? found->tensors : TensorRules{};
}

bool is_always_tied(std::string_view model_type) {
  const auto found = find_row(kTable, model_type);
  return found && found->always_tied;
}

std::unique_ptr<const Model> make_model(
    const Json& config, const nn::Weights& weights, const LoadProgress& progress
) {
  if (const auto encoder = find_encoder(config)) {
    return make_encoder(read_config(*encoder, config), weights, progress);
  }
  const auto architecture = find_architecture(config);
  auto decoder = read_config(architecture, config);
  if (architecture.adjust != nullptr) {
    architecture.adjust(decoder, body_scope(weights));
  }
  return make_decoder(decoder, weights, architecture.build_layer, progress);
}

mx::array lm_head_argmax(
    const Model& model, const mx::array& hidden, const nn::RowContext& adapters
) {
  return mx::astype(mx::argmax(model.unembed(hidden, adapters), -1), mx::int32);
}

std::unique_ptr<const MtpHead> make_mtp_head(const Json& config, const nn::Weights& weights) {
  if (is_encoder(config)) {
    return nullptr;
  }
  const auto architecture = find_architecture(config);
  if (!architecture.has_mtp_heads && !architecture.has_next_layers) {
    return nullptr;
  }
  auto decoder = read_config(architecture, config);
  const auto body = find_body_scope(weights);
  std::optional<nn::Weights> scope;
  if (architecture.has_mtp_heads) {
    scope = mtp_scope(weights);
  } else if (body) {
    scope = *body / "layers" / std::to_string(decoder.layers.size());
  }
  const MtpNames names = architecture.has_mtp_heads ? MtpNames{} : kNextLayerNames;
  if (!scope || !(*scope / names.join).has("weight")) {
    return nullptr;
  }
  if (body && architecture.adjust != nullptr) {
    architecture.adjust(decoder, *body);
  }
  return std::make_unique<const MtpHead>(decoder, *scope, names);
}

TensorRoster tensor_roster(const Json& config) {
  if (const auto encoder = find_encoder(config)) {
    return TensorRoster(read_config(*encoder, config));
  }
  const auto architecture = find_architecture(config);
  const DecoderConfig decoder = read_config(architecture, config);
  return {
      decoder,
      {.stream_norms = stream_norms(decoder, architecture.build_layer),
       .layer_scalars = architecture.has_layer_scalars,
       .mtp_head = architecture.has_mtp_heads,
       .next_layer = architecture.has_next_layers}
  };
}

void check_config(const Json& config) {
  if (const auto encoder = find_encoder(config)) {
    read_config(*encoder, config);
    return;
  }
  read_config(find_architecture(config), config);
}

std::vector<LayerCacheFacts> layer_caches(
    const Json& json, const CacheOptions& options, mx::Dtype dtype
) {
  if (is_encoder(json)) {
    return {};
  }
  const DecoderConfig config = read_config(find_architecture(json), json);
  std::vector<LayerCacheFacts> layers;
  const std::vector<LayerConfig> cached = config.cached_layers();
  layers.reserve(cached.size());
  for (const LayerConfig& layer : cached) {
    const auto shape = config.kv_shape(layer, options.kv_bits, dtype);
    const auto cache = make_layer_cache(config, layer, options, dtype);
    const bool has_rows = layer.mixing == TokenMixing::kAttention;
    layers.push_back({
        .kind = std::string(cache->kind()),
        .max_size = cache->max_size(),
        .row_bytes = has_rows ? kernels::kv_row_bytes(shape) : 0,
        .state_bytes = has_rows ? 0 : cache->nbytes(),
    });
  }
  return layers;
}

std::vector<std::string_view> supported_model_types() {
  std::vector<std::string_view> types;
  types.reserve(kTable.size());
  for (const auto& row : kTable) {
    types.push_back(row.model_type);
  }
  return types;
}

std::vector<std::string_view> supported_architectures() {
  std::vector<std::string_view> names;
  std::vector<Architecture (*)()> seen;
  for (const auto& row : kTable) {
    if (std::ranges::find(seen, row.architecture) == seen.end()) {
      seen.push_back(row.architecture);
      names.push_back(row.model_type);
    }
  }
  return names;
}

std::vector<std::string_view> encoder_model_types() {
  std::vector<std::string_view> types;
  types.reserve(kEncoders.size());
  for (const auto& row : kEncoders) {
    types.push_back(row.model_type);
  }
  return types;
}

std::vector<std::string_view> all_model_types() {
  auto types = supported_model_types();
  std::ranges::copy(encoder_model_types(), std::back_inserter(types));
  return types;
}

bool is_encoder(const Json& config) {
  return find_encoder(config).has_value();
}

}  // namespace saker::models
