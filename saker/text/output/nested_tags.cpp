// SPDX-License-Identifier: Apache-2.0
#include "saker/text/output/nested_tags.h"

#include "saker/text/output/call_reader.h"

#include <cstddef>
#include <optional>

namespace saker::text {
namespace {

constexpr int kMaxTagNesting = 32;
constexpr std::string_view kItemTag = "item";

struct Element {
  std::string_view name;
  std::string_view content;
  std::string_view rest;  // Behind the element.
};

// The end of the element whose content begins at `from`: the closing tag of its own level.
std::size_t find_close(std::string_view text, std::string_view open, std::string_view close) {
  std::size_t at = 0;
  for (int depth = 0;;) {
    const std::size_t closes = text.find(close, at);
    if (closes == std::string_view::npos) {
      return closes;
    }
    const std::size_t opens = text.find(open, at);
    if (opens < closes) {
      ++depth;
      at = opens + open.size();
    } else if (depth == 0) {
      return closes;
    } else {
      --depth;
      at = closes + close.size();
    }
  }
}

std::optional<Element> first_element(std::string_view text, std::string_view prefix) {
  const std::string begin = std::string(prefix) + "<";
  const std::size_t name_end = text.find('>', begin.size());
  if (!text.starts_with(begin) || name_end == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view name = text.substr(begin.size(), name_end - begin.size());
  const std::string open = begin + std::string(name) + ">";
  const std::string close = begin + "/" + std::string(name) + ">";
  const std::string_view content = text.substr(name_end + 1);
  const std::size_t end = find_close(content, open, close);
  if (name.empty() || end == std::string_view::npos) {
    return std::nullopt;
  }
  return Element{name, content.substr(0, end), content.substr(end + close.size())};
}

std::string read(
    std::string_view text, std::string_view prefix, const ArgumentTypes& types, int depth
) {
  std::string_view rest = trimmed(text);
  std::string members;
  bool is_list = true;
  bool has_elements = false;
  while (!rest.empty() && depth < kMaxTagNesting) {
    const auto element = first_element(rest, prefix);
    if (!element) {
      break;
    }
    is_list = has_elements ? is_list : element->name == kItemTag;
    members += has_elements ? ", " : "";
    has_elements = true;
    members += is_list ? "" : json_string(element->name) + ": ";
    members += read(element->content, prefix, any_type(), depth + 1);
    rest = trimmed(element->rest);
  }
  if (!has_elements || !rest.empty()) {
    return typed_argument(text, types);
  }
  return is_list ? "[" + members + "]" : "{" + members + "}";
}

}  // namespace

std::string read_nested_tags(
    std::string_view text, std::string_view prefix, const ArgumentTypes& types
) {
  return read(text, prefix, types, 0);
}

}  // namespace saker::text
