// SPDX-License-Identifier: Apache-2.0
#pragma once

// What lies in the hub cache, and taking it out again. Sizes are bytes of the files themselves, one
// that several revisions use counted once; times are seconds since 1970.

#include "saker/hub/model_name.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace saker::hub {

// A GGUF model of a revision.
struct CachedGguf {
  std::string label;               // What chooses it behind the repo id and a colon: "Q4_K_M".
  std::vector<std::string> paths;  // Of its file, or of all its parts, in the snapshot.
  std::uintmax_t bytes = 0;
};

struct CachedRevision {
  std::string commit;
  std::vector<std::string> refs;             // Branches and tags that lead here, sorted.
  std::filesystem::path path;                // Its snapshot.
  std::vector<std::filesystem::path> blobs;  // What its links lead to, sorted, each once.
  std::vector<CachedGguf> ggufs;             // Sorted by path.
  bool has_safetensors = false;
  std::size_t files = 0;
  std::uintmax_t bytes = 0;
  std::int64_t modified = 0;  // When its newest file came.
};

struct CachedModel {
  std::string repo;
  std::filesystem::path path;
  std::vector<CachedRevision> revisions;  // The newest first.
  std::uintmax_t bytes = 0;               // Of all blobs.
  std::uintmax_t incomplete_bytes = 0;    // Of pulls that were interrupted.
  std::int64_t modified = 0;
};

// All models, sorted by name; folders that are none are left out. Empty where there is no cache.
std::vector<CachedModel> cached_models(const std::filesystem::path& cache);

// What `remove` would take away.
struct Removal {
  CachedModel model;
  std::vector<CachedRevision> revisions;     // All of the model's: the model as a whole.
  std::vector<std::string> files;            // Of these revisions, alone; empty: all.
  std::vector<std::filesystem::path> blobs;  // Those that nothing else uses.
  std::uintmax_t bytes = 0;
  bool whole = false;
};

// Without a revision the whole model. A name with a file takes the GGUF model that it chooses, and
// the revisions that hold nothing else. Throws kNotFound when it is not there, kInvalidArgument
// where several files may be meant, and kCapacity while a process fetches files of the model.
Removal plan_removal(const std::filesystem::path& cache, const ModelName& name);

// Refs go first, then snapshots, then blobs: an interruption leaves files, never a model with holes
// under its name. Throws kNotFound for what can't be removed.
void remove(const std::filesystem::path& cache, const Removal& removal);

}  // namespace saker::hub
