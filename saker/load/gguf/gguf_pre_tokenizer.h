// SPDX-License-Identifier: Apache-2.0
#pragma once

// Patterns that split text into words before byte-level BPE merges them. They come from the models'
// tokenizer.json, by the names in GGUF files (`tokenizer.ggml.pre`).

#include <optional>
#include <span>
#include <string_view>

namespace saker::load::gguf {

struct PreTokenizer {
  std::span<const std::string_view> names;  // The usual one first.
  // Applied in turn: each match of a pattern is a word, and so is the text between matches.
  std::span<const std::string_view> patterns;
  bool ignore_merges = false;  // A word that is a token is not split.
  bool add_bos = false;        // The default if the file doesn't say.
};

// All that we know; no two have the same patterns, rule for merges and default.
std::span<const PreTokenizer> pre_tokenizers();

// Empty for an unknown name.
std::optional<PreTokenizer> find_pre_tokenizer(std::string_view name);

}  // namespace saker::load::gguf
