// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decides how a GPTQ checkpoint stores zero points. The format's first version stores them less
// one, the second unchanged, and a file's label is often wrong. Symmetric codes have the middle as
// zero (8 at 4 bits), so their stored zeros are all 7 or all 8, which reveals the version.

#include "saker/base/json/json.h"
#include "saker/load/files/safetensors.h"
#include "saker/load/importers/module_parts.h"

#include <cstdint>
#include <string>

namespace saker::load::importers {

struct GptqZeros {
  std::uint32_t labelled = 0;  // Added to a stored zero according to the label.
  // True: modules whose stored zeros are all equal count as symmetric.
  bool symmetric = false;
  std::string note;  // One line if tensors contradict the configuration; else empty.

  // The number to add to a module's stored zeros.
  std::uint32_t offset(const ModuleParts& parts) const;
};

// Examines all modules with `qzeros`. `section` is the configuration of the quantization.
GptqZeros read_gptq_zeros(const Json& section, const TensorMap& tensors);

}  // namespace saker::load::importers
