// SPDX-License-Identifier: Apache-2.0
#pragma once

// Converts a model folder: quantizes, dequantizes or changes the dtype, with the same bits as
// mlx-lm's `convert`. Tensors stream through in slices on all threads: memory holds the mapped
// tensors in work and a slice per thread. The new folder, with its draft, appears whole or not at
// all (see model_writer.h).

#include "saker/base/tensor.h"
#include "saker/load/convert/quantization_plan.h"
#include "saker/load/files/model_writer.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace saker::load {

struct ConvertOptions {
  std::optional<QuantizeOptions> quantize;
  bool dequantize = false;
  // The dtype of float tensors. Empty: the configuration's as mlx-lm reads it (`torch_dtype`), else
  // unchanged.
  std::optional<DType> dtype;
  // How much each column of a module's weight matters, [columns] or [experts, columns]; by
  // models::roster_name() of the module: "layers.0.self_attn.q_proj". Affine codes are searched by
  // it (weighted_affine.h); modules without an entry are rounded as mlx-lm rounds.
  std::map<std::string, std::vector<float>, std::less<>> importance = {};
  std::size_t max_shard_bytes = kMaxShardBytes;
  // The folder of a draft, which becomes the target's folder `draft`; empty: none. It may be a
  // DFlash draft or an EAGLE-3 head. It is quantized or stays unchanged.
  std::filesystem::path draft = {};
  std::optional<QuantizeOptions> draft_quantize = {};
  // Counts the weights' elements. Called from any thread, one at a time. An exception ends the
  // conversion.
  std::function<void(std::int64_t done, std::int64_t total)> progress;
};

struct ConvertReport {
  std::int64_t parameters = 0;  // Weights as people count them.
  std::size_t tensors = 0;      // Written.
  std::size_t bytes = 0;        // Bytes of written tensors.
  std::size_t quantized = 0;    // Quantized modules.
  std::size_t dequantized = 0;
  std::size_t draft_bytes = 0;      // Bytes of the draft's tensors.
  std::vector<std::string> copied;  // Files that were copied unchanged.
  std::vector<std::string> warnings;
};

// "float32", "float16" or "bfloat16"; empty for any other name.
std::optional<DType> float_dtype(std::string_view name);

// Throws as load_checkpoint does for the source and the draft, and as ModelWriter for the target.
// Throws kInvalidArgument for options that do not suit this model, kCorruptData for importance that
// does not.
ConvertReport convert_model(
    const std::filesystem::path& source,
    const std::filesystem::path& target,
    const ConvertOptions& options
);

}  // namespace saker::load
