// SPDX-License-Identifier: Apache-2.0
#pragma once

// The folder and the tensors of a golden model, for tests that change a copy.

#include "saker/base/tensor.h"
#include "saker/load/files/safetensors.h"

#include "tests/support/safetensors_writer.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace saker::load {

inline std::filesystem::path golden_dir(std::string_view name) {
  return std::filesystem::path(SAKER_SOURCE_DIR) / "tests/golden" / name;
}

inline std::vector<testing::RawTensor> golden_tensors(std::string_view golden) {
  std::vector<testing::RawTensor> tensors;
  for (const auto& [name, tensor] : read_safetensors(golden_dir(golden) / "model.safetensors")) {
    const auto bytes = tensor.bytes();
    tensors.push_back(
        {name,
         std::string(dtype_name(tensor.dtype)),
         tensor.shape,
         {reinterpret_cast<const char*>(bytes.data()), bytes.size()}}
    );
  }
  return tensors;
}

}  // namespace saker::load
