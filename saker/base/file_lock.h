// SPDX-License-Identifier: Apache-2.0
#pragma once

// An exclusive lock on a file, between processes and between threads of one. The file stays, empty;
// the lock ends with its holder, however that ends.

#include <filesystem>

namespace saker {

class FileLock {
 public:
  // Makes the file and waits for the lock, with a warning after two seconds. Throws kNotFound if
  // the file can't be made.
  explicit FileLock(const std::filesystem::path& path);
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock();

 private:
  int descriptor_ = -1;
};

// Locks an open file until it is closed, without waiting. False if somebody else holds the lock. On
// file systems without locks it always succeeds.
bool try_lock(int descriptor);

}  // namespace saker
