// SPDX-License-Identifier: Apache-2.0
// Any bytes as a safetensors file: a typed error, or entries that lie inside the file. Then as the
// weights of a model in every quantized format of other tools: typed errors, or tensors.
#include "saker/base/error.h"
#include "saker/base/tensor.h"
#include "saker/load/files/safetensors.h"
#include "saker/load/importers/quantized_folder.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

namespace {

using saker::Tensor;
using saker::load::TensorMap;

void make_all(const saker::load::importers::ImportedModel& model, std::size_t size) {
  for (const auto& tensor : model.tensors) {
    std::vector<std::vector<std::byte>> made;
    std::vector<std::byte*> places;
    for (std::size_t i = 0; i < tensor.outputs.size(); ++i) {
      // Four bits become sixteen at most, and scales of two bits float32 for 32 weights.
      if (tensor.outputs[i].nbytes() > 8 * size) {
        std::abort();
      }
      places.push_back(made.emplace_back(tensor.outputs[i].nbytes()).data());
    }
    tensor.make(0, tensor.rows, places);
  }
}

void read_as(const saker::Json& section, const TensorMap& tensors, std::size_t size) {
  try {
    make_all(
        saker::load::importers::read_quantized({{"quantization_config", section}}, tensors).value(),
        size
    );
  } catch (const saker::Error&) {  // Most tensors are no modules.
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(data), size);
    TensorMap tensors;
    std::size_t end = 0;
    for (const auto& entry : saker::load::parse_safetensors(file, "fuzz").entries) {
      if (entry.begin > entry.end || entry.end > size || (end != 0 && entry.begin != end)) {
        std::abort();
      }
      end = entry.end;
      if (entry.dtype) {
        const std::shared_ptr<const std::byte> bytes(
            std::shared_ptr<const std::byte>(), file.data() + entry.begin
        );
        tensors.emplace(entry.name, Tensor{*entry.dtype, entry.shape, bytes, {}});
      }
    }
    read_as({{"quant_method", "gptq"}}, tensors, size);
    read_as({{"quant_method", "compressed-tensors"}, {"format", "mixed-precision"}}, tensors, size);
    const saker::Json weights = {
        {"num_bits", 8}, {"group_size", 32}, {"symmetric", false}, {"block_structure", {32, 48}}
    };
    for (const char* format : {"pack-quantized", "int-quantized", "float-quantized"}) {
      read_as(
          {{"quant_method", "compressed-tensors"},
           {"format", format},
           {"config_groups", {{"all", {{"weights", weights}}}}}},
          tensors,
          size
      );
    }
    read_as({{"quant_method", "bitnet"}}, tensors, size);
    read_as({{"quant_method", "fp8"}, {"weight_block_size", {32, 48}}}, tensors, size);
    read_as(
        {{"quant_method", "fp8"}, {"scale_fmt", "ue8m0"}, {"weight_block_size", {32, 32}}},
        tensors,
        size
    );
  } catch (const saker::Error&) {  // The expected answer to most inputs.
  }
  return 0;
}
