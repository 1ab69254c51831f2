// SPDX-License-Identifier: Apache-2.0
#pragma once

// A new folder that only its owner can read, and that the destructor removes.

#include <filesystem>

namespace saker::cli {

class TemporaryFolder {
 public:
  // Throws kNotFound if it can't be made.
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();

  const std::filesystem::path& path() const { return path_; }

  // Removes it now. Any thread may call it.
  void remove() const;

 private:
  const std::filesystem::path path_;
};

}  // namespace saker::cli
