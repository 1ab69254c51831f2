// SPDX-License-Identifier: Apache-2.0
#pragma once

// Adapters of a base whose vocabulary was made larger for new tokens, or smaller, before training:
// PEFT then saves embedding and head whole, with another number of rows. Such an adapter can't
// share passes with its base, whose rows have other logits, but it can be fused with it: into a
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
  std::int64_t tokens = 0;  // 0: it has the base's size.
  std::map<std::string, ModuleSource, std::less<>> modules;
  bool tied = false;  // One tensor is embedding and head.
};

// Takes embedding and head out of `source` where they are replaced by others with more or fewer
// rows than [tokens, hidden], those of the base; their values are not looked at. `tied`: the base's
// head is its embedding. Throws kInvalidArgument for other shapes and where only one of the two was
// resized, kUnsupported for DoRA and biases on them.
ResizedVocabulary take_resized(
    AdapterSource& source, std::int64_t tokens, std::int64_t hidden, bool tied
);

// Whether an adapter's files hold an embedding or head with more or fewer rows than the model's;
// reads headers alone. False where one of the two can't be read: who uses it says why.
bool has_own_vocabulary(const std::filesystem::path& model, const std::filesystem::path& adapter);

}  // namespace saker::adapters
