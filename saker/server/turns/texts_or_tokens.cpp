// SPDX-License-Identifier: Apache-2.0
#include "saker/server/turns/texts_or_tokens.h"

#include "saker/server/turns/api_error.h"
#include "saker/server/turns/fields.h"

#include <algorithm>

namespace saker::server {
namespace {

bool are_tokens(const Json& value) {
  return value.is_array() && !value.empty() &&
         std::ranges::all_of(value, [](const Json& one) { return one.is_number_integer(); });
}

std::vector<std::int32_t> read_tokens(
    const Json& ids, const std::string& name, std::int64_t vocabulary
) {
  std::vector<std::int32_t> tokens;
  tokens.reserve(ids.size());
  for (const Json& id : ids) {
    const auto number = id.get<std::int64_t>();  // Negative beyond 63 bits.
    if (number < 0 || number >= vocabulary) {
      throw bad_field(name, "expected token ids below {}, got {}", vocabulary, describe_json(id));
    }
    tokens.push_back(static_cast<std::int32_t>(number));
  }
  return tokens;
}

TextOrTokens read_one(const Json& value, const std::string& name, const ServedModel& model) {
  if (value.is_string()) {
    return value.get<std::string>();
  }
  if (are_tokens(value)) {
    return read_tokens(value, name, model.model().facts().vocab_size);
  }
  throw bad_field(name, "expected a string or a list of token ids, got {}", kind_of(value));
}

}  // namespace

std::vector<TextOrTokens> read_texts_or_tokens(
    const Json& given, const std::string& name, const ServedModel& model, std::size_t most
) {
  if (!given.is_array() || are_tokens(given)) {
    return {read_one(given, name, model)};
  }
  if (given.empty() || given.size() > most) {
    throw bad_field(name, "expected 1 to {} texts or lists of tokens, got {}", most, given.size());
  }
  std::vector<TextOrTokens> inputs;
  inputs.reserve(given.size());
  for (const Json& one : given) {
    inputs.push_back(read_one(one, name, model));
  }
  return inputs;
}

}  // namespace saker::server
