// SPDX-License-Identifier: Apache-2.0
#pragma once

// Makes zip archives of stored entries for tests, right ones and such as say what is not so.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace saker::testing {

struct ZipEntry {
  std::string name;
  std::string bytes;
  std::uint32_t extra_size = 0;  // That its size says too much.
  std::uint16_t method = 0;
  bool shares_first = false;  // Its bytes are the first entry's.
};

inline std::uint32_t crc32(std::string_view bytes) {
  std::uint32_t crc = 0xffffffffU;
  for (const char byte : bytes) {
    crc ^= static_cast<std::uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? 0xedb88320U : 0U);
    }
  }
  return ~crc;
}

inline void append_number(std::string& to, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) {
    to += static_cast<char>(value >> (8 * i) & 0xffU);
  }
}

// Name and sizes, as both headers of an entry have them.
inline void append_sizes(std::string& to, const ZipEntry& entry) {
  append_number(to, entry.method, 2);
  append_number(to, 0, 4);  // Time.
  append_number(to, crc32(entry.bytes), 4);
  append_number(to, entry.bytes.size(), 4);
  append_number(to, entry.bytes.size() + entry.extra_size, 4);
  append_number(to, entry.name.size(), 2);
  append_number(to, 0, 2);
}

inline std::string zip_file(const std::vector<ZipEntry>& entries) {
  std::string file;
  std::string directory;
  for (const ZipEntry& entry : entries) {
    const std::size_t begin = entry.shares_first ? 0 : file.size();
    if (!entry.shares_first) {
      append_number(file, 0x04034b50U, 4);
      append_number(file, 20, 2);
      append_number(file, 0, 2);
      append_sizes(file, entry);
      file += entry.name + entry.bytes;
    }
    append_number(directory, 0x02014b50U, 4);
    append_number(directory, 20, 2);
    append_number(directory, 20, 2);
    append_number(directory, 0, 2);
    append_sizes(directory, entry);
    append_number(directory, 0, 2);  // Comment, disk and attributes.
    append_number(directory, 0, 8);
    append_number(directory, begin, 4);
    directory += entry.name;
  }
  const std::size_t begin = file.size();
  file += directory;
  append_number(file, 0x06054b50U, 4);
  append_number(file, 0, 4);
  append_number(file, entries.size(), 2);
  append_number(file, entries.size(), 2);
  append_number(file, directory.size(), 4);
  append_number(file, begin, 4);
  append_number(file, 0, 2);
  return file;
}

}  // namespace saker::testing
