// SPDX-License-Identifier: Apache-2.0
// Any bytes as a GGUF file: a typed error, or a model whose tensors can all be made and whose
// tokenizer the engine takes or refuses.
#include "saker/base/error.h"
#include "saker/load/foreign/derived_tensor.h"
#include "saker/load/gguf/gguf_model.h"
#include "saker/text/tokenizer.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(data), size);
    const auto model = saker::load::gguf::read_gguf(file, "fuzz");
    for (const auto& tensor : model.tensors) {
      std::vector<std::vector<std::byte>> made;
      std::vector<std::byte*> places;
      for (std::size_t i = 0; i < tensor.outputs.size(); ++i) {
        // Codes and their scales are at most 1.5 times as large as blocks, floats 5 times.
        if (tensor.outputs[i].nbytes() > 8 * size) {
          std::abort();
        }
        places.push_back(made.emplace_back(tensor.outputs[i].nbytes()).data());
      }
      tensor.make(0, tensor.rows, places);
    }
    if (model.files.contains("tokenizer.json")) {
      saker::text::Tokenizer::parse(model.files.at("tokenizer.json"), "fuzz")->encode("a b 12");
    }
  } catch (const saker::Error&) {  // The expected answer to most inputs.
  }
  return 0;
}
