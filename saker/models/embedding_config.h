// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a checkpoint says about vectors of texts. Loaders write it into the configuration as one
// section, whatever file it comes from:
//
//   "text_embedding": {"pooling": "mean", "normalize": true, "dense": ["identity", "tanh"],
//                      "max_tokens": 256}
//
// or {"problem": "..."} if texts cannot be embedded with the files. Pure; any thread.

#include "saker/base/json/json.h"
#include "saker/models/pooling.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace saker::models {

inline constexpr std::string_view kTextEmbedding = "text_embedding";

enum class DenseActivation : std::uint8_t { kIdentity, kTanh };

struct EmbeddingConfig {
  Pooling pooling = Pooling::kLast;
  bool normalize = true;                    // Vectors get unit length.
  bool is_declared = false;                 // The checkpoint's files have the section.
  std::vector<DenseActivation> dense = {};  // By layer; layers without one: identity.
  std::int64_t max_tokens = 0;  // A text has at most so many; 0: as many as the model takes.
  std::string problem = {};     // Why texts cannot be embedded; empty: they can.

  // The most tokens of a text, for a model of this context.
  std::int64_t most_tokens(std::int64_t context) const {
    return max_tokens > 0 && (context <= 0 || max_tokens < context) ? max_tokens : context;
  }
};

// The configuration's section; `fallback` without one. Throws kCorruptData for a section that makes
// no sense.
EmbeddingConfig read_embedding_config(const Json& config, const EmbeddingConfig& fallback);

}  // namespace saker::models
