// SPDX-License-Identifier: Apache-2.0
#pragma once

// Small configurations with changes, and what they say of layers.

#include "saker/models/decoder_config.h"

#include "tests/models/random_model.h"

#include <string_view>
#include <vector>

namespace saker::models {

inline std::vector<int> windows(const DecoderConfig& config) {
  std::vector<int> result;
  result.reserve(config.layers.size());
  for (const auto& layer : config.layers) {
    result.push_back(layer.window);
  }
  return result;
}

inline Json config_with(std::string_view type, const Json& changes) {
  auto config = small_config(type);
  config["num_hidden_layers"] = 4;
  config.update(changes);
  return config;
}

}  // namespace saker::models
