// SPDX-License-Identifier: Apache-2.0
#pragma once

// The members of a JSON object that a program passes, strictly read. One thread at a time.

#include "saker/base/json/json.h"
#include "saker/engine/options/request_option.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace saker::capi {

class JsonFields {
 public:
  // `text` null or empty: an object without members. Throws kCorruptData for text that is no JSON,
  // kInvalidArgument for other values.
  JsonFields(const char* text, std::string_view what);

  // Takes a member out; none if it is absent or null. Throws kInvalidArgument for another kind.
  std::optional<Json> take(std::string_view key, engine::OptionKind kind);
  // As take().
  std::optional<bool> take_flag(std::string_view key);
  std::optional<std::string> take_text(std::string_view key);
  std::optional<double> take_number(std::string_view key, double low);
  std::optional<std::int64_t> take_integer(
      std::string_view key, std::int64_t low, std::int64_t high
  );

  // The members that nobody has taken.
  const Json& rest() const { return object_; }

  // Throws kInvalidArgument if there are any.
  void require_all_taken() const;

 private:
  std::string_view what_;
  Json object_ = Json::object();
  std::vector<std::string> taken_;  // For messages.
};

}  // namespace saker::capi
