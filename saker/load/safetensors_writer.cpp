// SPDX-License-Identifier: Apache-2.0
#include "saker/load/safetensors_writer.h"

#include "saker/base/atomic_file.h"
#include "saker/base/json.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

namespace saker::load {
namespace {

constexpr std::size_t kAlignment = 64;

// The header, padded with spaces so that the data begins aligned.
std::string header_text(const NamedTensors& tensors, const FileMetadata& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) {
    header["__metadata__"] = metadata;
  }
  std::size_t begin = 0;
  for (const auto& [name, tensor] : tensors) {
    const std::size_t end = begin + tensor.nbytes();
    header[name] = {
        {"dtype", dtype_name(tensor.dtype)},
        {"shape", tensor.shape},
        {"data_offsets", {begin, end}},
    };
    begin = end;
  }
  // Replaces what is no UTF-8, such as a folder's name.
  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  while ((text.size() + sizeof(std::uint64_t)) % kAlignment != 0) {
    text += ' ';
  }
  return text;
}

}  // namespace

void write_safetensors(
    const std::filesystem::path& path, const NamedTensors& tensors, const FileMetadata& metadata
) {
  const std::string header = header_text(tensors, metadata);
  std::array<std::byte, sizeof(std::uint64_t)> length{};
  for (std::size_t i = 0; i < length.size(); ++i) {
    length[i] = static_cast<std::byte>(header.size() >> (8 * i) & 0xff);
  }
  AtomicFile file(path);
  file.write(length);
  file.write(header);
  for (const auto& [name, tensor] : tensors) {
    file.write(tensor.bytes());
  }
  file.commit();
}

}  // namespace saker::load
