// SPDX-License-Identifier: Apache-2.0
#pragma once

// A zip archive in a mapped file (https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT),
// with stored or deflated entries. Memory is bounded: before an entry is read, the unpacked sizes
// that all entries declare are compared with a multiple of the file's size. Entries that unpack to
// another size than declared, or that share bytes, are refused. One thread at a time.

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
  // Throws as MappedFile::open does, and kCorruptData if the file is no archive or breaks the
  // bounds.
  static ZipArchive open(const std::filesystem::path& path);

  const std::vector<std::string>& names() const { return names_; }

  // All bytes of entry `index`. Throws kCorruptData, naming the entry, if it is damaged, encrypted
  // or compressed by another method.
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
