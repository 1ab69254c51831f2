// SPDX-License-Identifier: Apache-2.0
#pragma once

// Names of the token table in checkpoints. Pure; any thread.

#include <algorithm>
#include <array>
#include <string_view>

namespace saker::models {

// First transformers' name, then names in models written by hand.
inline constexpr std::array<std::string_view, 6> kTokenTables{
    "embed_tokens", "embeddings", "word_embeddings", "embedding", "token_embedding", "wte"
};

// True if the last part of a module's path is one of them.
inline bool is_token_table(std::string_view module) {
  const auto dot = module.rfind('.');
  const auto name = dot == std::string_view::npos ? module : module.substr(dot + 1);
  return std::ranges::find(kTokenTables, name) != kTokenTables.end();
}

// True if a tensor's name is that of a table's weights.
inline bool is_token_table_weight(std::string_view tensor) {
  constexpr std::string_view kWeight = ".weight";
  return tensor.ends_with(kWeight) &&
         is_token_table(tensor.substr(0, tensor.size() - kWeight.size()));
}

}  // namespace saker::models
