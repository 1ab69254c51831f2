// SPDX-License-Identifier: Apache-2.0
#pragma once

// A regular file from front to back, with a checksum over what is read. Bytes go right where the
// caller wants them and are added to the checksum while the processor's cache has them, and the
// system reads ahead meanwhile: so reading, checking and placing take little more than reading.
// Threading: one thread.

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

  // Bytes of the file, and those of them that are still to be read.
  std::uint64_t size() const { return file_.size(); }

  std::uint64_t left() const { return size() - position_; }

  // Fills `to` with the next bytes. Throws kCorruptData where the file ends before or fails.
  void read(std::span<std::byte> to);
  // Of all bytes that were read since the last call.
  std::uint64_t take_checksum();

 private:
  void read_ahead();

  OpenFile file_;
  std::uint64_t position_ = 0;
  std::uint64_t ahead_ = 0;  // Where the part ends that the system was asked to read.
  Checksum sum_;
};

}  // namespace saker
