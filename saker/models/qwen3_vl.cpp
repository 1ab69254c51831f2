// SPDX-License-Identifier: Apache-2.0
// Qwen 3 VL, its text part: Qwen 3's layers. The three positions of a token are one in text.
#include "saker/models/architecture.h"

#include <string_view>

namespace saker::models {
namespace {

DecoderConfig read(const Json& whole) {
  const auto json = text_config(whole, "qwen3_vl");
  auto config = read_decoder_config(json, {.head_dim = 128, .rope = {.default_theta = 5e5}});
  config.head_norms = true;
  return config;
}

}  // namespace

Architecture qwen3_vl() {
  return {
      .read = read,
      .build_layer = pre_norm_layer,
      .tensors = {.mlx_scope = [](const Json&) { return std::string_view("language_model."); }},
  };
}

}  // namespace saker::models
