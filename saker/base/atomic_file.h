// SPDX-License-Identifier: Apache-2.0
#pragma once

// A file that appears whole or not at all: written under a temporary name in the same folder,
// flushed to the disk, then renamed over the final name. Whatever ends the process in between
// leaves the old file as it was, and at most a temporary one beside it (see temporary_path.h).
// A file that is replaced leaves its permissions to the new one.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

namespace saker {

// Who may read the file.
enum class FileReaders : std::uint8_t {
  kUsual,  // Those of the file that is replaced; of a new one, whom the umask lets.
  kOwner,  // Nobody else: it holds what people wrote.
};

class AtomicFile {
 public:
  // Opens the temporary file. Throws kNotFound when the folder takes no file, kInvalidArgument
  // when the final name is something other than a regular file.
  explicit AtomicFile(const std::filesystem::path& path, FileReaders readers = FileReaders::kUsual);
  // Under this temporary name, which nothing has, on the file system of `path`.
  AtomicFile(
      const std::filesystem::path& path,
      std::filesystem::path temporary,
      FileReaders readers = FileReaders::kUsual
  );
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  // Removes the temporary file unless it was committed.
  ~AtomicFile();

  // Throws kCapacity when the disk takes no more.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  // At a place of their own, from any thread; what lies between such places is zeros.
  void write_at(std::size_t offset, std::span<const std::byte> bytes);

  // Flushes and renames; nothing may be written after it.
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
};

}  // namespace saker
