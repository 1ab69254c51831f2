// SPDX-License-Identifier: Apache-2.0
#include "saker/server/turns/fields.h"

#include "saker/base/error.h"
#include "saker/base/utf8.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <utility>

namespace saker::server {
namespace {

// True the first time that a name is met; false once many are known, so that nobody fills the log.
bool is_new(const std::string& name) {
  constexpr std::size_t kMost = 1000;
  static std::mutex mutex;
  static std::set<std::string> names;
  const std::lock_guard lock(mutex);
  return names.size() < kMost && names.insert(name).second;
}

bool asks_for_nothing(const Json& value) {
  return value.is_null() || value == false || value == 0 || value == "" ||
         (value.is_array() && value.empty()) || (value.is_object() && value.empty());
}

}  // namespace

std::string_view kind_of(const Json& value) {
  if (value.is_null()) {
    return "null";
  }
  if (value.is_boolean()) {
    return "a boolean";
  }
  if (value.is_number()) {
    return "a number";
  }
  if (value.is_string()) {
    return "a string";
  }
  return value.is_array() ? "a list" : "an object";
}

Json parse_body(const std::string& body) {
  try {
    require_utf8(body, "the body");
    return parse_json(body, "the body", RepeatedKeys::kLastWins);
  } catch (const Error& error) {
    throw ApiError(400, error.what()).with_code("invalid_json");
  }
}

Fields::Fields(const Json& object, std::string path) : object_(object), path_(std::move(path)) {
  if (!object.is_object() && path_.empty()) {
    throw ApiError(400, fmt::format("the body: expected an object, got {}", kind_of(object)));
  }
  if (!object.is_object()) {
    throw bad_field(path_, "expected an object, got {}", kind_of(object));
  }
}

std::string Fields::path_of(std::string_view name) const {
  return path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
}

const Json* Fields::find(std::string_view name) {
  known_.emplace(name);
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void Fields::fail(std::string_view name, std::string_view reason) const {
  throw bad_field(path_of(name), "{}", reason);
}

std::optional<std::int64_t> Fields::integer(
    std::string_view name, std::int64_t low, std::int64_t high
) {
  const Json* found = find(name);
  if (found == nullptr) {
    return std::nullopt;
  }
  const bool is_whole = found->is_number_float() && std::isfinite(found->get<double>()) &&
                        std::abs(found->get<double>()) < 9e15 &&
                        std::floor(found->get<double>()) == found->get<double>();
  if (!found->is_number_integer() && !is_whole) {
    throw bad_field(path_of(name), "expected an integer, got {}", describe_json(*found));
  }
  const bool is_too_large =
      found->is_number_unsigned() &&
      found->get<std::uint64_t>() >
          static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const auto value = is_too_large ? std::numeric_limits<std::int64_t>::max()
                     : is_whole   ? static_cast<std::int64_t>(found->get<double>())
                                  : found->get<std::int64_t>();
  if (is_too_large || value < low || value > high) {
    throw bad_field(
        path_of(name), "expected an integer from {} to {}, got {}", low, high, describe_json(*found)
    );
  }
  return value;
}

std::optional<double> Fields::number(std::string_view name, double low, double high) {
  const Json* found = find(name);
  if (found == nullptr) {
    return std::nullopt;
  }
  if (!found->is_number()) {
    throw bad_field(path_of(name), "expected a number, got {}", describe_json(*found));
  }
  const auto value = found->get<double>();
  if (!(value >= low && value <= high)) {
    throw bad_field(
        path_of(name), "expected a number from {} to {}, got {}", low, high, describe_json(*found)
    );
  }
  return value;
}

std::optional<bool> Fields::flag(std::string_view name) {
  const Json* found = find(name);
  if (found == nullptr) {
    return std::nullopt;
  }
  if (!found->is_boolean()) {
    throw bad_field(path_of(name), "expected true or false, got {}", describe_json(*found));
  }
  return found->get<bool>();
}

std::optional<std::string> Fields::text(std::string_view name) {
  const Json* found = find(name);
  if (found == nullptr) {
    return std::nullopt;
  }
  if (!found->is_string()) {
    throw bad_field(path_of(name), "expected a string, got {}", describe_json(*found));
  }
  return found->get<std::string>();
}

std::vector<std::string> Fields::texts(std::string_view name) {
  const Json* found = find(name);
  if (found == nullptr) {
    return {};
  }
  if (found->is_string()) {
    return {found->get<std::string>()};
  }
  const bool are_texts = found->is_array() && std::ranges::all_of(*found, [](const Json& one) {
                           return one.is_string();
                         });
  if (!are_texts) {
    throw bad_field(
        path_of(name), "expected a string or a list of strings, got {}", describe_json(*found)
    );
  }
  return found->get<std::vector<std::string>>();
}

const Json* Fields::object(std::string_view name) {
  const Json* found = find(name);
  if (found != nullptr && !found->is_object()) {
    throw bad_field(path_of(name), "expected an object, got {}", describe_json(*found));
  }
  return found;
}

const Json* Fields::list(std::string_view name) {
  const Json* found = find(name);
  if (found != nullptr && !found->is_array()) {
    throw bad_field(path_of(name), "expected a list, got {}", describe_json(*found));
  }
  return found;
}

const Json& Fields::required(std::string_view name) {
  const Json* found = find(name);
  if (found == nullptr) {
    throw ApiError(400, path_of(name) + ": is missing")
        .with_param(path_of(name))
        .with_code("missing_required_parameter");
  }
  return *found;
}

void Fields::accept(std::initializer_list<std::string_view> names) {
  known_.insert(names.begin(), names.end());
}

void Fields::refuse(std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    const Json* found = find(name);
    if (found != nullptr && !asks_for_nothing(*found)) {
      throw ApiError(400, path_of(name) + ": is not supported by this server")
          .with_param(path_of(name))
          .with_code("unsupported_parameter");
    }
  }
}

void Fields::log_unknown(std::string_view dialect) const {
  constexpr std::size_t kMostNames = 100;
  std::size_t count = 0;
  for (const auto& [name, _] : object_.items()) {
    if (++count > kMostNames) {
      return;
    }
    if (!known_.contains(name) && is_new(fmt::format("{} {}", dialect, name.substr(0, 64)))) {
      spdlog::warn("{}: the field {} is unknown and ignored", dialect, quote(path_of(name), 64));
    }
  }
}

}  // namespace saker::server
