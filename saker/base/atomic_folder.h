// SPDX-License-Identifier: Apache-2.0
#pragma once

// A folder that appears whole or not at all: filled under a temporary name beside the final one,
// then renamed. Whatever ends the process in between leaves at most the temporary folder (see
// temporary_path.h), which the next one for the same name removes: a lock tells that its process
// still works on it.
// Files in it that must outlive a power failure are written by AtomicFile.

#include <filesystem>

namespace saker {

class AtomicFolder {
 public:
  // Makes the temporary folder, and the folders above it. Throws kInvalidArgument when the final
  // name is there and no empty folder, kNotFound when no folder can be made.
  explicit AtomicFolder(const std::filesystem::path& path);
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;
  // Removes the temporary folder unless it was committed.
  ~AtomicFolder();

  // Where its files go until it is committed.
  const std::filesystem::path& path() const { return temporary_; }

  // Nothing may be written after it. Throws kNotFound when the folder can't take its name.
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int lock_ = -1;  // The temporary folder itself, locked while this lives.
  bool committed_ = false;
};

}  // namespace saker
