// SPDX-License-Identifier: Apache-2.0
#pragma once

// Fetches models from the Hugging Face hub into the cache of Python's huggingface_hub
// (saker/hub/repo_cache.h). The files that a model needs (saker/hub/pull_plan.h) are fetched in
// parallel, on the caller's thread. Programs that pull link `libsaker_hub`, and with it libcurl and
// OpenSSL.
//
// An interrupted pull leaves parts and no snapshot; the next pull resumes them. Files are verified
// by SHA-256, small ones by git's SHA-1, before they get their names. The snapshot appears when all
// files are there, the ref last. Any number of processes may pull the same model. A process that
// waits two seconds for another one's file logs a warning.

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

// How far one file is.
enum class FileState : std::uint8_t {
  kWaiting,    // Not begun.
  kElsewhere,  // Another process fetches it.
  kFetching,
  kVerifying,  // All bytes are there.
  kDone,
};

// One file of a pull.
struct FileProgress {
  std::string path;
  std::uintmax_t done = 0;   // Bytes that are there.
  std::uintmax_t total = 0;  // Bytes of the file.
  FileState state = FileState::kWaiting;
};

// A pull's plan, before it fetches. Sizes come from the hub's list. Until an index of weights is
// read, all model*.safetensors count.
struct PullPlan {
  std::string commit;
  std::size_t files = 0;
  std::uintmax_t bytes = 0;    // All files.
  std::uintmax_t missing = 0;  // Bytes that are not in the cache yet.
  std::string gguf;            // The path of the GGUF model; empty: a folder.
  std::size_t ggufs = 0;       // GGUF models in the repository.
};

// How a pull runs, and whom it tells.
struct PullOptions {
  std::filesystem::path cache;       // Empty: the environment's.
  std::vector<std::string> include;  // Patterns (*, ?, [ab]) of further files to fetch.
  int parallel = 8;                  // Files at a time, 1 to 64.
  // Time limit for the commit and the list of files, retries included.
  std::chrono::milliseconds list_limit{60'000};
  // Called on the pulling thread once the files are known, before the first one is fetched. An
  // exception ends the pull.
  std::function<void(const PullPlan& plan)> planned = {};
  // Called on the pulling thread before each retry, with what failed and why.
  std::function<void(const std::string& failure)> retrying = {};
  // Called on the pulling thread, at most ten times a second and at the end. An exception ends the
  // pull.
  std::function<void(std::span<const FileProgress> files)> progress;
  std::stop_token stop;  // Ends the pull with kCancelled.
};

// A finished pull.
struct PullReport {
  std::string repo;
  std::string revision;
  std::string commit;
  std::filesystem::path path;      // The path to load: the snapshot, or a GGUF file in it.
  std::vector<std::string> files;  // Paths in the snapshot, sorted.
  std::uintmax_t bytes = 0;        // All files.
  std::uintmax_t received = 0;     // Bytes that came over the network.
};

// The endpoint, the token and the timeout come from the environment (saker/hub/environment.h).
// Throws:
//   kNotFound      no such model, no access, or a cache that takes no files
//   kUnsupported   offline, or no weights that we read
//   kCapacity      no disk space, or a hub that asks to come back later or does not answer
//   kCorruptData   answers or files differ from what the hub promised
//   kCancelled     a stop was requested
PullReport pull(const ModelName& name, const PullOptions& options = {});

}  // namespace saker::hub
