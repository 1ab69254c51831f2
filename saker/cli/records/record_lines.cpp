// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/records/record_lines.h"

#include <string>

namespace saker::cli {

std::optional<RecordLine> RecordLines::next() {
  while (const std::optional<std::string> line = lines_.next()) {
    RecordLine record{.line = lines_.line()};
    try {
      record.json = parse_json(*line, lines_.where());
      if (record.json.is_object() && record.json.contains("id")) {
        record.id = record.json["id"];
      }
    } catch (const Error& error) {
      record.error = error;
    }
    if (shard_.holds(record.id, count_++)) {
      return record;
    }
  }
  return std::nullopt;
}

}  // namespace saker::cli
