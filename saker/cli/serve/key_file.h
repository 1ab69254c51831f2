// SPDX-License-Identifier: Apache-2.0
#pragma once

// The file of --api-keys: a list of keys with names, classes and limits.

#include "saker/server/http/access.h"

#include <string>
#include <string_view>
#include <vector>

namespace saker::cli {

// The keys of a JSON text: [{"name", "key", "class", "requests_per_minute", "tokens_per_minute"}].
// A class is "interactive", "normal" or "batch". `what` names the text in messages. Throws
// kCorruptData or kInvalidArgument, without a key in the message.
std::vector<server::http::ApiKey> parse_api_keys(std::string_view text, const std::string& what);

}  // namespace saker::cli
