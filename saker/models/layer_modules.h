// SPDX-License-Identifier: Apache-2.0
#pragma once

// The modules of a decoder's layer, for tensor_roster.h.

#include "saker/models/layer_config.h"
#include "saker/models/tensor_roster.h"

#include <string>
#include <string_view>

namespace saker::models {

// Names of experts in the roster, whatever a checkpoint's are.
inline constexpr std::string_view kRosterStacks = "switch_mlp";
inline constexpr std::string_view kRosterFusedInputs = "gate_up_proj";

inline RosterModule roster_linear(int columns, int rows) {
  return {.kind = RosterModule::Kind::kLinear, .columns = columns, .rows = rows};
}

inline RosterModule roster_norm(int size) {
  return {.kind = RosterModule::Kind::kNorm, .rows = size};
}

// Adds the layer's modules; their names begin with `prefix`.
void add_layer_modules(
    TensorRoster::Modules& modules,
    std::string prefix,
    const DecoderConfig& config,
    const LayerConfig& layer,
    const RosterOptions& options
);

}  // namespace saker::models
