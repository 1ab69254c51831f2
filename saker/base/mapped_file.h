// SPDX-License-Identifier: Apache-2.0
#pragma once

// A regular file mapped read-only into memory, and bounded reading of small files. Mappings are
// shared: whoever holds the pointer (or one aliased to its bytes) keeps the file mapped. Any thread
// may read. If the file system has 2 MB pages (ext4 from Linux 6.16 on, XFS), bytes are loaded in
// those. The file must not shrink while it is mapped: the system then ends the program with SIGBUS.

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace saker {

class MappedFile {
 public:
  // Throws kNotFound if the file is missing or unreadable, kInvalidArgument if it is not a regular
  // file.
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);

  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  const std::filesystem::path& path() const { return path_; }

  // Empty for an empty file.
  std::span<const std::byte> bytes() const { return {data_, size_}; }

  // Frees the memory of the whole pages inside [offset, offset + length); a later read loads them
  // again.
  void release(std::size_t offset, std::size_t length) const;

 private:
  MappedFile(std::filesystem::path path, const std::byte* data, std::size_t size);

  std::filesystem::path path_;
  const std::byte* data_;
  std::size_t size_;
};

// The bytes of a regular file. Throws as MappedFile::open does, and kCorruptData above `max_bytes`.
std::string read_file(const std::filesystem::path& path, std::size_t max_bytes);

}  // namespace saker
