// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/draft_check.h"

#include "saker/base/error.h"
#include "saker/load/sources/open_texts.h"
#include "saker/text/tokenizer.h"

#include <algorithm>
#include <cstdint>
#include <string>

namespace saker::engine {

namespace {

// Ids may have gaps: checks this many ids beyond the number of tokens.
constexpr int kGaps = 4096;

std::string piece_of(const text::Tokenizer& tokenizer, std::int32_t id) {
  return tokenizer.has_token(id) ? tokenizer.token_piece(id) : "";
}

}  // namespace

bool check_draft_tokens(const Prompts& target, const std::filesystem::path& draft) {
  const text::ModelTexts texts = load::open_texts(draft);
  const auto theirs = text::Tokenizer::load_if_present(texts, text::load_tokenizer_config(texts));
  if (target.tokenizer() == nullptr || theirs == nullptr) {
    return false;
  }
  const text::Tokenizer& ours = *target.tokenizer();
  const int most = std::max(ours.vocab_size(), theirs->vocab_size());
  for (std::int32_t id = 0; id < most + kGaps; ++id) {
    const std::string expected = piece_of(ours, id);
    const std::string got = piece_of(*theirs, id);
    // Some files name special tokens that the model lacks, such as padding; one of the two may.
    const bool agree = got == expected || (got.empty() && ours.is_special(id)) ||
                       (expected.empty() && theirs->is_special(id));
    require(
        agree,
        ErrorCode::kInvalidArgument,
        "draft model {}: its token {} is {:?}, expected the model's {:?}",
        draft.string(),
        id,
        got,
        expected
    );
  }
  return true;
}

void check_draft_heads(
    const HeadSizes& sizes, bool same_tokens, const std::filesystem::path& draft
) {
  require(
      same_tokens || sizes.draft == sizes.target,
      ErrorCode::kInvalidArgument,
      "draft model {}: its vocabulary has {} tokens, expected the model's {}",
      draft.string(),
      sizes.draft,
      sizes.target
  );
}

}  // namespace saker::engine
