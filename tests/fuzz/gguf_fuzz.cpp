// SPDX-License-Identifier: Apache-2.0
// Any bytes as a GGUF file, or as the parts of a split one, each from its "GGUF" on: a typed error,
// or a model whose tensors can all be made and whose tokenizer the engine takes or refuses.
#include "saker/base/error.h"
#include "saker/load/gguf/gguf_model.h"
#include "saker/load/importers/lazy_tensor.h"
#include "saker/text/tokenizer.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>
#include <vector>

namespace {

using Bytes = std::span<const std::byte>;

std::vector<Bytes> parts_of(const std::uint8_t* data, std::size_t size) {
  constexpr std::string_view kBegin("GGUF\3\0\0\0", 8);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<Bytes> parts;
  std::size_t begin = 0;
  while (true) {
    const std::size_t next = text.find(kBegin, begin + 1);
    const std::size_t end = std::min(next, size);
    parts.push_back(std::as_bytes(std::span(data + begin, end - begin)));
    if (next == std::string_view::npos) {
      return parts;
    }
    begin = next;
  }
}

// Codes and their scales are at most 5 times as large as blocks, floats 21 times.
void make_all(
    const std::vector<saker::load::importers::LazyTensor>& tensors, std::size_t file_size
) {
  for (const auto& tensor : tensors) {
    std::vector<std::vector<std::byte>> made;
    std::vector<std::byte*> places;
    for (const auto& output : tensor.outputs) {
      if (output.nbytes() > 24 * file_size) {
        std::abort();
      }
      places.push_back(made.emplace_back(output.nbytes()).data());
    }
    tensor.make(0, tensor.rows, places);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto model = saker::load::gguf::read_gguf(parts_of(data, size), "fuzz");
    make_all(model.tensors, size);
    make_all(saker::load::gguf::read_gguf_blocks(parts_of(data, size), "fuzz").model.tensors, size);
    if (model.files.contains("tokenizer.json")) {
      saker::text::Tokenizer::parse(model.files.at("tokenizer.json"), "fuzz")->encode("a b 12");
    }
  } catch (const saker::Error&) {  // The expected answer to most inputs.
  }
  return 0;
}
