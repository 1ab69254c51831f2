// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/options/checks.h"

#include "saker/base/utf8.h"
#include "saker/cli/options/command_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace saker::cli {
namespace {

constexpr std::size_t kQuoted = 40;

bool is_within(std::string_view text, std::int64_t low, std::int64_t high) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= low &&
         number <= high;
}

std::string list(const std::vector<std::string>& names) {
  if (names.size() < 2) {
    return names.empty() ? std::string() : names.front();
  }
  const std::vector<std::string> first(names.begin(), names.end() - 1);
  return fmt::format("{} or {}", fmt::join(first, ", "), names.back());
}

}  // namespace

CLI::Validator between(std::int64_t low, std::int64_t high) {
  const auto check = [low, high](const std::string& text) {
    return is_within(text, low, high)
               ? std::string()
               : fmt::format("got {}, expected {} to {}", quote(text, kQuoted), low, high);
  };
  return {check, ""};
}

CLI::Validator at_least(std::int64_t low) {
  const auto check = [low](const std::string& text) {
    return is_within(text, low, std::numeric_limits<std::int32_t>::max())
               ? std::string()
               : fmt::format(
                     "got {}, expected an integer of at least {}", quote(text, kQuoted), low
                 );
  };
  return {check, ""};
}

CLI::Validator one_of(std::vector<std::string> words) {
  const auto check = [words = std::move(words)](const std::string& text) {
    return std::ranges::find(words, text) != words.end()
               ? std::string()
               : fmt::format("got {}, expected {}", quote(text, kQuoted), list(words));
  };
  return {check, ""};
}

void require_one(std::string_view what, std::initializer_list<const CLI::Option*> options) {
  std::vector<std::string> all;
  std::vector<std::string> given;
  for (const CLI::Option* option : options) {
    const std::string name =
        option->get_snames().empty() ? shown_name(*option) : "-" + option->get_snames().front();
    all.push_back(fmt::format("{} {}", name, option->get_type_name()));
    if (option->count() > 0) {
      given.push_back(name);
    }
  }
  if (given.empty()) {
    throw CLI::RequiredError(fmt::format("{}: {}", what, list(all)));
  }
  if (given.size() > 1) {
    throw CLI::ExcludesError(given[0], given[1]);
  }
}

}  // namespace saker::cli
