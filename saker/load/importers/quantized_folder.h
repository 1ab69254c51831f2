// SPDX-License-Identifier: Apache-2.0
#pragma once

// Model folders whose configuration names another tool's quantization (`quantization_config` with a
// `quant_method`, or ModelOpt's hf_quant_config.json): awq and gptq with 4 bits,
// compressed-tensors' packed, int8 and fp8 forms, fp8, ModelOpt's, bitnet; mxfp4 and mxfp8 with
// MLX's names. What MLX's layouts hold stays what it is, the rest becomes bfloat16, with a note;
// see packed_integers.h, byte_integers.h and small_floats.h for the tensors.

#include "saker/base/json.h"
#include "saker/load/importers/lazy_tensor.h"
#include "saker/load/safetensors.h"

#include <filesystem>
#include <optional>

namespace saker::load::importers {

// Whether the configuration names one of these methods and the weights are not plain all the same.
// Reads their headers. Throws as read_json_file and read_model_tensors do.
bool is_quantized(const std::filesystem::path& folder);

// None for folders without configuration, or with plain weights, MLX's own quantization, or one
// that we don't know, which parse_quantization refuses. The tensors keep the files mapped. Throws
// as read_model_tensors and read_quantized do.
std::optional<ImportedModel> open_quantized(const std::filesystem::path& folder);

// The same of tensors. Throws kUnsupported for variants of a method that we don't read, naming what
// we do, kCorruptData for tensors that don't fit each other.
std::optional<ImportedModel> read_quantized(const Json& config, const TensorMap& tensors);

}  // namespace saker::load::importers
