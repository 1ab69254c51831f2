// SPDX-License-Identifier: Apache-2.0
#include "saker/load/export/model_metadata.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/load/export/rope_metadata.h"
#include "saker/models/architecture.h"
#include "saker/models/decoder_config.h"
#include "saker/models/embedding_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

namespace saker::load::gguf {
namespace {

using models::DecoderConfig;

// The architecture in such files that runs a folder's.
struct WritableModel {
  std::string_view model_type;
  std::string_view family;
  models::Architecture (*architecture)();
};

constexpr std::array kWritable{
    WritableModel{"llama", "llama", models::llama},
    WritableModel{"mistral", "llama", models::mistral},
    WritableModel{"generic", "llama", models::generic},
    WritableModel{"qwen2", "qwen2", models::qwen2},
    WritableModel{"qwen3", "qwen3", models::qwen3},
    WritableModel{"qwen3_moe", "qwen3moe", models::qwen3_moe},
    WritableModel{"qwen3_5", "qwen35", models::qwen3_5},
    WritableModel{"qwen3_5_text", "qwen35", models::qwen3_5},
    WritableModel{"gemma", "gemma", models::gemma},
    WritableModel{"gemma2", "gemma2", models::gemma2},
    WritableModel{"gemma3", "gemma3", models::gemma3},
    WritableModel{"gemma3_text", "gemma3", models::gemma3},
};

const WritableModel& writable_model(const Json& config) {
  const std::string type = json_string(config, "model_type", "");
  const auto* found =
      std::ranges::find(kWritable, std::string_view(type), &WritableModel::model_type);
  std::vector<std::string_view> known;
  for (const WritableModel& model : kWritable) {
    known.push_back(model.model_type);
  }
  require(
      found != kWritable.end(),
      ErrorCode::kUnsupported,
      "[config] model_type is {}, GGUF files can be written for {}",
      quote(type),
      fmt::join(known, ", ")
  );
  return *found;
}

DecoderConfig decoder_of(const WritableModel& model, const Json& config) {
  const models::Architecture architecture = model.architecture();
  DecoderConfig decoder = architecture.read(config);
  if (architecture.always_tied) {
    decoder.head = models::HeadChoice::kTied;
  }
  decoder.embedding = models::read_embedding_config(config, decoder.embedding);
  return decoder;
}

const Family& family_named(std::string_view name) {
  return *std::ranges::find(families(), name, &Family::name);
}

std::string_view activation_name(kernels::Activation activation) {
  switch (activation) {
    case kernels::Activation::kSilu:
      return "silu";
    case kernels::Activation::kGeluTanh:
      return "gelu_pytorch_tanh";
    case kernels::Activation::kGelu:
      return "gelu";
    case kernels::Activation::kRelu2:
      return "relu2";
    default:
      return "sigmoid";
  }
}

// Every `period`-th layer has the whole past, and the others slide; 0: none slides.
int window_period(const Family& family) {
  constexpr int kAlternating = 2;
  return !family.windows ? 0 : family.window_pattern > 0 ? family.window_pattern : kAlternating;
}

class MetadataMaker {
 public:
  // `text`: the configuration's text part.
  MetadataMaker(const Family& family, DecoderConfig decoder, const Json& text)
      : family_(family), decoder_(std::move(decoder)), text_(text), keys_(family.name) {}

  ModelMetadata make(const ModelFacts& facts) {
    keys_.add_general("general.architecture", std::string(family_.name));
    keys_.add_general("general.type", std::string("model"));
    if (!facts.name.empty()) {
      keys_.add_general("general.name", facts.name);
    }
    add_sizes();
    ModelMetadata result;
    result.rope_factors = add_rope(keys_, family_, decoder_, text_);
    check_layers();
    check_activation();
    check_query_scale();
    add_windows();
    add_softcaps();
    add_experts();
    add_linear_attention();
    add_embedding(facts);
    result.family = &family_;
    result.pairs = keys_.take();
    result.heads = decoder_.heads;
    result.kv_heads = decoder_.kv_heads;
    result.layers = layer_count();
    result.vocab_size = decoder_.vocab_size;
    result.is_tied = decoder_.head == models::HeadChoice::kTied;
    const kernels::DeltaShape& shape = decoder_.delta.shape;
    result.delta = {
        .key_heads = shape.key_heads,
        .value_heads = shape.value_heads,
        .key_dim = shape.key_dim,
        .value_dim = shape.value_dim,
    };
    return result;
  }

 private:
  int layer_count() const { return static_cast<int>(decoder_.layers.size()); }

  void add_sizes() {
    keys_.add_integer("vocab_size", decoder_.vocab_size);
    keys_.add_integer("block_count", layer_count());
    keys_.add_integer("context_length", decoder_.context_length);
    keys_.add_integer("embedding_length", decoder_.hidden);
    keys_.add_integer("feed_forward_length", decoder_.intermediate);
    keys_.add_integer("attention.head_count", decoder_.heads);
    keys_.add_integer("attention.head_count_kv", decoder_.kv_heads);
    keys_.add_integer("attention.key_length", decoder_.head_dim);
    keys_.add_integer("attention.value_length", decoder_.head_dim);
    keys_.add_number("attention.layer_norm_rms_epsilon", decoder_.norm.eps);
  }

  // Sizes and kinds that differ by layer.
  void check_layers() const {
    for (int i = 0; i < layer_count(); ++i) {
      const models::LayerConfig& layer = decoder_.layers[static_cast<std::size_t>(i)];
      keys_.expect(
          layer.experts == family_.experts,
          fmt::format("layer {}", i),
          layer.experts ? "a mixture of experts" : "one MLP",
          family_.experts ? "experts in every layer" : "no experts"
      );
    }
  }

  void check_activation() const {
    const std::string_view activation = activation_name(decoder_.activation);
    keys_.expect(activation == family_.activation, "hidden_act", activation, family_.activation);
  }

  // Files lack it: llama.cpp takes the width of a head, but for one size of model.
  void check_query_scale() const {
    const bool widest = family_.widest_layers > 0 && layer_count() == family_.widest_layers;
    const int divisor = widest ? decoder_.hidden / decoder_.heads : decoder_.head_dim;
    const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(divisor)));
    keys_.expect(
        decoder_.attention_scale == scale,
        "query_pre_attn_scalar",
        fmt::format("{:.6g}", std::pow(decoder_.attention_scale, -2.0F)),
        fmt::format("{}", divisor)
    );
  }

  void add_windows() {
    const int period = window_period(family_);
    for (int i = 0; i < layer_count(); ++i) {
      const bool slides = decoder_.layers[static_cast<std::size_t>(i)].window > 0;
      keys_.expect(
          slides == (period > 0 && (i + 1) % period != 0),
          fmt::format("layer {}", i),
          slides ? "a sliding window" : "attention to the whole past",
          period == 0 ? std::string("no windows")
                      : fmt::format("windows except in every {}. layer", period)
      );
    }
    if (period > 0) {
      constexpr int kDefault = 4096;
      keys_.add_integer("attention.sliding_window", models::read_window(text_, kDefault));
    }
  }

  void add_softcaps() {
    const std::array caps{
        std::pair("attn_logit_softcapping", decoder_.attention_softcap),
        std::pair("final_logit_softcapping", decoder_.final_softcap),
    };
    for (const auto& [name, cap] : caps) {
      keys_.expect(
          (cap > 0.0F) == family_.softcaps,
          name,
          cap > 0.0F ? fmt::format("{}", cap) : "none",
          family_.softcaps ? "a number" : "none"
      );
      if (family_.softcaps) {
        keys_.add_number(name, cap);
      }
    }
  }

  void add_experts() {
    if (!family_.experts) {
      return;
    }
    keys_.expect(
        decoder_.moe.routing.score == kernels::RouterScore::kSoftmaxOfChosen,
        "norm_topk_prob",
        "false",
        "true"
    );
    keys_.add_integer("expert_count", decoder_.moe.experts);
    keys_.add_integer("expert_used_count", decoder_.moe.routing.chosen);
    keys_.add_integer("expert_feed_forward_length", decoder_.moe.intermediate);
  }

  void add_linear_attention() {
    if (!family_.linear_attention) {
      return;
    }
    const kernels::DeltaShape& shape = decoder_.delta.shape;
    keys_.expect(decoder_.attention_gate, "attn_output_gate", "false", "true");
    keys_.add_integer("ssm.conv_kernel", shape.taps);
    keys_.add_integer("ssm.state_size", shape.key_dim);
    keys_.add_integer("ssm.group_count", shape.key_heads);
    keys_.add_integer("ssm.time_step_rank", shape.value_heads);
    keys_.add_integer("ssm.inner_size", std::int64_t{shape.value_heads} * shape.value_dim);
    keys_.add_integer("full_attention_interval", full_interval());
  }

  // Full attention is in every so many layers. More than there are layers: in none.
  int full_interval() const {
    const auto& layers = decoder_.layers;
    const auto first =
        std::ranges::find(layers, models::TokenMixing::kAttention, &models::LayerConfig::mixing);
    const int interval = static_cast<int>(first - layers.begin()) + 1;
    for (int i = 0; i < layer_count(); ++i) {
      const bool linear =
          layers[static_cast<std::size_t>(i)].mixing == models::TokenMixing::kGatedDelta;
      keys_.expect(
          linear == ((i + 1) % interval != 0),
          fmt::format("layer {}", i),
          linear ? "linear attention" : "full attention",
          fmt::format("full attention in every {}. layer", interval)
      );
    }
    return interval;
  }

  void add_embedding(const ModelFacts& facts) {
    const models::EmbeddingConfig& embedding = decoder_.embedding;
    if (!embedding.is_declared && !decoder_.bidirectional) {
      return;
    }
    keys_.expect(embedding.problem.empty(), "text_embedding", embedding.problem, "a rule");
    keys_.expect(embedding.normalize, "text_embedding.normalize", "false", "true");
    const bool identities = std::ranges::all_of(embedding.dense, [](const auto activation) {
      return activation == models::DenseActivation::kIdentity;
    });
    keys_.expect(identities, "text_embedding.dense", "tanh", "identity");
    // llama.cpp's numbers.
    constexpr int kMean = 1;
    constexpr int kCls = 2;
    constexpr int kLast = 3;
    keys_.add_integer(
        "pooling_type",
        embedding.pooling == models::Pooling::kMean  ? kMean
        : embedding.pooling == models::Pooling::kCls ? kCls
                                                     : kLast
    );
    add_dense(facts.dense);
  }

  // Two layers at most, and only one architecture has them.
  void add_dense(const std::vector<DenseSize>& sizes) {
    constexpr std::array<std::string_view, 2> kNames{"dense_2", "dense_3"};
    const std::size_t most = decoder_.bidirectional ? kNames.size() : 0;
    keys_.expect(
        sizes.size() <= most,
        "the number of dense layers",
        fmt::format("{}", sizes.size()),
        fmt::format("at most {}", most)
    );
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const auto& [inputs, outputs] = sizes[i];
      const std::int64_t outer = i == 0 ? inputs : outputs;
      keys_.expect(
          outer == decoder_.hidden,
          fmt::format("dense.{}", i),
          fmt::format("of {} inputs and {} outputs", inputs, outputs),
          fmt::format("hidden_size {} on one side", decoder_.hidden)
      );
      keys_.add_integer(fmt::format("{}_feat_in", kNames.at(i)), inputs);
      keys_.add_integer(fmt::format("{}_feat_out", kNames.at(i)), outputs);
    }
  }

  const Family& family_;
  DecoderConfig decoder_;
  const Json& text_;
  FamilyPairs keys_;
};

}  // namespace

ModelMetadata model_metadata(const Json& config, const ModelFacts& facts) {
  const WritableModel& model = writable_model(config);
  DecoderConfig decoder = decoder_of(model, config);
  const Json text = models::text_config(config, model.model_type);
  const Family& family =
      family_named(decoder.bidirectional ? std::string_view("gemma-embedding") : model.family);
  return MetadataMaker(family, std::move(decoder), text).make(facts);
}

}  // namespace saker::load::gguf
