// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tells two models apart, for files that belong to one. Equal models have equal fingerprints
// wherever they lie and however their weights are cut into files; of each tensor the name, dtype,
// shape and every byte count. The bytes are read on all threads of the kernels' pool, so that it
// costs about what reading the files costs. 64-bit checksums: against mistakes, not against
// forgers.

#include <filesystem>
#include <string>

namespace saker::load {

struct ModelFingerprint {
  std::string config;   // 16 hexadecimal digits.
  std::string weights;  // The same.

  bool operator==(const ModelFingerprint&) const = default;
};

// Throws as loading the model's files does.
ModelFingerprint fingerprint(const std::filesystem::path& model_dir);

}  // namespace saker::load
