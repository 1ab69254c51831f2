// SPDX-License-Identifier: Apache-2.0
#pragma once

// A request's input as APIs take it: a text, a list of token ids, or a list of these.

#include "saker/base/json/json.h"
#include "saker/server/turns/served_model.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace saker::server {

using TextOrTokens = std::variant<std::string, std::vector<std::int32_t>>;

// Throws a 400 that names the member: for another type, for token ids outside the model's vocabulary, for an empty list
// and for more than `most` inputs.
std::vector<TextOrTokens> read_texts_or_tokens(
    const Json& given, const std::string& name, const ServedModel& model, std::size_t most
);

}  // namespace saker::server
