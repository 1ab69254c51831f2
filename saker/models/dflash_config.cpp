// SPDX-License-Identifier: Apache-2.0
#include "saker/models/dflash_config.h"

#include "saker/base/error.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>

namespace saker::models {
namespace {

constexpr int kMaxBlock = 1024;
constexpr int kMaxTargetLayers = 4096;
constexpr int kMaxTaps = 64;
constexpr std::int64_t kRootVocabulary = 202048;  // For files without a `dflash_config`.

bool has_own_section(const Json& config) {
  const auto found = config.find("dflash_config");
  return found != config.end() && found->is_object();
}

// The draft's own numbers in one object; those in `dflash_config` replace those at the root.
Json own_numbers(const Json& config) {
  if (!has_own_section(config)) {
    return config;
  }
  Json numbers = config;
  for (const auto& [key, value] : config["dflash_config"].items()) {
    numbers[key] = value;
  }
  return numbers;
}

// A rope_theta at the root replaces those inside other objects.
Json with_one_theta(Json config) {
  if (json_has(config, "rope_theta")) {
    for (const auto* key : {"rope_parameters", "rope_scaling"}) {
      const auto found = config.find(key);
      if (found != config.end() && found->is_object()) {
        found->erase("rope_theta");
      }
    }
  }
  return config;
}

std::vector<int> read_target_layers(const Json& numbers, int draft_layers) {
  const auto found = numbers.find("target_layer_ids");
  if (found == numbers.end() || found->is_null()) {
    const auto count = json_int_in(numbers, "num_target_layers", 1, kMaxTargetLayers);
    return default_target_layers(static_cast<int>(count), draft_layers);
  }
  require(
      found->is_array() && !found->empty() && found->size() <= kMaxTaps,
      ErrorCode::kCorruptData,
      "[config] target_layer_ids is {}, expected an array of 1 to {} layers",
      describe_json(*found),
      kMaxTaps
  );
  std::vector<int> layers;
  layers.reserve(found->size());
  for (const Json& entry : *found) {
    const bool fits = entry.is_number_integer() && entry >= 0 && entry < kMaxTargetLayers;
    require(
        fits,
        ErrorCode::kCorruptData,
        "[config] target_layer_ids has {}, expected numbers of layers from 0",
        describe_json(entry)
    );
    layers.push_back(entry.get<int>());
  }
  return layers;
}

std::vector<bool> read_causal(const Json& config, const DecoderConfig& decoder) {
  const bool said = json_has(config, "is_causal");
  // Files without a `dflash_config` hold drafts whose tokens see the whole block.
  const bool sliding_default = has_own_section(config);
  std::vector<bool> causal;
  causal.reserve(decoder.layers.size());
  for (const LayerConfig& layer : decoder.layers) {
    causal.push_back(
        said ? json_bool(config, "is_causal", false) : sliding_default && layer.window > 0
    );
  }
  return causal;
}

std::optional<Dflash2Options> read_second(const Json& numbers, const DecoderConfig& decoder) {
  if (!json_has(numbers, "conv_kernel_size")) {
    return std::nullopt;
  }
  const auto size = [&](std::string_view key, int high) {
    return static_cast<int>(json_int_in(numbers, key, 1, high));
  };
  Dflash2Options options{
      .conv_taps = size("conv_kernel_size", 64),
      .conv_group = size("conv_group_size", decoder.hidden),
      .selector_rank = size("selector_rank", 1 << 16),
      .selector_choices = size("selector_top_k", decoder.vocab_size),
  };
  require(
      decoder.hidden % options.conv_group == 0,
      ErrorCode::kCorruptData,
      "[config] conv_group_size is {}, expected a divisor of hidden_size {}",
      options.conv_group,
      decoder.hidden
  );
  return options;
}

void refuse_other_vocabulary(const Json& numbers, const DecoderConfig& decoder) {
  const auto size = json_int(numbers, "draft_vocab_size", decoder.vocab_size);
  require(
      size == decoder.vocab_size,
      ErrorCode::kUnsupported,
      "[config] draft_vocab_size is {}, only drafts of the whole vocabulary of {} can be run",
      size,
      decoder.vocab_size
  );
}

}  // namespace

bool is_dflash_config(const Json& config) {
  if (!config.is_object()) {
    return false;
  }
  if (has_own_section(config)) {
    return true;
  }
  return json_has(config, "mask_token_id") &&
         (json_has(config, "target_layer_ids") || json_has(config, "block_size"));
}

std::vector<int> default_target_layers(int layer_count, int tap_count) {
  if (tap_count == 1) {
    return {layer_count / 2};
  }
  std::vector<int> layers;
  layers.reserve(static_cast<std::size_t>(tap_count));
  for (int i = 0; i < tap_count; ++i) {
    // Halves are rounded to even, as in the files' own tools.
    const double place = 1.0 + static_cast<double>(i) * (layer_count - 4) / (tap_count - 1);
    layers.push_back(std::max(static_cast<int>(std::nearbyint(place)), 0));
  }
  return layers;
}

DflashConfig read_dflash_config(const Json& config) {
  require(
      is_dflash_config(config),
      ErrorCode::kUnsupported,
      "[config] has no mask_token_id with block_size or target_layer_ids, in dflash_config or at "
      "the root: not a DFlash draft"
  );
  const Json numbers = own_numbers(config);
  const ConfigDefaults defaults{
      .head_dim = 128,
      .vocab_size = has_own_section(config) ? 0 : kRootVocabulary,
      .rope = {.default_theta = 1e6},
  };
  DflashConfig result;
  result.decoder = read_decoder_config(with_one_theta(config), defaults);
  DecoderConfig& decoder = result.decoder;
  decoder.head_norms = true;
  const int layer_count = static_cast<int>(decoder.layers.size());
  const LayerPattern never = [](const Json&, int) { return false; };
  set_windows(decoder, read_sliding_layers(config, layer_count, never), read_window(config, 0));
  result.causal = read_causal(config, decoder);
  result.block_size = static_cast<int>(
      json_has(numbers, "block_size") ? json_int_in(numbers, "block_size", 2, kMaxBlock) : 16
  );
  result.mask_token = static_cast<std::int32_t>(
      json_int_in(numbers, "mask_token_id", 0, std::numeric_limits<std::int32_t>::max())
  );
  require(
      result.mask_token < decoder.vocab_size,
      ErrorCode::kCorruptData,
      "[config] mask_token_id is {}, expected less than vocab_size {}",
      result.mask_token,
      decoder.vocab_size
  );
  result.target_layers = read_target_layers(numbers, layer_count);
  if (json_has(numbers, "num_target_layers")) {
    result.target_layer_count =
        static_cast<int>(json_int_in(numbers, "num_target_layers", 1, kMaxTargetLayers));
  }
  result.embedding_scale = static_cast<float>(read_positive(numbers, "input_embedding_scale", 1.0));
  result.output_multiplier = static_cast<float>(read_positive(numbers, "output_multiplier", 1.0));
  result.final_softcap = read_softcap(numbers, "final_logit_softcapping", 0.0F);
  result.second = read_second(numbers, decoder);
  refuse_other_vocabulary(numbers, decoder);
  return result;
}

void check_target(const DflashConfig& config, const ModelInfo& target) {
  const auto check = [](std::string_view what, std::int64_t got, std::int64_t expected) {
    require(
        got == expected,
        ErrorCode::kInvalidArgument,
        "DFlash draft: its {} is {}, expected the model's {}",
        what,
        got,
        expected
    );
  };
  check("hidden_size", config.decoder.hidden, target.hidden_size);
  check("vocab_size", config.decoder.vocab_size, target.vocab_size);
  if (config.target_layer_count) {
    // Some files count the embedding as a layer.
    const int count = *config.target_layer_count;
    check("num_target_layers", count, target.layer_count + (count > target.layer_count ? 1 : 0));
  }
  const int last = std::ranges::max(config.target_layers);
  require(
      last < target.layer_count,
      ErrorCode::kInvalidArgument,
      "DFlash draft: it reads the target's layer {}, expected less than the model's {}",
      last,
      target.layer_count
  );
}

}  // namespace saker::models
