// SPDX-License-Identifier: Apache-2.0
#pragma once

// Names of what checkpoints for text, images and sound hold beside their language model. No MLX.

#include <string_view>

namespace saker::models {

// Whether a tensor or module is of such a part; "model." may come first, once or more.
bool is_of_images(std::string_view name);

}  // namespace saker::models
