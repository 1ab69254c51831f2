// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/options/request_option.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <utility>

namespace saker::engine {
namespace {

constexpr std::array<std::string_view, 13> kKinds{
    "integer",
    "number",
    "flag",
    "text",
    "texts",
    "object",
    "integer_or_auto",
    "switch",
    "path",
    "json",
    "schema",
    "text_file",
    "list"
};

constexpr std::array<std::pair<std::string_view, bool Doors::*>, 5> kDoors{{
    {"run", &Doors::run},
    {"generate", &Doors::generate},
    {"record", &Doors::record},
    {"setting", &Doors::setting},
    {"keyword", &Doors::keyword},
}};

Json end_of_range(double end) {
  return std::isfinite(end) ? Json(end) : Json();
}

Json row_of(const RequestOption& option) {
  Json aliases = Json::array();
  for (const std::string_view name : option.other_names()) {
    aliases.push_back(name);
  }
  Json doors = Json::array();
  for (const auto& [name, door] : kDoors) {
    if (option.doors.*door) {
      doors.push_back(name);
    }
  }
  return {
      {"name", option.name},
      {"aliases", aliases},
      {"kind", kKinds[static_cast<std::size_t>(option.kind)]},
      {"group", option.group},
      {"help", option.help},
      {"program_help", option.program_help.empty() ? option.help : option.program_help},
      {"fallback", option.fallback},
      {"values", option.values},
      {"low", end_of_range(option.range.low)},
      {"high", end_of_range(option.range.high)},
      {"doors", doors},
  };
}

}  // namespace

Json option_table() {
  Json table = Json::array();
  for (const RequestOption& option : request_options()) {
    table.push_back(row_of(option));
  }
  return table;
}

}  // namespace saker::engine
