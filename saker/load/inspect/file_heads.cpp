// SPDX-License-Identifier: Apache-2.0
#include "saker/load/inspect/file_heads.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"
#include "saker/load/files/safetensors_length.h"
#include "saker/load/gguf/gguf_file.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string_view>
#include <system_error>

namespace saker::load {
namespace {

// Most safetensors headers are shorter than this, most GGUF headers longer.
constexpr std::uintmax_t kFirstSafetensors = std::uintmax_t{128} << 10;
constexpr std::uintmax_t kFirstGguf = std::uintmax_t{1} << 20;

std::uintmax_t bytes_of_safetensors(
    std::string_view name, std::span<const std::byte> begin, std::uintmax_t file_bytes
) {
  return begin.empty() ? kFirstSafetensors : safetensors_data_begin(begin, file_bytes, name);
}

std::uintmax_t bytes_of_gguf(
    std::string_view name, std::span<const std::byte> begin, std::uintmax_t file_bytes
) {
  if (begin.empty()) {
    return kFirstGguf;
  }
  const auto end = gguf::header_bytes(begin, file_bytes, name);
  return end ? *end : std::min<std::uintmax_t>(begin.size() * 2, gguf::kMaxHeaderBytes);
}

}  // namespace

std::uintmax_t bytes_of_header(
    std::string_view name, std::span<const std::byte> begin, std::uintmax_t file_bytes
) {
  const std::uintmax_t wanted = name.ends_with(".gguf")
                                    ? bytes_of_gguf(name, begin, file_bytes)
                                    : bytes_of_safetensors(name, begin, file_bytes);
  return std::min(wanted, file_bytes);
}

void write_file_head(
    const std::filesystem::path& path, std::string_view begin, std::uintmax_t file_bytes
) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(begin.data(), static_cast<std::streamsize>(begin.size()));
  file.close();
  std::error_code failed;
  std::filesystem::resize_file(path, file_bytes, failed);
  require(
      file.good() && !failed,
      ErrorCode::kCapacity,
      "{}: cannot be written with {} bytes{}{}",
      quote_path(path),
      file_bytes,
      failed ? ": " : "",
      failed ? failed.message() : ""
  );
}

}  // namespace saker::load
