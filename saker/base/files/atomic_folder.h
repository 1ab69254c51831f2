// SPDX-License-Identifier: Apache-2.0
#pragma once

// A folder that appears whole or not at all: filled under a temporary name beside the final one,
// then renamed. If the process ends in between, at most the temporary folder is left (see
// temporary_path.h). The next AtomicFolder for the path removes it, unless a lock shows that its
// process is still working. Files in it that must survive a power failure are written by
// AtomicFile.

#include <filesystem>

namespace saker {

class AtomicFolder {
 public:
  // Makes the temporary folder and its parents. Throws kInvalidArgument if the final name exists
  // and is no empty folder, and kNotFound if no folder can be made.
  explicit AtomicFolder(const std::filesystem::path& path);
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;
  // Removes the temporary folder unless it was committed.
  ~AtomicFolder();

  // The temporary folder: write files here before the commit.
  const std::filesystem::path& path() const { return temporary_; }

  // Gives the folder its final name; nothing may be written after it. Throws kNotFound if that
  // fails.
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int lock_ = -1;  // The temporary folder itself, locked while this lives.
  bool committed_ = false;
};

}  // namespace saker
