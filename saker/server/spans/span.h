// SPDX-License-Identifier: Apache-2.0
#pragma once

// Spans of OpenTelemetry: what took how long, for a trace. Plain values.

#include "saker/base/json/json.h"

#include <cstdint>
#include <string>
#include <vector>

namespace saker::server::spans {

// As OpenTelemetry numbers them.
enum class SpanKind : std::uint8_t { kInternal = 1, kServer = 2 };

struct Span {
  std::string trace;        // 32 hexadecimal digits.
  std::string id;           // 16.
  std::string parent = {};  // 16; empty: the trace begins here.
  std::string name;
  SpanKind kind = SpanKind::kInternal;
  std::int64_t start_ns = 0;  // Since 1970.
  std::int64_t end_ns = 0;
  Json attributes = Json::object();  // Texts, booleans, numbers, lists of these.
  std::string error = {};            // Empty: it went well.
};

// The body of an export by OTLP/HTTP as JSON. `resource` has attributes of the program.
std::string otlp_json(const Json& resource, const std::vector<Span>& spans);

}  // namespace saker::server::spans
