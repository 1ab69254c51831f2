// SPDX-License-Identifier: Apache-2.0
#include "saker/server/spans/span.h"

#include "saker/base/json/json_numbers.h"

#include <fmt/format.h>

#include <utility>

namespace saker::server::spans {
namespace {

// Integers of 64 bits are texts in JSON of protocol buffers.
Json value_json(const Json& value) {
  if (value.is_boolean()) {
    return {{"boolValue", value}};
  }
  if (value.is_number_integer()) {
    return {{"intValue", fmt::to_string(value.get<std::int64_t>())}};
  }
  if (value.is_number()) {
    return {{"doubleValue", value}};
  }
  if (value.is_array()) {
    Json values = Json::array();
    for (const Json& one : value) {
      values.push_back(value_json(one));
    }
    return {{"arrayValue", {{"values", std::move(values)}}}};
  }
  return {{"stringValue", value}};
}

Json attributes_json(const Json& attributes) {
  Json list = Json::array();
  for (const auto& [key, value] : attributes.items()) {
    list.push_back({{"key", key}, {"value", value_json(value)}});
  }
  return list;
}

Json span_json(const Span& span) {
  constexpr int kError = 2;
  Json json = {
      {"traceId", span.trace},
      {"spanId", span.id},
      {"name", span.name},
      {"kind", static_cast<int>(span.kind)},
      {"startTimeUnixNano", fmt::to_string(span.start_ns)},
      {"endTimeUnixNano", fmt::to_string(span.end_ns)},
      {"attributes", attributes_json(span.attributes)},
  };
  if (!span.parent.empty()) {
    json["parentSpanId"] = span.parent;
  }
  json["status"] =
      span.error.empty() ? Json::object() : Json{{"code", kError}, {"message", span.error}};
  return json;
}

}  // namespace

std::string otlp_json(const Json& resource, const std::vector<Span>& spans) {
  Json list = Json::array();
  for (const Span& span : spans) {
    list.push_back(span_json(span));
  }
  const Json scope = {{"name", "saker"}, {"version", SAKER_VERSION}};
  const Json of_scope = {{"scope", scope}, {"spans", std::move(list)}};
  const Json of_resource = {
      {"resource", {{"attributes", attributes_json(resource)}}},
      {"scopeSpans", Json::array({of_scope})},
  };
  return write_json({{"resourceSpans", Json::array({of_resource})}});
}

}  // namespace saker::server::spans
