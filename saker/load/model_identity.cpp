// SPDX-License-Identifier: Apache-2.0
#include "saker/load/model_identity.h"

#include "saker/base/checksum.h"
#include "saker/base/error.h"
#include "saker/base/mapped_file.h"
#include "saker/kernels/gpu/backend.h"
#include "saker/load/gguf/gguf_parts.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace saker::load {
namespace {

std::uint64_t model_checksum(const std::filesystem::path& model_dir) {
  if (std::filesystem::is_regular_file(model_dir)) {
    Checksum sum;
    for (const auto& part : load::gguf::open_parts(model_dir).parts) {
      sum.add(part.bytes);
    }
    return sum.value();
  }
  std::vector<std::filesystem::path> files;
  for (const auto& item : std::filesystem::directory_iterator(model_dir)) {
    const auto& path = item.path();
    const auto name = path.filename();
    // The two configuration files say how to read the weights.
    if (path.extension() == ".safetensors" || name == "config.json" ||
        name == "hf_quant_config.json") {
      files.push_back(path);
    }
  }
  std::ranges::sort(files);
  Checksum sum;
  for (const auto& path : files) {
    const std::string name = path.filename().string();
    const auto file = MappedFile::open(path);
    const std::uint64_t size = file->bytes().size();
    sum.add(std::as_bytes(std::span(name)));
    sum.add(std::as_bytes(std::span(&size, 1)));
    sum.add(file->bytes());
  }
  return sum.value();
}

// Checksum of the program or library that contains this code.
std::uint64_t build_checksum() {
  Dl_info info{};
  const bool found = dladdr(reinterpret_cast<const void*>(&model_identity), &info) != 0;
  require(found, ErrorCode::kUnsupported, "the program's own file cannot be found");
  return checksum(MappedFile::open(info.dli_fname)->bytes());
}

}  // namespace

std::string model_identity(const std::filesystem::path& model_dir) {
  return fmt::format(
      "model={:016x} build={:016x} kernels={} ",
      model_checksum(model_dir),
      build_checksum(),
      kernels::instruction_set()
  );
}

}  // namespace saker::load
