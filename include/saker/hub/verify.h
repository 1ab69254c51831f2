// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads a cached model again and compares each file with the digest that names its blob. Disks
// fail, and blobs are not flushed when they are fetched (docs/adr/0011-pulling-from-the-hub.md).
// Several files are read in parallel, on own threads. In libsaker_hub, with OpenSSL.

#include "saker/hub/model_name.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

namespace saker::hub {

// A file whose bytes are not those of its digest.
struct DamagedFile {
  std::string path;            // In the snapshot; one of them if several link to the blob.
  std::filesystem::path blob;  // May be missing.
  std::string reason;          // "is missing", "its SHA-256 is ...".
};

// The result of a verification.
struct VerifyReport {
  std::string repo;
  std::vector<std::string> commits;  // The commits that were checked, sorted.
  std::size_t files = 0;             // Files that have a digest; each blob counts once.
  std::uintmax_t bytes = 0;          // Bytes of these files.
  std::vector<DamagedFile> damaged;  // Sorted by path.
  std::vector<std::string> unknown;  // Files without a digest: others put them there.
};

// Whom a verification tells.
struct VerifyOptions {
  // Called on the caller's thread, about ten times a second. An exception ends the work.
  std::function<void(std::uintmax_t done, std::uintmax_t total)> progress;
  std::stop_token stop;  // Ends the work with kCancelled.
};

// Verifies all revisions, or the one that `name` gives. Throws kNotFound if it is not there.
VerifyReport verify(
    const std::filesystem::path& cache, const ModelName& name, const VerifyOptions& options = {}
);

// Removes the damaged blobs, so that the next pull fetches them; links stay. Throws kNotFound for a
// blob that can't be removed.
void remove_damaged(const VerifyReport& report);

}  // namespace saker::hub
