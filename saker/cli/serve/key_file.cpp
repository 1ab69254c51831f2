// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/serve/key_file.h"

#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <utility>

namespace saker::cli {
namespace {

constexpr std::array<std::string_view, 5> kKeyMembers{
    "name", "key", "class", "requests_per_minute", "tokens_per_minute"
};
// Requests of one class begin before all of a lower one, whatever their own priority is.
constexpr int kClassStep = 10'000'000;
constexpr std::array<std::pair<std::string_view, int>, 3> kClasses{
    {{"interactive", kClassStep}, {"normal", 0}, {"batch", -kClassStep}}
};

int priority_of(const std::string& name) {
  const auto* found = std::ranges::find(kClasses, name, &decltype(kClasses)::value_type::first);
  require(
      found != kClasses.end(),
      ErrorCode::kInvalidArgument,
      "class: got {}, expected interactive, normal or batch",
      quote(name)
  );
  return found->second;
}

std::int64_t limit_of(const Json& given, std::string_view member, std::int64_t most) {
  const std::int64_t limit = json_int(given, member, 0);
  require(
      limit >= 0 && limit <= most,
      ErrorCode::kInvalidArgument,
      "{}: got {}, expected 0 to {}",
      member,
      limit,
      most
  );
  return limit;
}

server::http::ApiKey read_key(const Json& given) {
  require(given.is_object(), ErrorCode::kInvalidArgument, "expected an object");
  for (const auto& [member, _] : given.items()) {
    require(
        std::ranges::find(kKeyMembers, member) != kKeyMembers.end(),
        ErrorCode::kInvalidArgument,
        "unknown member {}",
        quote(member)
    );
  }
  constexpr std::int64_t kMostRequests = std::numeric_limits<int>::max();
  constexpr std::int64_t kMostTokens = 1'000'000'000'000;
  server::http::ApiKey key{
      .name = json_string(given, "name", ""),
      .key = json_string(given, "key", ""),
      .priority = priority_of(json_string(given, "class", "normal")),
      .requests_per_minute =
          static_cast<int>(limit_of(given, "requests_per_minute", kMostRequests)),
      .tokens_per_minute = limit_of(given, "tokens_per_minute", kMostTokens),
  };
  require(
      !key.name.empty() && !key.key.empty(),
      ErrorCode::kInvalidArgument,
      "expected a name and a key"
  );
  return key;
}

}  // namespace

std::vector<server::http::ApiKey> parse_api_keys(std::string_view text, const std::string& what) {
  const Json given = parse_json(text, what);
  require(
      given.is_array() && !given.empty(),
      ErrorCode::kInvalidArgument,
      "{}: expected a list of keys",
      what
  );
  std::vector<server::http::ApiKey> keys;
  std::set<std::string> names;
  for (std::size_t i = 0; i < given.size(); ++i) {
    try {
      keys.push_back(read_key(given[i]));
      require(
          names.insert(keys.back().name).second,
          ErrorCode::kInvalidArgument,
          "another key has the name {}",
          quote(keys.back().name)
      );
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}[{}]: {}", what, i, error.what()));
    }
  }
  return keys;
}

}  // namespace saker::cli
