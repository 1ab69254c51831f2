// SPDX-License-Identifier: Apache-2.0
#pragma once

// How long a request wants its model to stay.

#include "saker/base/json/json.h"
#include "saker/engine/pool/model_pool.h"

#include <optional>
#include <string_view>

namespace saker::server {

// A duration as Go writes it: "5m", "1h30m", "300ms", "-1s", or seconds: "90". A negative one is
// KeepAlive's none. Throws kInvalidArgument.
engine::KeepAlive parse_keep_alive(std::string_view text);

// Ollama's member `keep_alive` (a duration or seconds), else LM Studio's `ttl` (seconds); none if
// the body has neither. Throws a 400.
std::optional<engine::KeepAlive> read_keep_alive(const Json& body);

}  // namespace saker::server
