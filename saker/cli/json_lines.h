// SPDX-License-Identifier: Apache-2.0
#pragma once

// JSON lines files: one record a line, blank lines skipped, lines bounded.

#include "saker/base/error.h"
#include "saker/base/json.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

namespace saker::cli {

class JsonLines {
 public:
  // Throws kNotFound.
  explicit JsonLines(const std::filesystem::path& path);

  // The next record's text; none at the end. Throws kInvalidArgument for a line above the bound.
  std::optional<std::string> next();

  // "FILE:LINE" of the last record.
  std::string where() const;

  int line() const { return line_; }

  // Bytes read so far.
  std::uint64_t position() const { return position_; }

 private:
  std::filesystem::path path_;
  std::ifstream file_;
  int line_ = 0;
  std::uint64_t position_ = 0;
};

// The answer to a record that failed: {"id", "error": {"code", "message"}}.
Json record_error(const Json& id, const Error& error);

// `answer` with the record's id, when it has one, in front.
Json with_id(const Json& id, const Json& answer);

}  // namespace saker::cli
