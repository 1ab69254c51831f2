// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/score/kept_answer.h"

#include "saker/base/error.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace saker::cli {
namespace {

bool same_id(const Json& kept, const Json& id) {
  return kept.contains("id") ? kept["id"] == id : id.is_discarded();
}

// True if the answer's first view is scored from that token on. Non-finite numbers can't tell.
bool scored_from(const Json& view, int first_scored) {
  const Json& logprobs = view.at("logprobs");
  const auto number = std::ranges::find_if(logprobs, [](const Json& x) { return !x.is_null(); });
  const auto wanted = std::min(std::max(first_scored, 1), static_cast<int>(logprobs.size()));
  return view.at("sum").is_null() || number - logprobs.begin() == wanted;
}

// True if it lists top_k tokens, or all if there are fewer.
bool has_candidates(const Json& next, int top_k) {
  const Json& vocab_size = next.at("vocab_size");
  return vocab_size.is_number_integer() && vocab_size >= 0 &&
         next.at("token_ids").size() ==
             std::min(static_cast<std::size_t>(top_k), vocab_size.get<std::size_t>());
}

}  // namespace

bool is_failure(const Json& kept) {
  return kept.contains("error");
}

bool answers(const Json& kept, const AskedRecord& record) {
  try {
    if (!kept.is_object() || !same_id(kept, record.id)) {
      return false;
    }
    if (is_failure(kept)) {
      return kept.at("error").at("line") == record.line;
    }
    const engine::ScorePrompt prompt = record.prompt();
    return kept.at("tokens") == Json(prompt.tokens) && !kept.at("views").empty() &&
           scored_from(kept.at("views").front(), prompt.first_scored);
  } catch (const Json::exception&) {
    return false;  // Not a line of ours.
  } catch (const Error&) {
    return false;  // The record can't be scored.
  }
}

bool fits_options(const Json& kept, const engine::ScoreRequest& options, WithDifferences diff) {
  if (is_failure(kept) || kept.at("tokens").empty()) {
    return true;
  }
  try {
    std::vector<std::string> keys;
    for (const auto& [key, scores] : kept.at("views").items()) {
      keys.push_back(key);
    }
    const bool same_views = std::ranges::equal(keys, options.views, {}, {}, &engine::View::key);
    const bool same_diff = kept.contains("diff") == (diff == WithDifferences::kYes);
    const Json& first = kept.at("views").front();
    const bool with_next = first.contains("next");
    if (!same_views || !same_diff || with_next != (options.top_k > 0)) {
      return false;
    }
    return !with_next || has_candidates(first.at("next"), options.top_k);
  } catch (const Json::exception&) {
    return false;
  }
}

}  // namespace saker::cli
