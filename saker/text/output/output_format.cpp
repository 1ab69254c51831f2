// SPDX-License-Identifier: Apache-2.0
#include "saker/text/output/output_format.h"

#include "saker/text/output/format_table.h"

#include <algorithm>
#include <utility>

namespace saker::text {

const OutputFormat& plain_format() {
  static const OutputFormat kFormat{.reasoning = all_reasoning_markers()};
  return kFormat;
}

const std::vector<OutputFormat>& known_formats() {
  static const std::vector<OutputFormat> kFormats = [] {
    std::vector<OutputFormat> formats = make_format_table();
    for (OutputFormat& format : formats) {
      // A model may write others' markers too; its own come first.
      for (ReasoningMarkers& markers : all_reasoning_markers()) {
        const bool is_known =
            std::ranges::find(format.reasoning, markers.open, &ReasoningMarkers::open) !=
            format.reasoning.end();
        if (!is_known) {
          format.reasoning.push_back(std::move(markers));
        }
      }
    }
    return formats;
  }();
  return kFormats;
}

const OutputFormat* known_format(std::string_view name) {
  const auto found = std::ranges::find(known_formats(), name, &OutputFormat::name);
  return found == known_formats().end() ? nullptr : &*found;
}

}  // namespace saker::text
