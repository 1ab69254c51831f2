// SPDX-License-Identifier: Apache-2.0
#pragma once

// Fields of JSON objects, read for display: a strange value reads as 0 or empty here; the loader
// refuses it.

#include "saker/base/json/json.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace saker::load {

inline std::int64_t lenient_int(const Json& object, std::string_view key) {
  const auto found = object.find(std::string(key));
  return found != object.end() && found->is_number_integer() ? json_int(object, key, 0) : 0;
}

inline std::string lenient_string(const Json& object, std::string_view key) {
  const auto found = object.find(std::string(key));
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

inline double lenient_double(const Json& object, std::string_view key) {
  const auto found = object.find(std::string(key));
  return found != object.end() && found->is_number() ? found->get<double>() : 0.0;
}

}  // namespace saker::load
