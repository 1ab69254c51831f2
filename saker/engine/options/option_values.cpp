// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/options/option_values.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace saker::engine {

using Kind = OptionKind;

Json as_whole(const Json& value) {
  constexpr double kExact = 9007199254740992.0;  // Above this doubles can't tell integers apart.
  if (!value.is_number_float()) {
    return value;
  }
  const auto number = value.get<double>();
  const bool whole = std::abs(number) <= kExact && number == std::trunc(number);
  return whole ? Json(static_cast<std::int64_t>(number)) : value;
}

Json in_kind(const Json& value, Kind kind) {
  if (kind == Kind::kSwitch && (value == "on" || value == "off")) {
    return value == "on";
  }
  return kind == Kind::kInteger || kind == Kind::kIntegerOrAuto ? as_whole(value) : value;
}

bool has_kind(const Json& value, Kind kind) {
  switch (kind) {
    case Kind::kInteger:
      return value.is_number_integer();
    case Kind::kNumber:
      return value.is_number() && std::isfinite(value.get<double>());
    case Kind::kFlag:
      return value.is_boolean();
    case Kind::kText:
    case Kind::kPath:
    case Kind::kTextFile:
      return value.is_string();
    case Kind::kTexts: {
      bool texts = value.is_array();
      for (const auto& item : value) {
        texts = texts && item.is_string();
      }
      return texts || value.is_string();
    }
    case Kind::kObject:
      return value.is_object();
    case Kind::kIntegerOrAuto:
      return value.is_number_integer() || value == "auto";
    case Kind::kSwitch:
      return value.is_boolean() || value == "auto";
    case Kind::kJson:
      return true;
    case Kind::kSchema:
      return value.is_object() || value.is_boolean();
    case Kind::kList:
      return value.is_array() || value.is_null();
  }
  return false;
}

std::string describe_value(const Json& value, Kind kind) {
  if (value.is_string() && kind != Kind::kSwitch) {
    return "string " + describe_json(value);
  }
  const bool is_shown = value.is_number() || kind == Kind::kSwitch;
  return is_shown ? describe_json(value) : value.type_name();
}

std::string_view kind_name(Kind kind) {
  constexpr std::array<std::string_view, 13> kNames = {
      "an integer",
      "a number",
      "true or false",
      "a text",
      "a text or a list of texts",
      "an object",
      "an integer or \"auto\"",
      "true, false, \"on\", \"off\" or \"auto\"",
      "a text",
      "a value",
      "an object, true or false",
      "a text",
      "a list",
  };
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace saker::engine
