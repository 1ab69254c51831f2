// SPDX-License-Identifier: Apache-2.0
#pragma once

// Who may write a blob: flock on a file of its own, as Python's filelock takes it, without waiting.
// The file stays; the lock ends with the object or the process.

#include <filesystem>
#include <optional>

namespace saker::hub {

// Whether the name still leads to the open file: nobody removed it meanwhile.
bool is_in_place(int descriptor, const std::filesystem::path& path);

// Whether somebody holds the lock now. Not where it can't be opened.
bool is_locked(const std::filesystem::path& path);

class BlobLock {
 public:
  // None while another holder has it. Where the file system knows no locks nobody is kept out.
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
