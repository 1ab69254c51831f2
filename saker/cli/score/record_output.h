// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where answers to JSON lines go: standard output, or a file that a later run can continue. A file
// holds whole lines, but for the last one of a run that was killed.

#include "saker/base/json.h"

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string_view>

namespace saker::cli {

class RecordOutput {
 public:
  // Writes to standard output.
  RecordOutput() = default;
  // Creates or empties the file; with `Resume` keeps its whole lines. It is locked until the end.
  // Throws kNotFound when it can't be opened, kInvalidArgument when another run writes it,
  // kCorruptData when a kept line is no JSON object.
  enum class Start : std::uint8_t { kEmpty, kResume };
  RecordOutput(const std::filesystem::path& path, Start start);

  // Lines of the earlier run, how many of them say that a record failed, the last of them, and the
  // last of them with scores of tokens: null where there is none.
  int kept_lines() const { return kept_lines_; }

  int kept_failures() const { return kept_failures_; }

  const Json& last_kept() const { return last_kept_; }

  const Json& last_scores() const { return last_scores_; }

  // One line, with its line break, written and flushed.
  void write(std::string_view line);

 private:
  // Reads the earlier run's lines; how many bytes the whole ones have.
  std::uintmax_t keep_whole_lines(const std::filesystem::path& path);

  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_{nullptr, std::fclose};
  int kept_lines_ = 0;
  int kept_failures_ = 0;
  Json last_kept_;
  Json last_scores_;
};

}  // namespace saker::cli
