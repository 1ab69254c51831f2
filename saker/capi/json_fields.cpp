// SPDX-License-Identifier: Apache-2.0
#include "saker/capi/json_fields.h"

#include "saker/base/error.h"
#include "saker/capi/status.h"
#include "saker/engine/options/option_values.h"

#include <fmt/ranges.h>

#include <utility>

namespace saker::capi {

using engine::OptionKind;

JsonFields::JsonFields(const char* text, std::string_view what) : what_(what) {
  const std::string_view given = text_or_empty(text, what);
  if (given.empty()) {
    return;
  }
  object_ = parse_json(given, what, RepeatedKeys::kRefuse);
  require(
      object_.is_object(),
      ErrorCode::kInvalidArgument,
      "{}: got {}, expected an object",
      what,
      object_.type_name()
  );
}

std::optional<Json> JsonFields::take(std::string_view key, OptionKind kind) {
  taken_.emplace_back(key);
  const auto found = object_.find(std::string(key));
  if (found == object_.end()) {
    return std::nullopt;
  }
  Json value = engine::in_kind(*found, kind);
  object_.erase(found);
  if (value.is_null()) {
    return std::nullopt;
  }
  require(
      engine::has_kind(value, kind),
      ErrorCode::kInvalidArgument,
      "{}: got {}, expected {}",
      key,
      engine::describe_value(value, kind),
      engine::kind_name(kind)
  );
  return value;
}

std::optional<bool> JsonFields::take_flag(std::string_view key) {
  const auto value = take(key, OptionKind::kFlag);
  return value ? std::optional(value->get<bool>()) : std::nullopt;
}

std::optional<std::string> JsonFields::take_text(std::string_view key) {
  const auto value = take(key, OptionKind::kText);
  return value ? std::optional(value->get<std::string>()) : std::nullopt;
}

std::optional<double> JsonFields::take_number(std::string_view key, double low) {
  const auto value = take(key, OptionKind::kNumber);
  require(
      !value || value->get<double>() >= low,
      ErrorCode::kInvalidArgument,
      "{}: got {}, expected {} or more",
      key,
      value ? describe_json(*value) : std::string(),
      low
  );
  return value ? std::optional(value->get<double>()) : std::nullopt;
}

std::optional<std::int64_t> JsonFields::take_integer(
    std::string_view key, std::int64_t low, std::int64_t high
) {
  const auto value = take(key, OptionKind::kInteger);
  if (!value) {
    return std::nullopt;
  }
  // Large unsigned values compare as such.
  require(
      *value >= low && *value <= high,
      ErrorCode::kInvalidArgument,
      "{}: got {}, expected an integer from {} to {}",
      key,
      describe_json(*value),
      low,
      high
  );
  return value->get<std::int64_t>();
}

void JsonFields::require_all_taken() const {
  require(
      object_.empty(),
      ErrorCode::kInvalidArgument,
      "{}: unknown option {:?}, expected one of {}",
      what_,
      object_.empty() ? std::string() : object_.begin().key(),
      fmt::join(taken_, ", ")
  );
}

}  // namespace saker::capi
