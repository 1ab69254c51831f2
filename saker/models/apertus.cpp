// SPDX-License-Identifier: Apache-2.0
// Apertus: Llama's layers with norms of heads and an MLP without a gate, whose activation (xIELU) has
// factors of its own in each layer.
#include "saker/base/error.h"
#include "saker/models/architecture.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::models {
namespace {

DecoderConfig read(const Json& json) {
  Json given = json;
  const auto activation = json_string(json, "hidden_act", "xielu");
  require(
      activation == "xielu",
      ErrorCode::kUnsupported,
      "[config] hidden_act is \"{}\", expected xielu",
      activation
  );
  given.erase("hidden_act");
  constexpr double kTheta = 12e6;
  if (!json_has(json, "rope_parameters") && !json_has(json, "rope_scaling") &&
      !json_has(json, "rope_theta")) {
    given["rope_parameters"] = {
        {"rope_type", "llama3"},
        {"rope_theta", kTheta},
        {"factor", 8.0},
        {"original_max_position_embeddings", 8192},
    };
  }
  auto config = read_decoder_config(
      given, {.context_length = 65536, .rope = {.default_theta = kTheta}, .norm_eps = 1e-5}
  );
  config.activation = kernels::Activation::kXielu;
  config.gated_mlp = false;
  config.head_norms = true;
  config.names.norms = {"attention_layernorm", "feedforward_layernorm"};
  return config;
}

// The activation's factors, which MLX's models have as single numbers.
bool is_factor(std::string_view name) {
  return name.ends_with(".act_fn.alpha_p") || name.ends_with(".act_fn.alpha_n");
}

SanitizedTensor sanitized(std::string_view name, std::vector<std::int64_t> shape) {
  return {.shape = is_factor(name) ? std::vector<std::int64_t>() : std::move(shape)};
}

}  // namespace

Architecture apertus() {
  return {
      .read = read,
      .build_layer = pre_norm_layer,
      .tensors =
          {.needs_sanitizing = [](const TensorMap&) { return true; }, .sanitized = sanitized},
  };
}

}  // namespace saker::models
