// SPDX-License-Identifier: Apache-2.0
#pragma once

// The keys of a GGUF file that belong to its architecture, such as "llama.block_count". Throws
// kCorruptData for missing keys and values of other types, kUnsupported for values that our models
// lack, naming the key. Any thread.

#include "saker/load/gguf/gguf_file.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace saker::load::gguf {

class Keys {
 public:
  // `header` outlives this.
  explicit Keys(const Header& header);

  std::string full(std::string_view key) const;

  // A list of equal numbers, one per layer, counts as that number. With `skips_zeros` so does one
  // with zeros between them.
  std::optional<std::int64_t> integer(std::string_view key, bool skips_zeros = false) const;
  std::int64_t required(std::string_view key) const;
  // One for each of `layers`: a list of as many, or one for all. Empty without the key.
  std::vector<std::int64_t> by_layer(std::string_view key, std::int64_t layers) const;
  // One from 1 to 65536.
  std::int64_t required_size(std::string_view key) const;
  std::int64_t checked_size(std::string_view key, std::int64_t size) const;

  std::optional<double> number(std::string_view key) const { return header_.number(full(key)); }

  std::optional<bool> boolean(std::string_view key) const { return header_.boolean(full(key)); }

  std::optional<std::string_view> string(std::string_view key) const {
    return header_.string(full(key));
  }

  // Throws kUnsupported with the value in the file and the expected one.
  void expect(bool ok, std::string_view key, std::string_view got, std::string_view expected) const;

 private:
  const Header& header_;
  std::string prefix_;
};

bool has_tensor(const Header& header, std::string_view name);

std::int64_t head_count(const Keys& keys);

// Layers without attention may have none.
std::int64_t kv_head_count(const Keys& keys);

// Layers of the model alone: a head that drafts tokens follows them.
std::int64_t layer_count(const Keys& keys);

}  // namespace saker::load::gguf
