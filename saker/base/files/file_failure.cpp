// SPDX-License-Identifier: Apache-2.0
#include "saker/base/files/file_failure.h"

#include "saker/base/utf8.h"

#include <fmt/format.h>

#include <filesystem>
#include <ios>

namespace saker {

std::optional<std::string> file_failure(const std::exception& error) {
  if (const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(&error)) {
    return fmt::format("{}: {}", quote_path(file->path1()), file->code().message());
  }
  if (const auto* stream = dynamic_cast<const std::ios_base::failure*>(&error)) {
    return fmt::format("a file cannot be read or written: {}", stream->what());
  }
  return std::nullopt;
}

}  // namespace saker
