// SPDX-License-Identifier: Apache-2.0
#pragma once

// Model folders whose configuration names another tool's quantization (`quantization_config` with a
// `quant_method`, or ModelOpt's hf_quant_config.json). We read awq and gptq with 4 bits,
// compressed-tensors' packed, int8 and fp8 forms, fp8, ModelOpt's, bitnet, and mxfp4 and mxfp8 with
// MLX's names. Weights that fit MLX's layouts keep their values; the rest becomes bfloat16, with a
// note. For the tensors see packed_integers.h, byte_integers.h and small_floats.h.

#include "saker/base/json/json.h"
#include "saker/load/files/safetensors.h"
#include "saker/load/importers/lazy_tensor.h"

#include <filesystem>
#include <optional>

namespace saker::load::importers {

// True if the configuration names one of these methods and the weights are not plain. Reads headers
// only. Throws as read_json_file and read_model_tensors do.
bool is_quantized(const std::filesystem::path& folder);

// Empty for folders without a configuration, with plain weights or with MLX's own quantization.
// Empty too for an unknown quantization, which parse_quantization refuses. The tensors keep the
// files mapped. Throws as read_model_tensors and read_quantized do.
std::optional<ImportedModel> open_quantized(const std::filesystem::path& folder);

// As above, from tensors. Throws kUnsupported for variants of a method that we don't read, naming
// those that we do, and kCorruptData for tensors that don't fit each other.
std::optional<ImportedModel> read_quantized(const Json& config, const TensorMap& tensors);

}  // namespace saker::load::importers
