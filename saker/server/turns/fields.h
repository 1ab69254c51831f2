// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads the members of a JSON object strictly. A member of another type or beyond its range is a
// 400 that names it, and so is a member that can't be honoured. Null counts as absent. Members that
// nobody asked for are unknown: they are ignored, and logged once. One thread at a time.

#include "saker/base/json/json.h"
#include "saker/server/turns/api_error.h"

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace saker::server {

// The bound of members that become an int.
inline constexpr int kMaxInt = std::numeric_limits<int>::max();

class Fields {
 public:
  // `path` is the object's own name in messages: "", or "messages[2]". Throws a 400 unless it is an
  // object. REQUIRES: `object` outlives it.
  explicit Fields(const Json& object, std::string path = {});

  // The member; null if it is absent.
  const Json* find(std::string_view name);

  bool has(std::string_view name) { return find(name) != nullptr; }

  std::optional<std::int64_t> integer(
      std::string_view name,
      std::int64_t low = std::numeric_limits<std::int64_t>::min(),
      std::int64_t high = std::numeric_limits<std::int64_t>::max()
  );
  std::optional<double> number(std::string_view name, double low, double high);
  std::optional<bool> flag(std::string_view name);
  std::optional<std::string> text(std::string_view name);
  // A text or a list of texts; empty if it is absent.
  std::vector<std::string> texts(std::string_view name);
  const Json* object(std::string_view name);
  const Json* list(std::string_view name);

  // Throws a 400 if the member is absent.
  const Json& required(std::string_view name);
  // Throws a 400 with the reason.
  [[noreturn]] void fail(std::string_view name, std::string_view reason) const;

  // Members that are known and change nothing here.
  void accept(std::initializer_list<std::string_view> names);
  // Throws a 400 if the member asks for something: it is there, and not false, 0, "" or [].
  void refuse(std::initializer_list<std::string_view> names);

  // Logs the members that nobody asked for, each name once in the life of the program.
  void log_unknown(std::string_view dialect) const;

  // The member's name with that of its object.
  std::string path_of(std::string_view name) const;

 private:
  const Json& object_;
  std::string path_;
  std::set<std::string, std::less<>> known_;
};

// A body as JSON. Throws a 400 with the place of the first mistake.
Json parse_body(const std::string& body);

// "a string", "a list" and so on, for messages.
std::string_view kind_of(const Json& value);

}  // namespace saker::server
