// SPDX-License-Identifier: Apache-2.0
#pragma once

// Names of parts beside the language model in checkpoints for text, images and sound. No MLX.

#include <string_view>

namespace saker::models {

// True if a tensor or module belongs to such a part; any number of "model." may come first.
bool is_of_images(std::string_view name);

}  // namespace saker::models
