// SPDX-License-Identifier: Apache-2.0
#pragma once

// A lock between processes, and between threads of one: who holds the file's lock is alone. The
// file stays, empty; the lock goes with its holder, however that ends.

#include <filesystem>

namespace saker {

class FileLock {
 public:
  // Makes the file, and waits for those who hold it, with a warning after two seconds. Throws
  // kNotFound when it can't be made.
  explicit FileLock(const std::filesystem::path& path);
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock();

 private:
  int descriptor_ = -1;
};

// Locks an open file for as long as it is open, without waiting: false when another one has it
// locked. A file system without locks leaves everyone alone.
bool try_lock(int descriptor);

}  // namespace saker
