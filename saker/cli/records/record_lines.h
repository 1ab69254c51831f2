// SPDX-License-Identifier: Apache-2.0
#pragma once

// The records of a JSON lines file that belong to a shard, in order.

#include "saker/base/error.h"
#include "saker/base/json/json.h"
#include "saker/cli/io/json_lines.h"
#include "saker/cli/records/shard.h"

#include <cstdint>
#include <filesystem>
#include <optional>

namespace saker::cli {

// A line of the file, or the reason why it is no JSON.
struct RecordLine {
  Json id = Json(Json::value_t::discarded);  // Discarded: it has none.
  int line = 0;
  Json json = {};
  std::optional<Error> error = {};
};

class RecordLines {
 public:
  // Throws kNotFound.
  explicit RecordLines(const std::filesystem::path& path, Shard shard = {})
      : lines_(path), shard_(shard) {}

  // The shard's next record; empty at the end. Throws as JsonLines::next.
  std::optional<RecordLine> next();

  const JsonLines& lines() const { return lines_; }

 private:
  JsonLines lines_;
  Shard shard_;
  std::int64_t count_ = 0;  // Records so far, those of other shards too.
};

}  // namespace saker::cli
