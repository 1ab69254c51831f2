// SPDX-License-Identifier: Apache-2.0
#pragma once

// Identifies models, for files that belong to one. Equal models have equal fingerprints wherever
// they lie and however their weights are split into files. The name, dtype, shape and every byte of
// each tensor count. All threads of the kernels' pool read bytes, so it takes about as long as
// reading the files. 64-bit checksums guard against mistakes, not against forgery.

#include <filesystem>
#include <string>

namespace saker::load {

struct ModelFingerprint {
  std::string config;   // 16 hexadecimal digits.
  std::string weights;  // 16 hexadecimal digits.

  bool operator==(const ModelFingerprint&) const = default;
};

// Throws as loading the model's files does.
ModelFingerprint fingerprint(const std::filesystem::path& model_dir);

}  // namespace saker::load
