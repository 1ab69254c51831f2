// SPDX-License-Identifier: Apache-2.0
#pragma once

// Facts about a model that its files tell before it is loaded.

#include <cstdint>
#include <filesystem>
#include <string>

namespace saker::engine {

struct ModelDetails {
  std::filesystem::path path;
  std::string format;        // "safetensors" or "gguf".
  std::string model_type;    // Empty if it is not known; so are the next members or 0.
  std::string quantization;  // "4 bits, groups of 64, affine"; for floats their type.
  std::int64_t parameters = 0;
  std::int64_t context_length = 0;
  std::int64_t vocab_size = 0;
  std::int64_t hidden_size = 0;
  std::uintmax_t file_bytes = 0;
  std::int64_t modified = 0;  // When its newest weight file was written, in seconds since 1970.
  bool embeds = false;        // It is made for vectors of texts.
  std::string chat_template;  // Its text; empty: none.
  bool takes_tools = false;
  bool switches_thinking = false;
};

// Reads configurations and headers, no weights. Throws as loading the model does for a path that is
// none; broken files leave members empty, with a warning in the log.
ModelDetails read_model_details(const std::filesystem::path& model);

}  // namespace saker::engine
