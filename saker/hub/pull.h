// SPDX-License-Identifier: Apache-2.0
#pragma once

// Fetches models from the Hugging Face hub into the cache that Python's huggingface_hub keeps
// (saker/hub/repo_cache.h): all files at once that a model needs (saker/hub/pull_plan.h), on the
// caller's thread. Programs link `libsaker_hub` for it, and with it libcurl and OpenSSL.
//
// An interrupted pull leaves parts and no snapshot; the next one goes on from them. Files are
// verified by SHA-256, small ones by git's SHA-1, before they get their names; the snapshot appears
// when all are there, the ref last. Any number of processes may pull the same model; who waits for
// another one's file says so after two seconds, as a warning of the log.

#include "saker/hub/model_name.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

namespace saker::hub {

enum class FileState : std::uint8_t {
  kWaiting,    // Its turn has not come.
  kElsewhere,  // Another process fetches it.
  kFetching,
  kVerifying,  // All bytes are there.
  kDone,
};

struct FileProgress {
  std::string path;
  std::uintmax_t done = 0;   // Bytes that are there.
  std::uintmax_t total = 0;  // Bytes of the file.
  FileState state = FileState::kWaiting;
};

// What a pull is about to fetch. Sizes are those of the list; of weights that an index names, those
// of all model*.safetensors.
struct PullPlan {
  std::string commit;
  std::size_t files = 0;
  std::uintmax_t bytes = 0;    // Of all files.
  std::uintmax_t missing = 0;  // Of these not in the cache yet.
  std::string gguf;            // The path of the GGUF model, where it is one.
  std::size_t ggufs = 0;       // That the repository has to choose from.
};

struct PullOptions {
  std::filesystem::path cache;       // Empty: the environment's.
  std::vector<std::string> include;  // Patterns (*, ?, [ab]) of further files to fetch.
  int parallel = 8;                  // Files at a time, 1 to 64.
  // For the commit and the list of files, with what is tried again.
  std::chrono::milliseconds list_limit{60'000};
  // Called on the pulling thread once the files are known, before the first one comes; what it
  // throws ends the pull.
  std::function<void(const PullPlan& plan)> planned = {};
  // Called there when something failed that is tried again, with what and why.
  std::function<void(const std::string& failure)> retrying = {};
  // Called on the pulling thread, at most ten times a second and at the end; what it throws ends
  // the pull.
  std::function<void(std::span<const FileProgress> files)> progress;
  std::stop_token stop;  // Ends the pull with kCancelled.
};

struct PullReport {
  std::string repo;
  std::string revision;
  std::string commit;
  std::filesystem::path path;      // What to load: the snapshot, or a GGUF file in it.
  std::vector<std::string> files;  // Their paths in the snapshot, sorted.
  std::uintmax_t bytes = 0;        // Of all of them.
  std::uintmax_t received = 0;     // Of these over the network.
};

// The endpoint, the token and the time-out are the environment's (saker/hub/environment.h). Throws
// kNotFound (no such model, no access, a cache that takes no files), kUnsupported (offline, no
// weights that we read), kCapacity (no space, a hub that asks to come back later or does not
// answer), kCorruptData (answers and files that are not what was promised), kCancelled.
PullReport pull(const ModelName& name, const PullOptions& options = {});

}  // namespace saker::hub
