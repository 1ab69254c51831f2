// SPDX-License-Identifier: Apache-2.0
#pragma once

// Tells two models apart, for files that belong to one. Equal models have equal fingerprints
// wherever they lie and however their weights are cut into files. Of each tensor the name, dtype,
// shape and a sample of its bytes count: all up to 4 KiB, else 64 evenly spread pieces of 64 bytes.
// A change by training touches all of them; a patch of a few bytes may go unseen. 64-bit FNV-1a:
// against mistakes, not against forgers.

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
