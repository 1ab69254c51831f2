// SPDX-License-Identifier: Apache-2.0
#include "saker/text/token_search.h"

#include "saker/base/error.h"
#include "saker/text/tokenizer.h"

#include <algorithm>
#include <chrono>

namespace saker::text {
namespace {

// A single token may take seconds of a tokenizer; a usual vocabulary of 260,000 takes half a
// second.
constexpr std::chrono::seconds kMaxTime(20);

}  // namespace

std::vector<std::int32_t> tokens_with(
    const Tokenizer& tokenizer, std::span<const std::string> texts
) {
  require(
      texts.size() <= kMaxSearchedTexts,
      ErrorCode::kInvalidArgument,
      "got {} texts to look for in tokens, expected at most {}",
      texts.size(),
      kMaxSearchedTexts
  );
  for (const std::string& text : texts) {
    require(!text.empty(), ErrorCode::kInvalidArgument, "got an empty text to look for in tokens");
  }
  std::vector<std::int32_t> found;
  if (texts.empty()) {
    return found;
  }
  const auto start = std::chrono::steady_clock::now();
  for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    require(
        std::chrono::steady_clock::now() - start < kMaxTime,
        ErrorCode::kCorruptData,
        "the tokens of the vocabulary take more than {} s to decode",
        kMaxTime.count()
    );
    if (!tokenizer.has_token(id)) {
      continue;
    }
    const std::string token = tokenizer.decode({&id, 1});
    const auto is_in = [&token](const std::string& text) {
      return token.find(text) != std::string::npos;
    };
    if (std::ranges::any_of(texts, is_in)) {
      found.push_back(id);
    }
  }
  return found;
}

}  // namespace saker::text
