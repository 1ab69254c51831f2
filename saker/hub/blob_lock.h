// SPDX-License-Identifier: Apache-2.0
#pragma once

// The right to write a blob: flock on a lock file, as Python's filelock takes it, without waiting.
// The file stays; the lock ends with the object or the process.

#include <filesystem>
#include <optional>

namespace saker::hub {

// True if the path still leads to the open file, so nobody removed it meanwhile.
bool is_in_place(int descriptor, const std::filesystem::path& path);

// True if somebody holds the lock now. False if the file can't be opened.
bool is_locked(const std::filesystem::path& path);

class BlobLock {
 public:
  // Empty while another holder has the lock. On file systems without locks everybody gets it.
  // Throws kNotFound when the file can't be made.
  static std::optional<BlobLock> try_lock(const std::filesystem::path& path);

  BlobLock(BlobLock&& other) noexcept;
  BlobLock& operator=(BlobLock&& other) noexcept;
  ~BlobLock();

 private:
  explicit BlobLock(int descriptor) : descriptor_(descriptor) {}

  int descriptor_;
};

}  // namespace saker::hub
