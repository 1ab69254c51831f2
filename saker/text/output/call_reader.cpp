// SPDX-License-Identifier: Apache-2.0
#include "saker/text/output/call_reader.h"

#include "saker/text/output/value_reader.h"

#include <algorithm>
#include <utility>

namespace saker::text {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) {
    text.remove_prefix(1);
  }
  while (!text.empty() && is_blank(text.back())) {
    text.remove_suffix(1);
  }
  return text;
}

MarkerChoice::MarkerChoice(std::vector<std::string_view> markers) : markers_(std::move(markers)) {
  for (std::string_view& marker : markers_) {
    marker = trimmed(marker);
  }
}

MarkerChoice::Match MarkerChoice::feed(char byte) {
  if (held_.empty() && is_blank(byte)) {
    return Match::kMore;
  }
  held_ += byte;
  bool may_match = false;
  for (const std::string_view marker : markers_) {
    if (marker == held_) {
      return Match::kWhole;
    }
    may_match = may_match || marker.starts_with(held_);
  }
  return may_match ? Match::kMore : Match::kNone;
}

std::size_t MarkerChoice::take() {
  const auto found = std::ranges::find(markers_, std::string_view(held_));
  const auto index = static_cast<std::size_t>(found - markers_.begin());
  held_.clear();
  return index;
}

bool MarkerChoice::is_empty() const {
  return std::ranges::all_of(markers_, &std::string_view::empty);
}

WrittenName read_name(std::string_view text, const CallFormat& format) {
  WrittenName written;
  text = trimmed(text);
  if (!format.id_open.empty()) {
    if (const auto at = text.find(format.id_open); at != std::string_view::npos) {
      written.id = trimmed(text.substr(at + format.id_open.size()));
      text = trimmed(text.substr(0, at));
    }
  }
  if (format.has_numbered_names) {
    constexpr std::string_view kScope = "functions.";
    const auto colon = text.rfind(':');
    if (colon != std::string_view::npos) {
      written.id = text;
      text = text.substr(0, colon);
    }
    text.remove_prefix(text.starts_with(kScope) ? kScope.size() : 0);
  }
  written.name = text;
  return written;
}

std::unique_ptr<CallReader> make_call_reader(
    const CallFormat& format, CallSink& sink, bool is_call
) {
  switch (format.shape) {
    case CallShape::kObjects:
      return make_objects_reader(format, sink);
    case CallShape::kNamed:
      return make_named_reader(format, sink, is_call);
    case CallShape::kTagged:
      return make_tagged_reader(format, sink, is_call);
  }
  return nullptr;
}

}  // namespace saker::text
