// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a checkpoint says about vectors of texts. Loaders write it into the configuration as one
// section, whatever file it comes from:
//
//   "text_embedding": {"pooling": "mean", "normalize": true, "dense": ["identity", "tanh"]}
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
  std::string problem = {};                 // Why texts cannot be embedded; empty: they can.
};

// The configuration's section; `fallback` without one. Throws kCorruptData for a section that makes
// no sense.
EmbeddingConfig read_embedding_config(const Json& config, const EmbeddingConfig& fallback);

}  // namespace saker::models
