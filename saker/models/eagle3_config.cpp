// SPDX-License-Identifier: Apache-2.0
#include "saker/models/eagle3_config.h"

#include "saker/base/error.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace saker::models {
namespace {

constexpr int kMaxReadLayers = 64;
constexpr int kMaxLayerNumber = 4096;
constexpr int kMaxTargetHidden = 1 << 24;
constexpr int kUsualTaps = 3;
constexpr std::string_view kLayerIds = "eagle_aux_hidden_state_layer_ids";

bool names_eagle3(const Json& config) {
  const Json* architectures = find_member(config, "architectures");
  return architectures != nullptr && architectures->is_array() &&
         std::ranges::any_of(*architectures, [](const Json& entry) {
           return entry.is_string() &&
                  entry.get_ref<const std::string&>().find("Eagle3") != std::string::npos;
         });
}

// A member that is an object; null if there is none.
const Json* section(const Json& config, std::string_view key) {
  const Json* found = json_has(config, key) ? find_member(config, key) : nullptr;
  require(
      found == nullptr || found->is_object(),
      ErrorCode::kCorruptData,
      "[config] {} is {}, expected an object",
      key,
      found == nullptr ? "" : describe_json(*found)
  );
  return found;
}

// The fields of a head, which may lie in `eagle_config`.
struct HeadFields {
  const Json& root;
  const Json* own;  // Null: no `eagle_config`.

  const Json& holder_of(std::string_view key) const {
    return own != nullptr && json_has(*own, key) ? *own : root;
  }

  bool flag(std::string_view key, bool fallback) const {
    return json_bool(holder_of(key), key, fallback);
  }

  void need(std::string_view key, bool wanted) const {
    require(
        flag(key, wanted) == wanted,
        ErrorCode::kUnsupported,
        "[config] {} is {}, only {} can be run",
        key,
        !wanted,
        wanted
    );
  }
};

void refuse_other_heads(const HeadFields& fields, const Json& layer) {
  constexpr std::array<std::string_view, 4> kModelTypes{"", "llama", "qwen2", "qwen3"};
  const std::string type = json_string(layer, "model_type", "");
  require(
      std::ranges::find(kModelTypes, type) != kModelTypes.end(),
      ErrorCode::kUnsupported,
      "[config] model_type of an EAGLE-3 head is \"{}\", expected llama, qwen2 or qwen3",
      type
  );
  fields.need("use_input_layernorm_in_first_layer", true);
  fields.need("use_last_layernorm", true);
  fields.need("use_mtp_layernorm", false);
  fields.need("use_moe", false);
  for (const std::string_view key : {"parallel_draft_step", "parallel_drafting_step"}) {
    const auto steps = json_int(fields.holder_of(key), key, 1);
    require(
        steps == 1,
        ErrorCode::kUnsupported,
        "[config] {} is {}, only heads that draft token after token can be run",
        key,
        steps
    );
  }
}

// Numbers in `eagle_config` are layers whose outputs are read. At the root they count from the
// embedding, so that number N is the input of layer N.
std::vector<int> read_layers(const HeadFields& fields) {
  const Json& holder = fields.holder_of(kLayerIds);
  if (!json_has(holder, kLayerIds)) {
    return {};
  }
  const Json& list = *find_member(holder, kLayerIds);
  require(
      list.is_array() && !list.empty() && list.size() <= kMaxReadLayers,
      ErrorCode::kCorruptData,
      "[config] {} is {}, expected an array of 1 to {} layers",
      kLayerIds,
      describe_json(list),
      kMaxReadLayers
  );
  const int shift = &holder == &fields.root ? 1 : 0;
  std::vector<int> layers;
  layers.reserve(list.size());
  for (const Json& entry : list) {
    const bool fits = entry.is_number_integer() && entry >= 0 && entry < kMaxLayerNumber;
    require(
        fits,
        ErrorCode::kCorruptData,
        "[config] {} has {}, expected numbers of layers from 0",
        kLayerIds,
        describe_json(entry)
    );
    layers.push_back(entry.get<int>() - shift);
  }
  return layers;
}

int read_tap_count(const HeadFields& fields, const std::vector<int>& layers) {
  constexpr std::string_view kKey = "num_aux_hidden_states";
  const int expected = layers.empty() ? kUsualTaps : static_cast<int>(layers.size());
  const auto said = json_int(fields.holder_of(kKey), kKey, expected);
  require(
      said == expected,
      ErrorCode::kCorruptData,
      "[config] {} is {}, expected {}, the layers of {}",
      kKey,
      said,
      expected,
      layers.empty() ? "a head without a list" : kLayerIds
  );
  return expected;
}

DecoderConfig read_layer(const Json& layer) {
  DecoderConfig decoder = read_decoder_config(layer, {});
  const LayerPattern never = [](const Json&, int) { return false; };
  const auto count = static_cast<int>(decoder.layers.size());
  set_windows(decoder, read_sliding_layers(layer, count, never), read_window(layer, 0));
  return decoder;
}

}  // namespace

bool is_eagle3_config(const Json& config) {
  if (!config.is_object()) {
    return false;
  }
  const Json* kind = find_member(config, "speculators_model_type");
  if (kind != nullptr && kind->is_string()) {
    return *kind == "eagle3";
  }
  return names_eagle3(config) || json_has(config, "draft_vocab_size");
}

Eagle3Config read_eagle3_config(const Json& config) {
  const Json* nested = section(config, "transformer_layer_config");
  const HeadFields fields{config, section(config, "eagle_config")};
  const Json& layer = nested != nullptr ? *nested : config;
  refuse_other_heads(fields, layer);
  Eagle3Config result;
  result.decoder = read_layer(layer);
  const DecoderConfig& decoder = result.decoder;
  result.draft_vocab_size =
      static_cast<int>(read_size(config, "draft_vocab_size", decoder.vocab_size, decoder.vocab_size)
      );
  result.target_hidden =
      static_cast<int>(read_size(config, "target_hidden_size", decoder.hidden, kMaxTargetHidden));
  result.reads_layers = fields.flag("use_aux_hidden_state", true);
  if (result.reads_layers) {
    result.target_layers = read_layers(fields);
    result.tap_count = read_tap_count(fields, result.target_layers);
    result.norm_before_fc = fields.flag("norm_before_fc", false);
    result.norm_each_tap = fields.flag("fc_norm", false);
  } else {
    result.tap_count = 1;
    require(
        result.target_hidden == decoder.hidden,
        ErrorCode::kCorruptData,
        "[config] target_hidden_size is {} and use_aux_hidden_state is false, expected "
        "hidden_size {}",
        result.target_hidden,
        decoder.hidden
    );
  }
  // Files in the speculators format that lack the flag were trained with it.
  result.norm_before_residual = fields.flag("norm_before_residual", nested != nullptr);
  result.norm_output = fields.flag("norm_output", false);
  return result;
}

std::vector<int> default_eagle3_layers(int layer_count) {
  const auto output_before = [&](int layer) { return std::clamp(layer - 1, 0, layer_count - 1); };
  return {output_before(2), output_before(layer_count / 2), output_before(layer_count - 3)};
}

void check_target(const Eagle3Config& config, const ModelInfo& target) {
  const auto check = [](std::string_view what, std::int64_t got, std::int64_t expected) {
    require(
        got == expected,
        ErrorCode::kInvalidArgument,
        "EAGLE-3 head: its {} is {}, expected the model's {}",
        what,
        got,
        expected
    );
  };
  const bool narrower = config.target_hidden != config.decoder.hidden;
  check(narrower ? "target_hidden_size" : "hidden_size", config.target_hidden, target.hidden_size);
  check("vocab_size", config.decoder.vocab_size, target.vocab_size);
  for (const int layer : config.target_layers) {
    require(
        layer < target.layer_count,
        ErrorCode::kInvalidArgument,
        "EAGLE-3 head: it reads the output of the target's layer {}, expected less than the "
        "model's {}",
        layer,
        target.layer_count
    );
  }
}

}  // namespace saker::models
