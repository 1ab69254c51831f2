// SPDX-License-Identifier: Apache-2.0
#include "saker/load/gguf/gguf_two_kinds.h"

#include "saker/base/error.h"
#include "saker/base/numbered_name.h"
#include "saker/load/gguf/gguf_keys.h"
#include "saker/load/gguf/gguf_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace saker::load::gguf {
namespace {

constexpr std::array<ModuleNames, 4> kOwnOfLayer = {{
    {"inp_gate.weight", "per_layer_input_gate.weight"},
    {"proj.weight", "per_layer_projection.weight"},
    {"post_norm.weight", "post_per_layer_input_norm.weight"},
    {"layer_output_scale.weight", "layer_scalar"},
}};

constexpr std::array<ModuleNames, 3> kOwnOfModel = {{
    {"per_layer_token_embd.weight", "model.embed_tokens_per_layer.weight"},
    {"per_layer_model_proj.weight", "model.per_layer_model_projection.weight"},
    {"per_layer_proj_norm.weight", "model.per_layer_projection_norm.weight"},
}};

class TwoKinds {
 public:
  TwoKinds(const Header& header, Json& config)
      : header_(header),
        keys_(header),
        config_(config),
        layers_(config["num_hidden_layers"].get<std::int64_t>()) {}

  void add(std::span<const float> rope_factors) {
    read_pattern();
    add_shared_layers();
    add_heads();
    add_widths();
    add_ropes(rope_factors);
    config_["hidden_size_per_layer_input"] =
        keys_.integer("embedding_length_per_layer_input").value_or(0);
    if (const auto cap = keys_.number("final_logit_softcapping")) {
      config_["final_logit_softcapping"] = *cap;
    }
  }

 private:
  void read_pattern() {
    constexpr std::string_view kPattern = "attention.sliding_window_pattern";
    sliding_ = header_.booleans(keys_.full(kPattern));
    require(
        layers_ > 0 && std::cmp_equal(sliding_.size(), layers_),
        ErrorCode::kCorruptData,
        "{}: '{}' has {} entries, expected one for each of the {} layers",
        header_.what(),
        keys_.full(kPattern),
        sliding_.size(),
        layers_
    );
    Json types = Json::array();
    for (const bool slides : sliding_) {
      types.push_back(slides ? "sliding_attention" : "full_attention");
    }
    config_["layer_types"] = std::move(types);
  }

  void add_shared_layers() {
    constexpr std::string_view kShared = "attention.shared_kv_layers";
    const std::int64_t shared = keys_.integer(kShared).value_or(0);
    keys_.expect(
        shared >= 0 && shared < layers_,
        kShared,
        fmt::format("{}", shared),
        fmt::format("fewer than the {} layers", layers_)
    );
    config_["num_kv_shared_layers"] = shared;
    first_shared_ = static_cast<std::size_t>(layers_ - shared);
  }

  // Width of a head in layers of one kind, from the key with this end.
  std::int64_t head_dim(std::string_view end) const {
    const std::string key = fmt::format("attention.key_length{}", end);
    const std::int64_t width = keys_.required_size(key);
    for (const char* name : {"attention.value_length", "rope.dimension_count"}) {
      const std::string other = fmt::format("{}{}", name, end);
      const std::int64_t size = keys_.integer(other).value_or(width);
      keys_.expect(
          size == width, other, fmt::format("{}", size), fmt::format("a head's {}", width)
      );
    }
    return width;
  }

  // The value of all layers of a kind; empty without one. Layers of other sizes are refused.
  std::optional<std::int64_t> of_kind(
      std::string_view key, const std::vector<std::int64_t>& sizes, bool slides
  ) const {
    std::optional<std::int64_t> found;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (sliding_[i] == slides) {
        keys_.expect(
            sizes[i] == found.value_or(sizes[i]),
            key,
            fmt::format("{} in layer {}", sizes[i], i),
            fmt::format("{} as in other layers of its kind", found.value_or(0))
        );
        found = sizes[i];
      }
    }
    return found;
  }

  void add_heads() {
    constexpr std::string_view kKey = "attention.head_count_kv";
    config_["head_dim"] = head_dim("_swa");
    config_["global_head_dim"] = head_dim("");
    auto counts = keys_.by_layer(kKey, layers_);
    if (counts.empty()) {
      counts.assign(sliding_.size(), head_count(keys_));
    }
    const auto full = of_kind(kKey, counts, false);
    const std::int64_t local = of_kind(kKey, counts, true).value_or(counts.front());
    const bool same = keys_are_values();
    config_["num_key_value_heads"] = keys_.checked_size(kKey, local);
    config_["attention_k_eq_v"] = same;
    if (same) {
      config_["num_global_key_value_heads"] = keys_.checked_size(kKey, full.value_or(local));
    }
    keys_.expect(
        same || full.value_or(local) == local,
        kKey,
        fmt::format("{} in full layers", full.value_or(local)),
        fmt::format("{} as in sliding ones, since they have values", local)
    );
  }

  // True if full layers have no matrix for values.
  bool keys_are_values() const {
    for (std::size_t i = 0; i < first_shared_; ++i) {
      if (!sliding_[i]) {
        return !has_tensor(header_, fmt::format("blk.{}.attn_v.weight", i));
      }
    }
    return false;
  }

  // Layers that share rows may be twice as wide.
  void add_widths() {
    constexpr std::string_view kKey = "feed_forward_length";
    const auto widths = keys_.by_layer(kKey, layers_);
    require(
        !widths.empty(),
        ErrorCode::kCorruptData,
        "{}: '{}' is missing",
        header_.what(),
        keys_.full(kKey)
    );
    const std::int64_t width = widths.front();
    const bool doubles = first_shared_ < widths.size() && width <= widths.back() / 2;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const std::int64_t expected = doubles && i >= first_shared_ ? 2 * width : width;
      keys_.expect(
          widths[i] == expected,
          kKey,
          fmt::format("{} in layer {}", widths[i], i),
          fmt::format("{}", expected)
      );
    }
    config_["intermediate_size"] = width;
    config_["use_double_wide_mlp"] = doubles;
  }

  // The rotating part of a full layer's head.
  double rotating_part(std::span<const float> factors) const {
    constexpr float kHuge = 1e20F;  // Such a pair does not turn within any context.
    constexpr double kUsual = 0.25;
    require(
        has_tensor(header_, "rope_freqs.weight"),
        ErrorCode::kCorruptData,
        "{}: has no tensor 'rope_freqs.weight', which full layers need",
        header_.what()
    );
    if (factors.empty()) {
      return kUsual;
    }
    const auto still = std::ranges::find_if(factors, [](float f) { return f != 1.0F; });
    const auto turning = still - factors.begin();
    const std::int64_t pairs = config_["global_head_dim"].get<std::int64_t>() / 2;
    require(
        std::cmp_equal(factors.size(), pairs) && turning > 0 &&
            std::all_of(still, factors.end(), [](float f) { return f >= kHuge; }),
        ErrorCode::kUnsupported,
        "{}: 'rope_freqs.weight' has {} numbers, the first {} of which are 1, expected {}: ones, "
        "then huge ones",
        header_.what(),
        factors.size(),
        turning,
        pairs
    );
    return static_cast<double>(turning) / static_cast<double>(pairs);
  }

  void add_ropes(std::span<const float> factors) {
    keys_.expect(!config_.contains("rope_scaling"), "rope.scaling.type", "a scaling", "none");
    config_["rope_parameters"] = {
        {"full_attention",
         {{"rope_type", "proportional"},
          {"partial_rotary_factor", rotating_part(factors)},
          {"rope_theta", keys_.number("rope.freq_base").value_or(1e6)}}},
        {"sliding_attention",
         {{"rope_type", "default"}, {"rope_theta", keys_.number("rope.freq_base_swa").value_or(1e4)}
         }},
    };
  }

  const Header& header_;
  const Keys keys_;
  Json& config_;
  const std::int64_t layers_;
  std::vector<bool> sliding_;
  std::size_t first_shared_ = 0;  // The first layer that shares rows of earlier ones.
};

}  // namespace

void add_two_kinds(const Header& header, std::span<const float> rope_factors, Json& config) {
  TwoKinds(header, config).add(rope_factors);
}

std::optional<TensorRole> two_kinds_role(std::string_view name) {
  if (const auto layer = numbered_name(name, "blk.")) {
    const auto* found = std::ranges::find(kOwnOfLayer, layer->rest, &ModuleNames::gguf);
    return found == kOwnOfLayer.end()
               ? std::nullopt
               : std::optional(TensorRole{
                     .name = fmt::format("model.layers.{}.{}", layer->number, found->ours)
                 });
  }
  const auto* found = std::ranges::find(kOwnOfModel, name, &ModuleNames::gguf);
  return found == kOwnOfModel.end() ? std::nullopt
                                    : std::optional(TensorRole{.name = std::string(found->ours)});
}

}  // namespace saker::load::gguf
