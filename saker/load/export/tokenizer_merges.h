// SPDX-License-Identifier: Apache-2.0
#pragma once

// The merges of a tokenizer.json with BPE, as GGUF files have them: a list of pairs, or a score for
// each piece. Pure; any thread.

#include "saker/base/json/json.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace saker::load::gguf {

struct PiecePair {
  std::string left;
  std::string right;
};

// `model` is tokenizer.json's member. Merges are pairs or texts with a space between. Throws
// kCorruptData for others.
std::vector<PiecePair> read_merges(const Json& model);

// A score for each of `pieces`: minus the rank of the first merge that makes it. Merging to the
// highest score first then equals merging in the order of `merges`. Pieces whose merges alternate
// have equal scores, pieces that no merge makes a lower one. Throws kUnsupported for merges that
// scores cannot say: another order, or pieces that others make without a merge. REQUIRES: pieces
// differ, except empty ones.
std::vector<float> piece_scores(
    std::span<const PiecePair> merges, std::span<const std::string_view> pieces
);

}  // namespace saker::load::gguf
