// SPDX-License-Identifier: Apache-2.0
#include "saker/load/model_fingerprint.h"

#include "saker/base/checksum.h"
#include "saker/base/json/json.h"
#include "saker/kernels/cpu/runtime/thread_pool.h"
#include "saker/load/files/model_dir.h"
#include "saker/load/files/safetensors.h"
#include "saker/load/files/weight_files.h"
#include "saker/load/gguf/gguf_model.h"
#include "saker/load/gguf/gguf_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace saker::load {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::size_t kPieceBytes = std::size_t{4} << 20;

void add_number(Checksum& sum, std::uint64_t number) {
  sum.add(std::as_bytes(std::span(&number, 1)));
}

// Adds the length too, so that two texts differ from their concatenation.
void add_text(Checksum& sum, std::string_view text) {
  add_number(sum, text.size());
  sum.add(std::as_bytes(std::span(text)));
}

std::string digits(const Checksum& sum) {
  return fmt::format("{:016x}", sum.value());
}

// Adds every byte of every span: pieces are checksummed on all threads, then added in order.
void add_all(Checksum& sum, const std::vector<Bytes>& spans) {
  std::vector<Bytes> pieces;
  for (const Bytes span : spans) {
    for (std::size_t at = 0; at < span.size(); at += kPieceBytes) {
      pieces.push_back(span.subspan(at, std::min(kPieceBytes, span.size() - at)));
    }
  }
  std::vector<std::uint64_t> sums(pieces.size());
  kernels::thread_pool().run(static_cast<int>(pieces.size()), [&](int i) {
    sums[static_cast<std::size_t>(i)] = checksum(pieces[static_cast<std::size_t>(i)]);
  });
  sum.add(std::as_bytes(std::span(sums)));
}

ModelFingerprint gguf_fingerprint(const std::filesystem::path& file) {
  Checksum config;
  add_text(config, nlohmann::json(gguf::open_gguf_texts(file).config).dump());
  const auto parts = gguf::open_parts(file);
  std::vector<Bytes> spans;
  for (const gguf::Part& part : parts.parts) {
    spans.push_back(part.bytes);
  }
  Checksum weights;
  add_all(weights, spans);
  return {.config = digits(config), .weights = digits(weights)};
}

// The configuration with sorted keys, and other files that define the meaning of weights.
std::string config_text(const std::filesystem::path& model_dir) {
  std::string text = nlohmann::json(read_json_file(config_of(open_model_dir(model_dir)))).dump();
  const auto own = model_dir / "hf_quant_config.json";
  if (std::filesystem::is_regular_file(own)) {
    text += nlohmann::json(read_json_file(own)).dump();
  }
  return text;
}

}  // namespace

ModelFingerprint fingerprint(const std::filesystem::path& model_dir) {
  if (std::filesystem::is_regular_file(model_dir)) {
    return gguf_fingerprint(model_dir);
  }
  Checksum config;
  add_text(config, config_text(model_dir));
  Checksum weights;
  std::vector<Bytes> spans;
  const TensorMap tensors = read_model_tensors(model_dir).tensors;
  for (const auto& [name, tensor] : tensors) {
    add_text(weights, name);
    add_text(weights, dtype_name(tensor.dtype));
    add_text(weights, shape_text(tensor.shape));
    spans.push_back(tensor.bytes());
  }
  add_all(weights, spans);
  return {.config = digits(config), .weights = digits(weights)};
}

}  // namespace saker::load
