// SPDX-License-Identifier: Apache-2.0
#include "saker/cli/score/record_output.h"

#include "saker/base/error.h"
#include "saker/base/file_lock.h"
#include "saker/cli/output.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <string>
#include <system_error>

namespace saker::cli {
namespace {

// Those of an empty text say little of what was asked for.
bool has_scores(std::string_view line) {
  const std::size_t views = line.find(R"(],"views":{")");
  return views != std::string_view::npos && views > 0 && line[views - 1] != '[';
}

void cut(const std::filesystem::path& path, std::uintmax_t size) {
  std::error_code error;
  std::filesystem::resize_file(path, size, error);
  require(!error, ErrorCode::kNotFound, "{}: can't be cut: {}", path.string(), error.message());
}

// One that says why its record could not be scored. Of an answer only the id could have such a
// member: quotes within texts are escaped.
bool is_failure(std::string_view line) {
  return line.find(R"("views":{)") == std::string_view::npos &&
         line.find(R"("error":{"code":)") != std::string_view::npos;
}

}  // namespace

RecordOutput::RecordOutput(const std::filesystem::path& path, Start start) {
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
      std::strerror(errno)
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
  cut(path, resume ? keep_whole_lines(path) : 0);
}

std::uintmax_t RecordOutput::keep_whole_lines(const std::filesystem::path& path) {
  std::uintmax_t whole = 0;
  std::string last;
  std::string scores;
  int scores_line = 0;
  {
    std::ifstream file(path, std::ios::binary);
    for (std::string line; std::getline(file, line) && !file.eof();) {
      whole += line.size() + 1;
      ++kept_lines_;
      kept_failures_ += is_failure(line) ? 1 : 0;
      if (has_scores(line)) {
        scores = line;
        scores_line = kept_lines_;
      }
      last = std::move(line);
    }
  }
  if (kept_lines_ > 0) {
    last_kept_ = parse_json(last, fmt::format("{}:{}", path.string(), kept_lines_));
  }
  if (scores_line > 0) {
    last_scores_ = parse_json(scores, fmt::format("{}:{}", path.string(), scores_line));
  }
  return whole;
}

void RecordOutput::write(std::string_view line) {
  if (file_ == nullptr) {
    print(line);
    return;
  }
  const bool written = std::fwrite(line.data(), 1, line.size(), file_.get()) == line.size() &&
                       std::fflush(file_.get()) == 0;
  require(written, ErrorCode::kInternal, "the output takes no more: {}", std::strerror(errno));
}

}  // namespace saker::cli
