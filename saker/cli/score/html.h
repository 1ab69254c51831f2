// SPDX-License-Identifier: Apache-2.0
#pragma once

// A scored text as one HTML page that colours each token by its delta, on one scale for all views:
// a self-contained file without scripts. All text is escaped.

#include "saker/engine/differences.h"
#include "saker/engine/request.h"

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace saker::cli {

struct PageToken {
  std::string text;
  bool special = false;  // As the tokenizer marks it: BOS and the like.
};

// `tokens`: those of the result; without a tokenizer fewer, which then have no text.
std::string score_html(
    const engine::ScoreResult& result,
    const engine::Differences& differences,
    std::span<const PageToken> tokens
);

// Text as HTML shows it; bytes that are no UTF-8 become U+FFFD.
std::string escape_html(std::string_view text);

}  // namespace saker::cli
