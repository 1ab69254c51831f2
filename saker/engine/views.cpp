// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/views.h"

#include "saker/base/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

namespace saker::engine {
namespace {

template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != end) {
    return std::nullopt;
  }
  return value;
}

[[noreturn]] void refuse(std::string_view key) {
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format(
          "view {:?}: expected base, ft, a strength, an adapter's name, NAME@STRENGTH or "
          "null:SEED[:INIT_SCALE[:RANK_SCALE]]",
          key
      )
  );
}

const NamedAdapter& first_adapter(std::string_view key, std::span<const NamedAdapter> adapters) {
  require(
      !adapters.empty(),
      ErrorCode::kInvalidArgument,
      "view {:?} needs an adapter, and none is given",
      key
  );
  return adapters.front();
}

double finite(std::string_view key, std::optional<double> value) {
  if (!value || !std::isfinite(*value)) {
    refuse(key);
  }
  return *value;
}

double positive(std::string_view key, std::string_view what, std::string_view text) {
  const double value = finite(key, parse_number<double>(text));
  require(
      value > 0.0,
      ErrorCode::kInvalidArgument,
      "view {:?}: {} is {}, expected a positive number",
      key,
      what,
      value
  );
  return value;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) {
      return parts;
    }
    text.remove_prefix(end + 1);
  }
}

NullView parse_null(std::string_view key) {
  const std::vector<std::string_view> parts = split(key, ':');
  NullView null;
  const auto seed = parts.size() <= 4 ? parse_number<std::uint64_t>(parts[1]) : std::nullopt;
  if (!seed) {
    refuse(key);
  }
  null.seed = *seed;
  if (parts.size() > 2) {
    null.init_scale = positive(key, "init_scale", parts[2]);
  }
  if (parts.size() > 3) {
    null.rank_scale = positive(key, "rank_scale", parts[3]);
  }
  return null;
}

// Two digits, or all if two would be another number.
std::string digits(double value) {
  std::string two = fmt::format("{:.2f}", value);
  return parse_number<double>(two) == value ? two : fmt::format("{}", value);
}

std::string null_id(const NullView& null) {
  std::string id = fmt::format("null_{}", null.seed);
  if (null.init_scale != NullView().init_scale) {
    id += "_init" + digits(null.init_scale);
  }
  if (null.rank_scale != NullView().rank_scale) {
    id += "_rank" + digits(null.rank_scale);
  }
  return id;
}

}  // namespace

void check_adapter_names(std::span<const NamedAdapter> adapters) {
  for (std::size_t i = 0; i < adapters.size(); ++i) {
    const std::string& name = adapters[i].name;
    const bool has_meaning = name == "base" || name == "ft" || name.starts_with("null:") ||
                             parse_number<double>(name).has_value();
    require(
        !has_meaning && name.find_first_of("@, \t\n\v\f\r") == std::string::npos,
        ErrorCode::kInvalidArgument,
        "adapter name {:?}: expected none of base, ft, numbers and null:..., and no \"@\", comma "
        "or white space in it",
        name
    );
    const auto before = adapters.first(i);
    require(
        std::ranges::find(before, name, &NamedAdapter::name) == before.end(),
        ErrorCode::kInvalidArgument,
        "two adapters {}, expected a name of its own for each",
        name.empty() ? "have no name" : fmt::format("are named {:?}", name)
    );
  }
}

View parse_view(std::string_view key, std::span<const NamedAdapter> adapters) {
  View view{.key = std::string(key)};
  if (key == "base") {
    return view;
  }
  const std::size_t at = key.rfind('@');
  const auto named = std::ranges::find(adapters, key.substr(0, at), &NamedAdapter::name);
  if (named != adapters.end() && !named->name.empty()) {
    view.adapter = named->dir;
    view.name = named == adapters.begin() ? "" : named->name;
    if (at != std::string_view::npos) {
      view.with_strength = true;
      view.strength = finite(key, parse_number<double>(key.substr(at + 1)));
    }
    return view;
  }
  if (key.starts_with("null:")) {
    view.null = parse_null(key);
  } else if (key != "ft") {
    view.with_strength = true;
    view.strength = finite(key, parse_number<double>(key));
  }
  view.adapter = first_adapter(key, adapters).dir;
  return view;
}

std::string view_id(const View& view) {
  if (view.adapter.empty()) {
    return "base";
  }
  const bool whole = view.strength == 1.0 && !view.with_strength;
  std::string id = view.null ? null_id(*view.null)
                   : whole   ? "ft"
                             : "scaled_" + digits(view.strength);
  return view.name.empty() ? id : id + ":" + view.name;
}

}  // namespace saker::engine
