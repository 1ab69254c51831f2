// SPDX-License-Identifier: Apache-2.0
#pragma once

// The options of saker_model_load: the names of Python's `saker.load`. Pure functions.

#include "saker/capi/json_fields.h"
#include "saker/engine/engine.h"

#include <string_view>
#include <vector>

namespace saker::capi {

struct LoadOptions {
  engine::EngineOptions engine = {};
  std::vector<engine::NamedAdapter> adapters = {};
};

// Throws kInvalidArgument for unknown options and wrong values; what resolving a draft throws.
LoadOptions load_options(JsonFields fields, std::string_view model);

}  // namespace saker::capi
