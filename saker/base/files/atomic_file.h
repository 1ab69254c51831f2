// SPDX-License-Identifier: Apache-2.0
#pragma once

// A file that appears whole or not at all. It is written under a temporary name in the same folder,
// flushed to disk, then renamed to the final name. If the process ends in between, the old file
// stays, and at most a temporary file is left (see temporary_path.h). A replaced file passes its
// permissions on.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

namespace saker {

// Who may read the file.
enum class FileReaders : std::uint8_t {
  kUsual,  // As the replaced file; for a new one, as the umask says.
  kOwner,  // Only the owner: it holds people's texts.
};

class AtomicFile {
 public:
  // Opens the temporary file. Throws kNotFound when the folder takes no file, kInvalidArgument
  // when the final name is something other than a regular file.
  explicit AtomicFile(const std::filesystem::path& path, FileReaders readers = FileReaders::kUsual);
  // Writes to `temporary`, which must not exist, on the file system of `path`.
  AtomicFile(
      const std::filesystem::path& path,
      std::filesystem::path temporary,
      FileReaders readers = FileReaders::kUsual
  );
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  // Removes the temporary file unless it was committed.
  ~AtomicFile();

  // Throws kCapacity when the disk is full.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  // Writes at `offset`, from any thread; ranges must not overlap. Gaps between them read as zeros.
  void write_at(std::size_t offset, std::span<const std::byte> bytes);

  // Flushes and renames. Nothing may be written after it.
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
};

}  // namespace saker
