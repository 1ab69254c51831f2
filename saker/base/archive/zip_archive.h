// SPDX-License-Identifier: Apache-2.0
#pragma once

// A zip archive in a mapped file (https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT),
// entries stored or deflated. Memory is bounded: what all entries say that they unpack to is
// compared with a multiple of the file's size before one is read, and an entry that unpacks to
// another size than it says is refused, as are entries that share bytes. One thread at a time.

#include "saker/base/mapped_file.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

struct SakerRsZip;

namespace saker {

class ZipArchive {
 public:
  // Throws as MappedFile::open does, kCorruptData for what is no archive or breaks the bounds.
  static ZipArchive open(const std::filesystem::path& path);

  const std::vector<std::string>& names() const { return names_; }

  // All bytes of entry `index`. Throws kCorruptData naming the entry: damaged, encrypted, or packed
  // in another way.
  std::shared_ptr<const std::vector<std::byte>> read(std::size_t index);

 private:
  struct Free {
    void operator()(SakerRsZip* zip) const;
  };

  ZipArchive(std::shared_ptr<const MappedFile> file, std::unique_ptr<SakerRsZip, Free> zip);

  std::shared_ptr<const MappedFile> file_;
  std::unique_ptr<SakerRsZip, Free> zip_;
  std::vector<std::string> names_;
};

}  // namespace saker
