// SPDX-License-Identifier: Apache-2.0
#include "saker/base/json/json.h"

#include "saker/base/error.h"
#include "saker/base/json/json_numbers.h"
#include "saker/base/mapped_file.h"
#include "saker/base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace saker {
namespace {

// Builds the tree from the parser's events and checks the limits. Members are appended without a
// look-up, which would make large objects quadratic. Repeated keys are found by sorting when the
// object ends.
class TreeBuilder {
 public:
  using number_integer_t = Json::number_integer_t;
  using number_unsigned_t = Json::number_unsigned_t;
  using number_float_t = Json::number_float_t;
  using string_t = Json::string_t;
  using binary_t = Json::binary_t;

  TreeBuilder(std::string_view what, RepeatedKeys repeated, const NumberedText& numbers)
      : what_(what), repeated_(repeated), numbers_(numbers) {}

  bool null() { return add(Json(nullptr)); }

  bool boolean(bool value) { return add(Json(value)); }

  bool number_integer(number_integer_t value) { return add(Json(value)); }

  bool number_unsigned(number_unsigned_t value) { return add(Json(value)); }

  bool number_float(number_float_t value, const string_t& text) {
    if (const Json* number = numbers_.find(text)) {
      return add(*number);
    }
    // The parser reports an integer beyond 64 bits as a float.
    const bool is_integer = text.find_first_of(".eE") == string_t::npos;
    return add(is_integer ? json_integer(text, what_) : Json(value));
  }

  bool string(string_t& value) { return add(Json(std::move(value))); }

  bool binary(binary_t& /*value*/) { return false; }

  bool key(string_t& name) {
    auto& members = open_.back()->get_ref<Json::object_t&>();
    members.Container::emplace_back(std::move(name), Json());
    return true;
  }

  bool start_object(std::size_t /*size*/) { return begin(Json::object()); }

  bool start_array(std::size_t /*size*/) { return begin(Json::array()); }

  bool end_object() {
    settle_repeated_keys(open_.back()->get_ref<Json::object_t&>());
    open_.pop_back();
    return true;
  }

  bool end_array() {
    open_.pop_back();
    return true;
  }

  bool parse_error(
      std::size_t position, const std::string& /*token*/, const nlohmann::json::exception& error
  ) {
    // The message is "[json.exception.parse_error.101] parse error at line 1, column 2: reason".
    std::string_view text = error.what();
    const std::size_t bracket = text.find("] ");
    text.remove_prefix(bracket == std::string_view::npos ? 0 : bracket + 2);
    if (text.starts_with("parse error at ")) {
      const std::size_t colon = text.find(": ");
      text.remove_prefix(colon == std::string_view::npos ? 0 : colon + 2);
    }
    // It goes on "...; last read: '<the text's content>'; expected ...". We remove the content: a
    // link may lead to any file, whose text must not leak.
    std::string reason(text);
    const std::size_t held = reason.find("; last read: '");
    const std::size_t end = reason.rfind('\'');
    if (held != std::string::npos && end > held) {
      reason.erase(held, end + 1 - held);
    }
    const std::string detail = quote(reason, 200);
    throw Error(
        ErrorCode::kCorruptData,
        fmt::format("{}: byte {}: {}", what_, position, detail.substr(1, detail.size() - 2))
    );
  }

  Json take() { return std::move(root_); }

 private:
  using Container = std::vector<std::pair<const std::string, Json>>;

  bool add(Json value) {
    place(std::move(value));
    return true;
  }

  bool begin(Json value) {
    require(
        open_.size() < kMaxJsonDepth,
        ErrorCode::kCorruptData,
        "{}: nested deeper than {} levels",
        what_,
        kMaxJsonDepth
    );
    // Parents do not grow while a child is open, so pointers to open values stay valid.
    open_.push_back(place(std::move(value)));
    return true;
  }

  Json* place(Json value) {
    require(
        ++count_ <= kMaxJsonValues,
        ErrorCode::kCorruptData,
        "{}: more than {} values",
        what_,
        kMaxJsonValues
    );
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *open_.back();
    if (parent.is_array()) {
      auto& items = parent.get_ref<Json::array_t&>();
      items.push_back(std::move(value));
      return &items.back();
    }
    Json& slot = parent.get_ref<Json::object_t&>().back().second;
    slot = std::move(value);
    return &slot;
  }

  void settle_repeated_keys(Json::object_t& members) {
    std::vector<std::size_t> order(members.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      order[i] = i;
    }
    const Container& all = members;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const int compared = all[a].first.compare(all[b].first);
      return compared != 0 ? compared < 0 : a < b;
    });
    std::vector<bool> dropped(members.size(), false);
    bool any = false;
    for (std::size_t i = 1; i < order.size(); ++i) {
      if (all[order[i - 1]].first == all[order[i]].first) {
        require(
            repeated_ == RepeatedKeys::kLastWins,
            ErrorCode::kCorruptData,
            "{}: the key {} is given twice",
            what_,
            quote(all[order[i]].first)
        );
        dropped[order[i - 1]] = true;
        any = true;
      }
    }
    if (any) {
      drop(members, dropped);
    }
  }

  static void drop(Json::object_t& members, const std::vector<bool>& dropped) {
    Json::object_t kept;
    Container& from = members;
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (!dropped[i]) {
        kept.Container::emplace_back(from[i].first, std::move(from[i].second));
      }
    }
    members = std::move(kept);
  }

  std::string_view what_;
  RepeatedKeys repeated_;
  const NumberedText& numbers_;
  Json root_;
  std::vector<Json*> open_;
  std::size_t count_ = 0;
};

// The member, or null if it is absent or null. Throws if `object` is no object.
const Json* member(const Json& object, std::string_view key) {
  require(
      object.is_object(),
      ErrorCode::kCorruptData,
      "'{}' looked up in {}, expected an object",
      key,
      describe_json(object)
  );
  const auto found = object.find(std::string(key));
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

[[noreturn]] void fail(std::string_view key, const Json& value, std::string_view expected) {
  throw Error(
      ErrorCode::kCorruptData,
      fmt::format("'{}' is {}, expected {}", key, describe_json(value), expected)
  );
}

// The beginning of a number with many digits.
std::string cut(std::string_view digits) {
  constexpr std::size_t kShown = 40;
  return digits.size() <= kShown ? std::string(digits)
                                 : fmt::format("{}...", digits.substr(0, kShown));
}

std::int64_t to_int(std::string_view key, const Json& value, std::string_view expected) {
  // Above this a double can't tell neighbouring integers apart.
  constexpr double kExact = 9007199254740992.0;
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (number <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return static_cast<std::int64_t>(number);
    }
  } else if (value.is_number_integer()) {
    return value.get<std::int64_t>();
  } else if (value.is_number_float()) {
    const auto number = value.get<double>();
    if (std::abs(number) <= kExact && number == std::trunc(number)) {
      return static_cast<std::int64_t>(number);
    }
  }
  fail(key, value, expected);
}

}  // namespace

Json parse_json(std::string_view text, std::string_view what, RepeatedKeys repeated) {
  require(
      text.size() <= kMaxJsonBytes,
      ErrorCode::kCorruptData,
      "{}: {} bytes of JSON, expected at most {}",
      what,
      text.size(),
      kMaxJsonBytes
  );
  // The parser takes a NUL for the end of the text and would ignore the rest.
  const std::size_t nul = text.find('\0');
  if (nul != std::string_view::npos) {
    throw Error(
        ErrorCode::kCorruptData, fmt::format("{}: byte {}: a NUL is no JSON", what, nul + 1)
    );
  }
  const auto parse = [&](std::string_view plain, const NumberedText& numbers) {
    TreeBuilder builder(what, repeated, numbers);
    Json::sax_parse(plain, &builder);
    return builder.take();
  };
  try {
    return parse(text, {});
  } catch (const Error&) {
    const auto plain = with_plain_numbers(text, what);
    if (plain.numbers.empty()) {
      throw;
    }
    return parse(plain.text, plain);
  }
}

Json read_json_file(const std::filesystem::path& path) {
  const std::string what = quote_path(path);
  return parse_json(read_file(path, kMaxJsonBytes), what);
}

bool json_has(const Json& object, std::string_view key) {
  return member(object, key) != nullptr;
}

std::int64_t json_int(const Json& object, std::string_view key, std::int64_t fallback) {
  const Json* value = member(object, key);
  return value == nullptr ? fallback : to_int(key, *value, "an integer");
}

double json_double(const Json& object, std::string_view key, double fallback) {
  const Json* value = member(object, key);
  if (value == nullptr) {
    return fallback;
  }
  const auto digits = json_digits(*value);
  const double number = digits               ? std::strtod(std::string(*digits).c_str(), nullptr)
                        : value->is_number() ? value->get<double>()
                                             : std::numeric_limits<double>::quiet_NaN();
  if (!std::isfinite(number)) {
    fail(key, *value, "a finite number");
  }
  return number;
}

bool json_bool(const Json& object, std::string_view key, bool fallback) {
  const Json* value = member(object, key);
  if (value == nullptr) {
    return fallback;
  }
  if (!value->is_boolean()) {
    fail(key, *value, "true or false");
  }
  return value->get<bool>();
}

std::string json_string(const Json& object, std::string_view key, std::string_view fallback) {
  const Json* value = member(object, key);
  if (value == nullptr) {
    return std::string(fallback);
  }
  if (!value->is_string()) {
    fail(key, *value, "a string");
  }
  return value->get<std::string>();
}

std::int64_t json_int_in(
    const Json& object, std::string_view key, std::int64_t low, std::int64_t high
) {
  const std::string expected = fmt::format("an integer from {} to {}", low, high);
  const Json* value = member(object, key);
  require(value != nullptr, ErrorCode::kCorruptData, "'{}' is missing, expected {}", key, expected);
  const std::int64_t number = to_int(key, *value, expected);
  if (number < low || number > high) {
    fail(key, *value, expected);
  }
  return number;
}

std::string describe_json(const Json& value) {
  switch (value.type()) {
    case Json::value_t::object:
      return fmt::format("an object of {}", value.size());
    case Json::value_t::array:
      return fmt::format("an array of {}", value.size());
    case Json::value_t::string:
      return quote(value.get_ref<const std::string&>());
    case Json::value_t::binary:
      return cut(json_digits(value).value_or(""));
    default:
      return write_json(value);
  }
}

}  // namespace saker
