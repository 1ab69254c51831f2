// SPDX-License-Identifier: Apache-2.0
#include "saker/models/mamba2_config.h"

#include "saker/base/error.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace saker::models {
namespace {

constexpr std::int64_t kMaxMambaHeads = 1 << 12;
constexpr std::int64_t kMaxMambaDim = 1 << 12;
constexpr std::int64_t kMaxMambaState = 1 << 24;  // Numbers in a layer's state.
constexpr double kMaxStep = std::numeric_limits<float>::max();

// Transformers writes an infinity as an object, others as null.
double step_limit(const Json& value) {
  if (value.is_null()) {
    return std::numeric_limits<double>::infinity();
  }
  if (value.is_number()) {
    return value.get<double>();
  }
  const auto text = value.is_object() ? value.find("__float__") : value.end();
  return text != value.end() && *text == "Infinity" ? std::numeric_limits<double>::infinity()
                                                    : std::numeric_limits<double>::quiet_NaN();
}

void read_step_limits(const Json& json, nn::Mamba2Options& options) {
  constexpr std::string_view kKey = "time_step_limit";
  if (!json_has(json, kKey)) {
    return;
  }
  const Json& limits = *json.find(kKey);
  const bool is_pair = limits.is_array() && limits.size() == 2;
  const double low = is_pair ? step_limit(limits[0]) : -1.0;
  const double high = is_pair ? step_limit(limits[1]) : -1.0;
  require(
      low >= 0.0 && low <= kMaxStep && high >= low,
      ErrorCode::kCorruptData,
      "[config] {} is {}, expected two numbers from 0 on, the smaller one first",
      kKey,
      describe_json(limits)
  );
  options.min_step = static_cast<float>(low);
  options.max_step =
      high > kMaxStep ? std::numeric_limits<float>::infinity() : static_cast<float>(high);
}

}  // namespace

Json without_auto_head_dim(Json sizes, std::string_view key) {
  if (json_has(sizes, key) && sizes[std::string(key)] == "auto") {
    sizes.erase(std::string(key));
  }
  return sizes;
}

nn::Mamba2Options read_mamba2(
    const Json& json, const DecoderConfig& config, const Mamba2Keys& keys
) {
  const auto size = [&](std::string_view key, std::int64_t fallback, std::int64_t high) {
    return static_cast<int>(read_size(json, key, fallback, high));
  };
  nn::Mamba2Options options{.hidden = config.hidden, .shape = {}, .norm = config.norm};
  kernels::ScanShape& shape = options.shape;
  shape.heads = size(keys.heads, keys.default_heads, kMaxMambaHeads);
  shape.head_dim = size(keys.head_dim, keys.default_head_dim, kMaxMambaDim);
  shape.state_dim = size(keys.state_dim, keys.default_state_dim, kMaxMambaDim);
  shape.groups = size(keys.groups, keys.default_groups, kMaxMambaHeads);
  shape.taps = size(keys.taps, 4, kernels::kMaxConvolutionTaps);
  require(
      shape.taps > 1,
      ErrorCode::kUnsupported,
      "[config] {} is {}, expected at least 2",
      keys.taps,
      shape.taps
  );
  require(
      shape.heads % shape.groups == 0,
      ErrorCode::kCorruptData,
      "[config] {} is {}, expected a multiple of {} {}",
      keys.heads,
      shape.heads,
      keys.groups,
      shape.groups
  );
  const auto state = std::int64_t{shape.heads} * shape.head_dim * shape.state_dim;
  require(
      state <= kMaxMambaState,
      ErrorCode::kUnsupported,
      "[config] {} {} times {} {} times {} {} is above {}",
      keys.heads,
      shape.heads,
      keys.head_dim,
      shape.head_dim,
      keys.state_dim,
      shape.state_dim,
      kMaxMambaState
  );
  read_step_limits(json, options);
  return options;
}

std::vector<TokenMixing> read_mixing(
    const Json& json,
    std::string_view key,
    std::size_t layer_count,
    const std::vector<MixingName>& names
) {
  const auto list = json.find(key);
  require(
      list != json.end() && list->is_array() && list->size() == layer_count,
      ErrorCode::kCorruptData,
      "[config] {} is {}, expected an array of num_hidden_layers {}",
      key,
      list != json.end() ? describe_json(*list) : "missing",
      layer_count
  );
  std::vector<TokenMixing> mixing;
  mixing.reserve(layer_count);
  for (const Json& entry : *list) {
    const auto name = entry.is_string() ? entry.get<std::string>() : std::string();
    const auto found = std::ranges::find(names, std::string_view(name), &MixingName::name);
    require(
        found != names.end(),
        ErrorCode::kUnsupported,
        "[config] {} has {}, expected \"{}\" or \"{}\"",
        key,
        describe_json(entry),
        names[0].name,
        names[1].name
    );
    mixing.push_back(found->mixing);
  }
  return mixing;
}

bool is_published_kernel(const std::vector<std::int64_t>& shape) {
  return shape.size() == 3 && shape[1] == 1 && shape[2] > 1;
}

SanitizedTensor sanitized_kernel(std::vector<std::int64_t> shape) {
  if (is_published_kernel(shape)) {
    std::swap(shape[1], shape[2]);
  }
  return {.shape = std::move(shape)};
}

}  // namespace saker::models
