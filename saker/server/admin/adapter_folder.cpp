// SPDX-License-Identifier: Apache-2.0
#include "saker/server/admin/adapter_folder.h"

#include "saker/base/utf8.h"
#include "saker/server/turns/api_error.h"

#include <algorithm>
#include <system_error>

namespace saker::server {
namespace {

constexpr std::size_t kLongestName = 128;
constexpr std::size_t kLongestPath = 4096;

bool is_below(const std::filesystem::path& folder, const std::filesystem::path& path) {
  return std::ranges::mismatch(folder, path).in1 == folder.end() && path != folder;
}

}  // namespace

void check_adapter_name(const std::string& name) {
  const bool is_plain = std::ranges::none_of(name, [](char c) {
    return static_cast<unsigned char>(c) <= ' ' || c == '\x7f';
  });
  if (name.empty() || name.size() > kLongestName || !is_plain) {
    throw bad_field("lora_name", "expected a name of 1 to {} characters", kLongestName);
  }
}

std::filesystem::path adapter_below(const std::filesystem::path& folder, const std::string& path) {
  if (path.empty() || path.size() > kLongestPath || path.find('\0') != std::string::npos) {
    throw bad_field("lora_path", "expected a path");
  }
  std::error_code error;
  const std::filesystem::path top = std::filesystem::canonical(folder, error);
  // Whether something is there is nobody's business outside of the folder.
  const std::filesystem::path found = std::filesystem::weakly_canonical(top / path, error);
  if (error || !is_below(top, found)) {
    throw ApiError(403, fmt::format("{} is not below the folder of --adapter-dir", quote(path)))
        .with_param("lora_path");
  }
  const bool is_file =
      found.extension() == ".gguf" && std::filesystem::is_regular_file(found, error);
  if (!is_file && !std::filesystem::exists(found / "adapter_config.json", error)) {
    throw ApiError(404, fmt::format("there is no adapter at {}", quote(path)))
        .with_param("lora_path");
  }
  return found;
}

}  // namespace saker::server
