// SPDX-License-Identifier: Apache-2.0
#include "saker/load/sources/open_imported.h"

#include "saker/load/gguf/gguf_model.h"
#include "saker/load/importers/quantized_folder.h"

#include <filesystem>
#include <optional>
#include <system_error>

namespace saker::load::importers {

std::optional<ImportedModel> open_imported(const std::filesystem::path& source) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(source, ignored) ? std::optional(gguf::open_gguf(source))
                                                           : open_quantized(source);
}

bool is_imported(const std::filesystem::path& source) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(source, ignored) || is_quantized(source);
}

}  // namespace saker::load::importers
