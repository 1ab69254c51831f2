// SPDX-License-Identifier: Apache-2.0
#include "saker/load/files/gguf_magic.h"

#include <array>
#include <fstream>
#include <string_view>
#include <system_error>

namespace saker::load {

bool has_gguf_magic(const std::filesystem::path& path) {
  constexpr std::string_view kMagic = "GGUF";
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) {
    return false;
  }
  std::array<char, kMagic.size()> begin{};
  std::ifstream file(path, std::ios::binary);
  return file.read(begin.data(), begin.size()) &&
         std::string_view(begin.data(), begin.size()) == kMagic;
}

bool looks_like_gguf(const std::filesystem::path& path) {
  std::error_code ignored;
  return (path.extension() == ".gguf" && std::filesystem::is_regular_file(path, ignored)) ||
         has_gguf_magic(path);
}

}  // namespace saker::load
