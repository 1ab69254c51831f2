// SPDX-License-Identifier: Apache-2.0
#pragma once

// Prompt-cache files of one model: rows to continue after, and rows to keep. Our own files say
// which model they belong to (metadata "saker": fingerprint, adapter and the rows' token ids);
// those of other programs are the base's, and must have this model's layers, heads and dimensions.
// Threading: the engine's thread.

#include "saker/cache/sequence_cache.h"
#include "saker/load/model_fingerprint.h"
#include "saker/models/model.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace saker::engine {

class CacheFiles {
 public:
  explicit CacheFiles(std::filesystem::path model_dir) : model_dir_(std::move(model_dir)) {}

  struct Rows {
    cache::SequenceCache cache;
    std::vector<std::int32_t> tokens;  // Of the last rows, as far as the file knows them.

    // Rows before those of `tokens`.
    std::int64_t unknown_rows() const {
      return cache.offset() - static_cast<std::int64_t>(tokens.size());
    }
  };

  // `adapter` and its strength: see nn::adapter_identity. Throws what reading throws,
  // kInvalidArgument for another model's or adapter's file, or rows of other bits.
  Rows load(
      const std::filesystem::path& path,
      const models::Model& model,
      const models::CacheOptions& options,
      const std::string& adapter
  );
  // Throws, before rows are made, what would keep `save` from writing them: see AtomicFile;
  // kUnsupported for codes of a form that files lack.
  static void check_save(
      const std::filesystem::path& path,
      const models::Model& model,
      const models::CacheOptions& options
  );
  // `tokens`: as in Rows. Throws what writing throws.
  void save(
      const std::filesystem::path& path,
      const cache::SequenceCache& cache,
      const std::vector<std::int32_t>& tokens,
      const std::string& adapter
  );

 private:
  const load::ModelFingerprint& fingerprint();

  std::filesystem::path model_dir_;
  std::optional<load::ModelFingerprint> fingerprint_;  // Made when first asked for.
};

}  // namespace saker::engine
