// SPDX-License-Identifier: Apache-2.0
#pragma once

// The quantization section of a configuration in MLX's form: `quantization` (or
// `quantization_config` without a `quant_method`) holds bits, group_size and mode. For a module's
// path it may hold such an object of its own, or false: not quantized.

#include "saker/base/json/json.h"
#include "saker/nn/weights/weights.h"

namespace saker::load {

// Throws kUnsupported for the forms of other tools (awq, gptq, fp8, ...) and for MLX formats that
// we lack, and kCorruptData for values that no format has. Each error names the field and its
// value.
nn::QuantizationConfig parse_quantization(const Json& config);

}  // namespace saker::load
