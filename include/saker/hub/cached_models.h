// SPDX-License-Identifier: Apache-2.0
#pragma once

// Lists and removes models of the hub cache. Sizes are bytes of the files themselves; a file that
// several revisions share counts once. Times are seconds since 1970.

#include "saker/hub/model_name.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace saker::hub {

// A GGUF model of a revision.
struct CachedGguf {
  std::string label;               // Chooses it in a model name: "Q4_K_M".
  std::vector<std::string> paths;  // In the snapshot: its file, or all its parts.
  std::uintmax_t bytes = 0;
};

// A snapshot of a model.
struct CachedRevision {
  std::string commit;
  std::vector<std::string> refs;             // Branches and tags that lead here, sorted.
  std::filesystem::path path;                // Its snapshot.
  std::vector<std::filesystem::path> blobs;  // Targets of its links, sorted, each once.
  std::vector<CachedGguf> ggufs;             // Sorted by path.
  bool has_safetensors = false;
  std::size_t files = 0;
  std::uintmax_t bytes = 0;
  std::int64_t modified = 0;  // When its newest file came.
};

// A repository in the cache.
struct CachedModel {
  std::string repo;
  std::filesystem::path path;
  std::vector<CachedRevision> revisions;  // The newest first.
  std::uintmax_t bytes = 0;               // All blobs.
  std::uintmax_t incomplete_bytes = 0;    // Parts that interrupted pulls left.
  std::int64_t modified = 0;
};

// All models, sorted by name; other folders are left out. Empty if there is no cache.
std::vector<CachedModel> cached_models(const std::filesystem::path& cache);

// The files that `remove` takes away.
struct Removal {
  CachedModel model;
  std::vector<CachedRevision> revisions;     // All of the model's if it goes as a whole.
  std::vector<std::string> files;            // Only these files of the revisions; empty: all.
  std::vector<std::filesystem::path> blobs;  // Blobs that nothing else uses.
  std::uintmax_t bytes = 0;
  bool whole = false;  // The model's folder goes, too.
};

// Without a revision, plans to remove the whole model. A name with a file removes the GGUF model
// that it chooses, and revisions that hold nothing else. Throws kNotFound when it is not there,
// kInvalidArgument if several files match, and kCapacity while a process fetches files of the
// model.
Removal plan_removal(const std::filesystem::path& cache, const ModelName& name);

// Removes refs first, then snapshots, then blobs: an interruption leaves unused files, never an
// incomplete model under its name. Throws kNotFound for anything that can't be removed.
void remove(const std::filesystem::path& cache, const Removal& removal);

}  // namespace saker::hub
