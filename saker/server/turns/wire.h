// SPDX-License-Identifier: Apache-2.0
#pragma once

// Forms of answers that all dialects share: events of a stream, lines of JSON, ids, times.

#include "saker/base/json/json.h"
#include "saker/server/http/message.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace saker::server {

// "data: JSON" as an event of a text/event-stream.
std::string sse(const Json& data);
// With a name: "event: NAME".
std::string sse(std::string_view event, const Json& data);
// The end that OpenAI's streams have.
inline constexpr std::string_view kSseDone = "data: [DONE]\n\n";
// A comment that keeps a connection alive.
inline constexpr std::string_view kSsePing = ": ping\n\n";
// One line of JSON.
std::string json_line(const Json& data);

// The head of a text/event-stream.
http::Response sse_head();
http::Response json_response(const Json& body, int status = 200);

// `prefix` and 24 hexadecimal digits that nobody can guess.
std::string new_id(std::string_view prefix);
// A seed from the machine's randomness.
std::uint64_t new_seed();

// Seconds since 1970.
std::int64_t unix_time();
// "2026-01-31T12:00:00.123456789Z".
std::string utc_time(std::chrono::system_clock::time_point time);

// A log-probability that JSON can hold; OpenAI's -9999 stands for minus infinity.
double finite_logprob(double logprob);

// The bytes in base64.
std::string base64(std::string_view bytes);

}  // namespace saker::server
