// SPDX-License-Identifier: Apache-2.0
#pragma once

// The header `traceparent` of W3C's Trace Context: the trace that a request belongs to.

#include <optional>
#include <string>
#include <string_view>

namespace saker::server {

struct TraceContext {
  std::string trace;   // 32 hexadecimal digits.
  std::string parent;  // 16: the client's span.
  std::string flags;   // 2.

  // The header with this span in place of the client's.
  std::string header(std::string_view span) const;
};

// None for a header that the specification calls invalid, and for an empty one.
std::optional<TraceContext> read_trace_context(std::string_view header);

// True if the client's span is sampled.
bool is_sampled(const TraceContext& context);

// 16 hexadecimal digits, not all 0.
std::string new_span();

// 32 of them.
std::string new_trace();

}  // namespace saker::server
