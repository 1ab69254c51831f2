// SPDX-License-Identifier: Apache-2.0
#include "saker/load/model_fingerprint.h"

#include "saker/base/json.h"
#include "saker/load/gguf/gguf_model.h"
#include "saker/load/gguf/gguf_parts.h"
#include "saker/load/model_dir.h"
#include "saker/load/weight_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace saker::load {
namespace {

constexpr std::size_t kWholeBytes = 4096;
constexpr std::size_t kPieces = 64;
constexpr std::size_t kPieceBytes = 64;

class Hash {
 public:
  void add(std::span<const std::byte> bytes) {
    for (const std::byte byte : bytes) {
      state_ = (state_ ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3U;
    }
  }

  // With its length, so that two texts are not one.
  void add(std::string_view text) {
    add(std::as_bytes(std::span(text.data(), text.size())));
    add(std::as_bytes(std::span(" ", 2)));
    const std::string size = fmt::to_string(text.size());
    add(std::as_bytes(std::span(size.data(), size.size())));
  }

  std::string text() const { return fmt::format("{:016x}", state_); }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325U;
};

void add_sample(Hash& hash, std::span<const std::byte> bytes) {
  if (bytes.size() <= kWholeBytes) {
    hash.add(bytes);
    return;
  }
  for (std::size_t i = 0; i < kPieces; ++i) {
    hash.add(bytes.subspan((bytes.size() - kPieceBytes) / (kPieces - 1) * i, kPieceBytes));
  }
}

}  // namespace

ModelFingerprint fingerprint(const std::filesystem::path& model_dir) {
  if (std::filesystem::is_regular_file(model_dir)) {
    Hash texts;
    texts.add(nlohmann::json(gguf::open_gguf_texts(model_dir).config).dump());
    Hash bytes;
    for (const gguf::Part& part : gguf::open_parts(model_dir).parts) {
      add_sample(bytes, part.bytes);
    }
    return {.config = texts.text(), .weights = bytes.text()};
  }
  Hash config;
  config.add(nlohmann::json(read_json_file(config_of(open_model_dir(model_dir)))).dump()
  );  // Keys in order.
  Hash weights;
  for (const auto& [name, tensor] : read_model_tensors(model_dir).tensors) {
    weights.add(name);
    weights.add(dtype_name(tensor.dtype));
    weights.add(shape_text(tensor.shape));
    add_sample(weights, tensor.bytes());
  }
  return {.config = config.text(), .weights = weights.text()};
}

}  // namespace saker::load
