// SPDX-License-Identifier: Apache-2.0
#pragma once

// Collects the key-value pairs of one architecture, "llama.block_count", and refuses what its files
// cannot say. One thread.

#include "saker/load/export/gguf_metadata.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace saker::load::gguf {

class FamilyPairs {
 public:
  // `family` outlives this.
  explicit FamilyPairs(std::string_view family) : family_(family) {}

  // With its whole key.
  void add_general(std::string key, MetadataValue value) {
    pairs_.push_back({std::move(key), std::move(value)});
  }

  // Behind the architecture's name, as the types of llama.cpp's converter: uint32 and float32.
  // Throw kUnsupported for numbers that these cannot hold.
  void add_integer(std::string_view key, std::int64_t value);
  void add_number(std::string_view key, double value);
  void add(std::string_view key, MetadataValue value);

  // Throws kUnsupported with the configuration's value and the one that files imply.
  void expect(bool ok, std::string_view field, std::string_view got, std::string_view expected)
      const;

  Metadata take() { return std::move(pairs_); }

 private:
  std::string_view family_;
  Metadata pairs_;
};

}  // namespace saker::load::gguf
