// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a configuration says about quantized weights, in MLX's form: `quantization` (or
// `quantization_config` without a `quant_method`) holds bits, group_size and mode, and per module
// path an object of its own, or false: not quantized.

#include "saker/base/json.h"
#include "saker/nn/weights.h"

namespace saker::load {

// Throws kUnsupported for the forms of other tools (awq, gptq, fp8, ...) and for formats that MLX
// has and we don't, kCorruptData for values that no format has; each names the field and its value.
nn::QuantizationConfig parse_quantization(const Json& config);

}  // namespace saker::load
