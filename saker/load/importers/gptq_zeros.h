// SPDX-License-Identifier: Apache-2.0
#pragma once

// How the zero points of a GPTQ checkpoint are meant. The format's first version stores them less
// one, the second as they are, and the label of a file often says the wrong one. Symmetric codes
// have the middle as zero (at 4 bits 8), so that all stored ones are 7 or all are 8, which tells
// what the label is worth.

#include "saker/base/json.h"
#include "saker/load/importers/module_parts.h"
#include "saker/load/safetensors.h"

#include <cstdint>
#include <string>

namespace saker::load::importers {

struct GptqZeros {
  std::uint32_t labelled = 0;  // What the label adds to a stored zero.
  // Modules whose stored zeros are all alike are taken for symmetric.
  bool symmetric = false;
  std::string note;  // One line where tensors decide against the configuration; else empty.

  // What is added to the stored zeros of a module.
  std::uint32_t offset(const ModuleParts& parts) const;
};

// Of all modules with `qzeros`. `section`: the configuration of the quantization.
GptqZeros read_gptq_zeros(const Json& section, const TensorMap& tensors);

}  // namespace saker::load::importers
