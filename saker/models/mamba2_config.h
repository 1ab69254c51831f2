// SPDX-License-Identifier: Apache-2.0
#pragma once

// For architectures with layers of Mamba-2 or short convolutions: fields of their configurations,
// and kernels as they are published.

#include "saker/base/json/json.h"
#include "saker/models/decoder_config.h"
#include "saker/models/tensor_rules.h"
#include "saker/nn/recurrent/mamba2.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace saker::models {

// The keys of Mamba-2's sizes, and their defaults; 0: must be given.
struct Mamba2Keys {
  std::string_view heads;
  std::string_view head_dim;
  std::string_view state_dim;
  std::string_view groups;
  std::string_view taps;
  std::int64_t default_heads = 0;
  std::int64_t default_head_dim = 0;
  std::int64_t default_state_dim = 0;
  std::int64_t default_groups = 1;
};

// `sizes`, but with a width of heads that is "auto" left out.
Json without_auto_head_dim(Json sizes, std::string_view key);

// Sizes and limits of steps (`time_step_limit`). Throws kCorruptData or kUnsupported naming field and
// value.
nn::Mamba2Options read_mamba2(
    const Json& json, const DecoderConfig& config, const Mamba2Keys& keys
);

// The mixing of each layer by its name in the list `key`, of which there is one per layer. Throws
// kUnsupported for an unknown name, kCorruptData for another length.
struct MixingName {
  std::string_view name;
  TokenMixing mixing;
};

std::vector<TokenMixing> read_mixing(
    const Json& json,
    std::string_view key,
    std::size_t layer_count,
    const std::vector<MixingName>& names
);

// True for the kernel of a depthwise convolution as it is published, [C, 1, taps].
bool is_published_kernel(const std::vector<std::int64_t>& shape);
// Its bytes as MLX has them, [C, taps, 1].
SanitizedTensor sanitized_kernel(std::vector<std::int64_t> shape);

// Two of TensorRules' members, for models that are published as MLX has them but for such kernels.
// `is_kernel`: by a tensor's name.
template <bool (*is_kernel)(std::string_view)>
struct KernelRules {
  static bool needs_sanitizing(const TensorMap& tensors) {
    return std::ranges::any_of(tensors, [](const auto& entry) {
      return is_kernel(entry.first) && is_published_kernel(entry.second.shape);
    });
  }

  static SanitizedTensor sanitized(std::string_view name, std::vector<std::int64_t> shape) {
    return is_kernel(name) ? sanitized_kernel(std::move(shape))
                           : SanitizedTensor{.shape = std::move(shape)};
  }
};

}  // namespace saker::models
