// SPDX-License-Identifier: Apache-2.0
#pragma once

// Importance matrices of llama.cpp: for each weight of a model, the sums of squares of its inputs
// by column. Two forms are read:
//
//   GGUF    general.type "imatrix", keys imatrix.*, per weight tensors NAME.in_sum2 float32
//           [experts, columns] and NAME.counts float32 [experts, 1]. Others (NAME.in_sum) are not
//           read.
//   legacy  Little-endian int32: number of entries; per entry the length of its name, the name,
//           the number of chunks, the number of values, and these as float32: means times chunks.
//           Then, in later files, the number of chunks, and the length and text of the data set.
//
// Written is GGUF (https://github.com/ggml-org/llama.cpp/tree/master/tools/imatrix). Every count and
// range is checked before it is used. A broken file throws kCorruptData with one line, and takes
// memory in proportion to its bytes.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace saker::load::gguf {

struct ImportanceEntry {
  std::vector<float> sums;    // [experts, columns]; finite, at least 0.
  std::vector<float> counts;  // Rows of each expert. One number for all of them in legacy files.

  bool operator==(const ImportanceEntry&) const = default;

  // The mean square of each value, [experts, columns]. Experts without rows have ones: their
  // columns are equally important.
  std::vector<float> means() const;
};

struct ImportanceFile {
  std::map<std::string, ImportanceEntry, std::less<>> entries;  // By name: "blk.0.attn_q.weight".
  std::vector<std::string> datasets = {};                       // Names of the texts.
  std::uint32_t chunk_count = 0;                                // 0: unknown.
  std::uint32_t chunk_size = 0;                                 // In tokens; 0: unknown.

  bool operator==(const ImportanceFile&) const = default;
};

// `what` names the file in messages. Throws kCorruptData for a broken file, one without entries,
// and for sums that are negative or not finite; what parse_gguf throws.
ImportanceFile parse_imatrix(std::span<const std::byte> file, std::string_view what);

// Throws as MappedFile::open and parse_imatrix do.
ImportanceFile read_imatrix(const std::filesystem::path& path);

// Throws as AtomicFile does. REQUIRES: at least one entry; each has as many sums as a multiple of
// its counts.
void write_imatrix(const std::filesystem::path& path, const ImportanceFile& file);

}  // namespace saker::load::gguf
