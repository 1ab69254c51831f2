// SPDX-License-Identifier: Apache-2.0
#pragma once

// Adapters whose base got a larger or smaller vocabulary before training, for example for new
// tokens. PEFT then saves embedding and head whole, with another number of rows. Such an adapter
// can't share passes with its base, whose rows have other logits. It can be fused with it: into a
// folder, or while the model is loaded to run the adapter alone (docs/adr/0017).

#include "saker/adapters/adapter_source.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace saker::adapters {

inline constexpr std::string_view kEmbedding = "embed_tokens";
inline constexpr std::string_view kHead = "lm_head";

struct ResizedVocabulary {
  std::int64_t tokens = 0;  // 0: the vocabulary has the base's size.
  std::map<std::string, ModuleSource, std::less<>> modules;
  bool tied = false;  // One tensor is both embedding and head.
};

// Moves embedding and head out of `source` if they replace the base's [tokens, hidden] with another
// number of rows. Does not read their values. `tied`: the base's head is its embedding. Throws
// kInvalidArgument for other shapes and if only one of the two was resized. Throws kUnsupported for
// DoRA and biases on them.
ResizedVocabulary take_resized(
    AdapterSource& source, std::int64_t tokens, std::int64_t hidden, bool tied
);

// True if an adapter's files hold an embedding or head with another number of rows than the
// model's; reads headers only. False if one of them can't be read: code that uses it reports the
// error.
bool has_own_vocabulary(const std::filesystem::path& model, const std::filesystem::path& adapter);

}  // namespace saker::adapters
