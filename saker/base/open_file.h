// SPDX-License-Identifier: Apache-2.0
#pragma once

// The descriptor of a regular file that is open for reading, closed at the end.

#include <cstdint>
#include <filesystem>

namespace saker {

class OpenFile {
 public:
  // Throws kNotFound when the file is missing or unreadable, kInvalidArgument when it is no regular
  // file. Never waits, for the writer of a pipe either.
  explicit OpenFile(const std::filesystem::path& path);
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile();

  int descriptor() const { return descriptor_; }

  // When it was opened.
  std::uintmax_t size() const { return size_; }

 private:
  int descriptor_ = -1;
  std::uintmax_t size_ = 0;
};

}  // namespace saker
