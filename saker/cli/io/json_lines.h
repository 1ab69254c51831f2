// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads JSON lines: one record per line; blank lines are skipped, and the length of a line is
// limited. Pipes and devices are read as data arrives.

#include "saker/base/error.h"
#include "saker/base/json/json.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace saker::cli {

class JsonLines {
 public:
  // Throws kNotFound.
  explicit JsonLines(const std::filesystem::path& path);
  JsonLines(const JsonLines&) = delete;
  JsonLines& operator=(const JsonLines&) = delete;
  ~JsonLines();

  // The next record's text; empty at the end. Throws kInvalidArgument for a line above the limit,
  // kNotFound if reading fails.
  std::optional<std::string> next();

  // "FILE:LINE" of the last record.
  std::string where() const;

  int line() const { return line_; }

  // A warning where the file has ended without a record.
  void warn_if_empty() const;

  // Bytes of the lines so far.
  std::uint64_t position() const { return position_; }

 private:
  // True if there are unread bytes in the buffer, or if reading gave more.
  bool fill();
  // The next line without its end; empty at the end of the file.
  std::optional<std::string> take_line();

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::unique_ptr<char[]> buffer_;
  std::string_view rest_;  // Unread part of the buffer.
  int line_ = 0;
  bool is_empty_ = true;  // No record so far.
  std::uint64_t position_ = 0;
};

// The answer to a record that failed: {"id", "error": {"code", "message"}}.
Json record_error(const Json& id, const Error& error);

// `answer` with the record's id, if it has one, in front.
Json with_id(const Json& id, const Json& answer);

}  // namespace saker::cli
