// SPDX-License-Identifier: Apache-2.0
#include "saker/load/files/safetensors_writer.h"

#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/base/json/json_members.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace saker::load {
namespace {

constexpr std::size_t kAlignment = 64;

}  // namespace

std::size_t PlannedTensor::nbytes() const {
  return Tensor{.dtype = dtype, .shape = shape, .data = nullptr, .release = {}}.nbytes();
}

std::string safetensors_prefix(
    std::span<const PlannedTensor> tensors, const FileMetadata& metadata
) {
  JsonMembers header;
  if (!metadata.empty()) {
    header.set("__metadata__", json_object(metadata));
  }
  std::size_t begin = 0;
  for (const PlannedTensor& tensor : tensors) {
    const std::size_t end = begin + tensor.nbytes();
    header.set(
        tensor.name,
        Json{
            {"dtype", dtype_name(tensor.dtype)},
            {"shape", tensor.shape},
            {"data_offsets", {begin, end}},
        }
    );
    begin = end;
  }
  // Replaces invalid UTF-8, such as in a folder's name.
  std::string text = header.take().dump(-1, ' ', false, Json::error_handler_t::replace);
  while ((text.size() + sizeof(std::uint64_t)) % kAlignment != 0) {
    text += ' ';
  }
  std::string length;
  for (std::size_t i = 0; i < sizeof(std::uint64_t); ++i) {
    length += static_cast<char>(text.size() >> (8 * i) & 0xff);
  }
  return length + text;
}

void write_safetensors(
    const std::filesystem::path& path,
    const NamedTensors& tensors,
    const FileMetadata& metadata,
    FileReaders readers
) {
  std::vector<PlannedTensor> planned;
  planned.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) {
    planned.push_back({name, tensor.dtype, tensor.shape});
  }
  write_safetensors(
      path, planned, [&](std::size_t i) { return tensors[i].second; }, metadata, readers
  );
}

void write_safetensors(
    const std::filesystem::path& path,
    const std::vector<PlannedTensor>& tensors,
    const std::function<Tensor(std::size_t)>& make,
    const FileMetadata& metadata,
    FileReaders readers
) {
  AtomicFile file(path, readers);
  file.write(safetensors_prefix(tensors, metadata));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Tensor made = make(i);
    require(
        made.dtype == tensors[i].dtype && made.shape == tensors[i].shape,
        ErrorCode::kInternal,
        "[{}] made as {}, announced as {}",
        tensors[i].name,
        dtype_name(made.dtype),
        dtype_name(tensors[i].dtype)
    );
    file.write(made.bytes());
    if (made.release) {
      made.release();
    }
  }
  file.commit();
}

}  // namespace saker::load
