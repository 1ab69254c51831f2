// SPDX-License-Identifier: Apache-2.0
#include "saker/server/http/message.h"

#include <algorithm>

namespace saker::server::http {
namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

bool same_name(std::string_view left, std::string_view right) {
  return std::ranges::equal(left, right, {}, lower, lower);
}

bool is_header_value(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

std::string_view Request::header(std::string_view name) const {
  const auto found =
      std::ranges::find_if(headers, [&](const Header& one) { return same_name(one.first, name); });
  return found == headers.end() ? std::string_view() : std::string_view(found->second);
}

int Request::count(std::string_view name) const {
  return static_cast<int>(std::ranges::count_if(headers, [&](const Header& one) {
    return same_name(one.first, name);
  }));
}

}  // namespace saker::server::http
