// SPDX-License-Identifier: Apache-2.0
#pragma once

// Who sent a request, and what its answer took. Plain values.

#include <cstdint>
#include <string>

namespace saker::server::http {

// The holder of a key.
struct Caller {
  std::string name = {};  // For logs and for turns among callers; empty: there are no keys.
  int priority = 0;       // Added to that of its requests; higher ones begin first.
};

// What a generation took, for the log and for limits of keys.
struct Report {
  std::string model = {};
  std::int64_t prompt_tokens = 0;
  std::int64_t cached_tokens = 0;  // Of the prompt's.
  std::int64_t generated_tokens = 0;
  double first_token_seconds = 0.0;  // The first choice's; 0: there is none.
  double seconds = 0.0;              // All of it took.
  std::string finish = {};           // "stop", "length", "cancelled" or "failed".
};

}  // namespace saker::server::http
