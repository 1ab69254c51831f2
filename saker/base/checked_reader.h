// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads a regular file from front to back with a checksum over its bytes. Bytes go directly to the
// caller's memory and are added to the checksum while they are in cache; meanwhile the system reads
// ahead. So reading and checking take little longer than reading alone. Threading: one thread.

#include "saker/base/checksum.h"
#include "saker/base/open_file.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace saker {

class CheckedReader {
 public:
  // Throws as OpenFile does.
  explicit CheckedReader(const std::filesystem::path& path);

  // Size of the file in bytes; left() is the part that is still to be read.
  std::uint64_t size() const { return file_.size(); }

  std::uint64_t left() const { return size() - position_; }

  // Fills `to` with the next bytes. Throws kCorruptData if the file ends early or reading fails.
  void read(std::span<std::byte> to);
  // The checksum of all bytes read since the last call.
  std::uint64_t take_checksum();

 private:
  void read_ahead();

  OpenFile file_;
  std::uint64_t position_ = 0;
  std::uint64_t ahead_ = 0;  // End of the part that the system was asked to read ahead.
  Checksum sum_;
};

}  // namespace saker
