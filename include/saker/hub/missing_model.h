// SPDX-License-Identifier: Apache-2.0
#pragma once

// Finds out whether a model has to be pulled before it can be loaded. Reads the environment, see
// saker/hub/environment.h; any thread.

#include "saker/hub/model_name.h"

#include <optional>
#include <string_view>

namespace saker::hub {

// The model or adapter that a text names, if it is neither a path nor in the cache. Empty if it can
// be loaded as it is, or if the text is no name.
std::optional<ModelName> missing_model(std::string_view text);

}  // namespace saker::hub
