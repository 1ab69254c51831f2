// SPDX-License-Identifier: Apache-2.0
#include "saker/server/turns/texts_between.h"

#include "saker/server/turns/api_error.h"

namespace saker::server {

std::vector<std::int32_t> between(
    std::string_view before,
    std::string_view after,
    const std::string& param,
    const ServedModel& model,
    std::span<const text::FileText> files
) {
  const text::Tokenizer* tokenizer = model.model().tokenizer();
  auto prompt = tokenizer == nullptr
                    ? std::nullopt
                    : text::fill_in_middle_prompt(*tokenizer, before, after, files);
  if (!prompt) {
    throw bad_field(param, "the model has no tokens for the text between two others");
  }
  return tokenizer->encode(*prompt);
}

}  // namespace saker::server
