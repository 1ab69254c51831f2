// SPDX-License-Identifier: Apache-2.0
#pragma once

// Prompt-cache files of one model: rows to continue after, and rows to keep. Our own files name
// their model (metadata "saker": fingerprint, adapter and the rows' token ids). Files of other
// programs count as files of the base model; they must have this model's layers, heads and
// dimensions. Threading: the engine's thread, unless said.

#include "saker/cache/sequence_cache.h"
#include "saker/load/model_fingerprint.h"
#include "saker/load/prompt_cache.h"
#include "saker/models/model.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace saker::engine {

class CacheFiles {
 public:
  explicit CacheFiles(std::filesystem::path model_dir) : model_dir_(std::move(model_dir)) {}

  struct Rows {
    cache::SequenceCache cache;
    std::vector<std::int32_t> tokens;  // The last rows' tokens, as far as the file knows them.

    // Number of rows before those of `tokens`.
    std::int64_t unknown_rows() const {
      return cache.offset() - static_cast<std::int64_t>(tokens.size());
    }
  };

  // Reads a file, all of it. Any thread. Throws what reading throws.
  static load::PromptCache read(const std::filesystem::path& path);
  // The rows of a file that was read. `adapter` includes its strength, see nn::adapter_identity.
  // Throws kInvalidArgument for a file of another model or adapter, or of another `kv_bits`.
  Rows restore(
      const std::filesystem::path& path,
      const load::PromptCache& file,
      const models::Model& model,
      const models::CacheOptions& options,
      const std::string& adapter
  );
  // Checks before the pass that `save` will be able to write. Throws what AtomicFile throws, and
  // kUnsupported for codes that files have no format for.
  static void check_save(
      const std::filesystem::path& path,
      const models::Model& model,
      const models::CacheOptions& options
  );
  // `tokens`: as in Rows. Throws what writing throws.
  void save(
      const std::filesystem::path& path,
      const cache::SequenceCache& cache,
      int caches_per_layer,
      const std::vector<std::int32_t>& tokens,
      const std::string& adapter
  );

  // The model's fingerprint, for which all its files are read. Any thread.
  load::ModelFingerprint compute_fingerprint() const { return load::fingerprint(model_dir_); }

  bool has_fingerprint() const { return fingerprint_.has_value(); }

  void set_fingerprint(load::ModelFingerprint fingerprint) {
    fingerprint_ = std::move(fingerprint);
  }

 private:
  const load::ModelFingerprint& fingerprint();

  std::filesystem::path model_dir_;
  std::optional<load::ModelFingerprint> fingerprint_;  // Computed on first use.
};

}  // namespace saker::engine
