// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads a model in the hub cache again, and compares each file with the digest that names its blob:
// disks fail, and blobs are not flushed when they are fetched
// (docs/adr/0011-pulling-from-the-hub.md). Several files at a time, on threads of its own. In
// libsaker_hub, with OpenSSL.

#include "saker/hub/model_name.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

namespace saker::hub {

struct DamagedFile {
  std::string path;            // In the snapshot; of several one.
  std::filesystem::path blob;  // May be missing.
  std::string reason;          // "is missing", "its SHA-256 is ...".
};

struct VerifyReport {
  std::string repo;
  std::vector<std::string> commits;  // That were looked at, sorted.
  std::size_t files = 0;             // That have a digest; each blob once.
  std::uintmax_t bytes = 0;          // Of them.
  std::vector<DamagedFile> damaged;  // Sorted by path.
  std::vector<std::string> unknown;  // Files without a digest, which others have put there.
};

struct VerifyOptions {
  // Called on the caller's thread, about ten times a second; what it throws ends the work.
  std::function<void(std::uintmax_t done, std::uintmax_t total)> progress;
  std::stop_token stop;  // Ends the work with kCancelled.
};

// All revisions, or the one that is named. Throws kNotFound when it is not there.
VerifyReport verify(
    const std::filesystem::path& cache, const ModelName& name, const VerifyOptions& options = {}
);

// Takes the damaged blobs away, so that the next pull fetches them; links stay. Throws kNotFound
// for what can't be removed.
void remove_damaged(const VerifyReport& report);

}  // namespace saker::hub
