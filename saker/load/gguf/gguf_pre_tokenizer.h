// SPDX-License-Identifier: Apache-2.0
#pragma once

// How byte-level vocabularies cut text into words before they merge: the names that GGUF files use
// (`tokenizer.ggml.pre`), and the models' own patterns, as their tokenizer.json have them.

#include <optional>
#include <span>
#include <string_view>

namespace saker::load::gguf {

struct PreTokenizer {
  std::span<const std::string_view> names;
  // One after the other: what a pattern matches is a word, and so is what lies between.
  std::span<const std::string_view> patterns;
  bool ignore_merges = false;  // A word that is a token stays whole.
  bool add_bos = false;        // Where the file doesn't say.
};

// None for a name that we don't know.
std::optional<PreTokenizer> find_pre_tokenizer(std::string_view name);

}  // namespace saker::load::gguf
