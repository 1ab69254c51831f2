// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/records/record_output.h"

#include "saker/base/error.h"
#include "saker/base/file_lock.h"
#include "saker/cli/io/output.h"

#include <fmt/format.h>

#include <cerrno>
#include <string>
#include <system_error>

namespace saker::cli {
namespace {

void cut(const std::filesystem::path& path, std::uintmax_t size) {
  std::error_code error;
  std::filesystem::resize_file(path, size, error);
  require(!error, ErrorCode::kNotFound, "{}: can't be cut: {}", path.string(), error.message());
}

}  // namespace

RecordOutput::RecordOutput(const std::filesystem::path& path, Start start) : path_(path) {
  const bool resume = start == Start::kResume;
  require(
      !resume || !std::filesystem::exists(path) || std::filesystem::is_regular_file(path),
      ErrorCode::kInvalidArgument,
      "{}: is no regular file, which --resume continues",
      path.string()
  );
  file_.reset(std::fopen(path.c_str(), "ab"));
  require(
      file_ != nullptr,
      ErrorCode::kNotFound,
      "{}: can't be opened: {}",
      path.string(),
      system_reason(errno)
  );
  if (!std::filesystem::is_regular_file(path)) {
    return;
  }
  require(
      try_lock(fileno(file_.get())),
      ErrorCode::kInvalidArgument,
      "{}: another run writes it",
      path.string()
  );
  if (resume) {
    kept_.open(path, std::ios::binary);
  } else {
    cut(path, 0);
  }
}

std::optional<Json> RecordOutput::next_kept() {
  if (!kept_.is_open()) {
    return std::nullopt;
  }
  std::string line;
  if (!std::getline(kept_, line) || kept_.eof()) {
    kept_.close();
    cut(path_, kept_bytes_);
    return std::nullopt;
  }
  ++kept_lines_;
  kept_bytes_ += line.size() + 1;
  return parse_json(line, fmt::format("{}:{}", path_.string(), kept_lines_));
}

void RecordOutput::write(std::string_view line) {
  if (file_ == nullptr) {
    print(line);
    return;
  }
  const bool written = std::fwrite(line.data(), 1, line.size(), file_.get()) == line.size() &&
                       std::fflush(file_.get()) == 0;
  require(written, ErrorCode::kInternal, "the output takes no more: {}", system_reason(errno));
}

}  // namespace saker::cli
