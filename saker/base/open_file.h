// SPDX-License-Identifier: Apache-2.0
#pragma once

// A regular file that is open for reading; the destructor closes it.

#include <cstdint>
#include <filesystem>

namespace saker {

class OpenFile {
 public:
  // Throws kNotFound if the file is missing or unreadable, kInvalidArgument if it is not a regular
  // file. Never blocks, not even for the writer of a pipe.
  explicit OpenFile(const std::filesystem::path& path);
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile();

  int descriptor() const { return descriptor_; }

  // Its size when it was opened, in bytes.
  std::uintmax_t size() const { return size_; }

 private:
  int descriptor_ = -1;
  std::uintmax_t size_ = 0;
};

}  // namespace saker
