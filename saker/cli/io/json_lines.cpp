// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/io/json_lines.h"

#include "saker/base/error.h"
#include "saker/cli/io/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace saker::cli {
namespace {

// Small enough to stay in a core's cache until its lines are consumed.
constexpr std::size_t kBufferBytes = std::size_t{256} << 10;

bool is_folder(int descriptor) {
  struct stat status{};
  return ::fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode);
}

bool is_blank(std::string_view line) {
  return std::all_of(line.begin(), line.end(), [](char c) {
    return c == ' ' || c == '\t' || c == '\r';
  });
}

}  // namespace

JsonLines::JsonLines(const std::filesystem::path& path)
    : path_(path),
      descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)),
      buffer_(std::make_unique<char[]>(kBufferBytes)) {
  const int reason = descriptor_ < 0 ? errno : is_folder(descriptor_) ? EISDIR : 0;
  if (reason != 0 && descriptor_ >= 0) {
    ::close(descriptor_);
  }
  require(
      reason == 0,
      ErrorCode::kNotFound,
      "{}: can't be opened: {}",
      path.string(),
      system_reason(reason)
  );
}

JsonLines::~JsonLines() {
  ::close(descriptor_);
}

bool JsonLines::fill() {
  if (!rest_.empty()) {
    return true;
  }
  ssize_t count = -1;
  do {
    count = ::read(descriptor_, buffer_.get(), kBufferBytes);
  } while (count < 0 && errno == EINTR);
  if (count < 0) {
    const int reason = errno;
    throw Error(
        ErrorCode::kNotFound,
        fmt::format("{}: can't be read: {}", path_.string(), system_reason(reason))
    );
  }
  rest_ = {buffer_.get(), static_cast<std::size_t>(count)};
  return count > 0;
}

std::optional<std::string> JsonLines::take_line() {
  if (!fill()) {
    return std::nullopt;
  }
  ++line_;
  std::string line;
  while (fill()) {
    const std::size_t end = rest_.find('\n');
    const std::string_view piece = rest_.substr(0, end);
    if (piece.size() > kMaxTextBytes - line.size()) {
      throw Error(  // `require` would build the place's text for each piece.
          ErrorCode::kInvalidArgument,
          fmt::format(
              "{}: line is longer than the {} MiB that are read at most",
              where(),
              kMaxTextBytes >> 20
          )
      );
    }
    line += piece;
    rest_.remove_prefix(std::min(piece.size() + 1, rest_.size()));
    if (end != std::string_view::npos) {
      position_ += line.size() + 1;
      return line;
    }
  }
  position_ += line.size();
  return line;
}

std::optional<std::string> JsonLines::next() {
  while (auto line = take_line()) {
    if (!is_blank(*line)) {
      is_empty_ = false;
      return line;
    }
  }
  return std::nullopt;
}

void JsonLines::warn_if_empty() const {
  if (is_empty_) {
    spdlog::warn("{}: holds no record, expected one JSON object a line", path_.string());
  }
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
