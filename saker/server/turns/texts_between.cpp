// SPDX-License-Identifier: Apache-2.0
#include "saker/server/turns/texts_between.h"

#include "saker/server/turns/api_error.h"
#include "saker/text/fill_in_middle.h"

namespace saker::server {

std::string between(
    std::string_view before,
    std::string_view after,
    const std::string& param,
    const ServedModel& model
) {
  const text::Tokenizer* tokenizer = model.model().tokenizer();
  auto prompt =
      tokenizer == nullptr ? std::nullopt : text::fill_in_middle_prompt(*tokenizer, before, after);
  if (!prompt) {
    throw bad_field(param, "the model has no tokens for the text between two others");
  }
  return *std::move(prompt);
}

}  // namespace saker::server
