// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/json_lines.h"

#include "saker/cli/output.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>

namespace saker::cli {

JsonLines::JsonLines(const std::filesystem::path& path)
    : path_(path), file_(path, std::ios::binary) {
  const int reason = file_.is_open() ? EISDIR : errno;
  require(
      file_.is_open() && !std::filesystem::is_directory(path),
      ErrorCode::kNotFound,
      "{}: can't be opened: {}",
      path.string(),
      std::strerror(reason)
  );
}

std::optional<std::string> JsonLines::next() {
  std::streambuf& buffer = *file_.rdbuf();
  constexpr int kEnd = std::char_traits<char>::eof();
  for (int c = buffer.sbumpc(); c != kEnd; c = buffer.sbumpc()) {
    ++line_;
    ++position_;
    std::string line;
    bool blank = true;
    for (; c != kEnd && c != '\n'; c = buffer.sbumpc()) {
      require(
          line.size() < kMaxTextBytes,
          ErrorCode::kInvalidArgument,
          "{}: line is longer than the {} MiB that are read at most",
          where(),
          kMaxTextBytes >> 20
      );
      ++position_;
      line.push_back(static_cast<char>(c));
      blank = blank && (c == ' ' || c == '\t' || c == '\r');
    }
    if (!blank) {
      return line;
    }
    if (c == kEnd) {
      break;
    }
  }
  return std::nullopt;
}

std::string JsonLines::where() const {
  return fmt::format("{}:{}", path_.string(), line_);
}

Json record_error(const Json& id, const Error& error) {
  return with_id(
      id, {{"error", {{"code", error_code_name(error.code())}, {"message", error.what()}}}}
  );
}

Json with_id(const Json& id, const Json& answer) {
  Json json = Json::object();
  if (!id.is_discarded()) {
    json["id"] = id;
  }
  json.update(answer);
  return json;
}

}  // namespace saker::cli
