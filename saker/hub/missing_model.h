// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a caller that may pull has to pull before it loads. Reads the environment, see
// saker/hub/environment.h; any thread.

#include "saker/hub/model_name.h"

#include <optional>
#include <string_view>

namespace saker::hub {

// The model or adapter that a text names, where it is neither a path nor in the cache; none for
// what can be loaded as it is, and for what is no name.
std::optional<ModelName> missing_model(std::string_view text);

}  // namespace saker::hub
