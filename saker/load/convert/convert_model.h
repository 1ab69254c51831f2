// SPDX-License-Identifier: Apache-2.0
#pragma once

// A model folder from another one: quantized, dequantized or in another dtype, as mlx-lm's
// `convert` writes it, with the same bits. Tensors stream through in slices on all threads: memory
// holds the mapped tensors at work and a slice for each thread. The folder appears whole or not at
// all, see model_writer.h, with the draft that it brings.

#include "saker/base/tensor.h"
#include "saker/load/convert/quantization_plan.h"
#include "saker/load/model_writer.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace saker::load {

struct ConvertOptions {
  std::optional<QuantizeOptions> quantize;
  bool dequantize = false;
  // Of float tensors; none: what the configuration says as mlx-lm reads it (`torch_dtype`), else as
  // they are.
  std::optional<DType> dtype;
  std::size_t max_shard_bytes = kMaxShardBytes;
  // The folder of a draft, which becomes the target's folder `draft`; empty: none. It may be a
  // DFlash draft, and is quantized or stays as it is.
  std::filesystem::path draft = {};
  std::optional<QuantizeOptions> draft_quantize = {};
  // Of the weights' elements; from any thread, one at a time. What it throws ends the conversion.
  std::function<void(std::int64_t done, std::int64_t total)> progress;
};

struct ConvertReport {
  std::int64_t parameters = 0;  // As people count them.
  std::size_t tensors = 0;      // Written.
  std::size_t bytes = 0;        // Of them.
  std::size_t quantized = 0;    // Modules.
  std::size_t dequantized = 0;
  std::size_t draft_bytes = 0;      // Of the draft's tensors.
  std::vector<std::string> copied;  // Files, as they are.
  std::vector<std::string> warnings;
};

// "float32", "float16" or "bfloat16"; none for any other name.
std::optional<DType> float_dtype(std::string_view name);

// Throws as load_checkpoint does for the source and the draft, as ModelWriter for the target, and
// kInvalidArgument for what can't be asked of this model.
ConvertReport convert_model(
    const std::filesystem::path& source,
    const std::filesystem::path& target,
    const ConvertOptions& options
);

}  // namespace saker::load
