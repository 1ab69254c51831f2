// SPDX-License-Identifier: Apache-2.0
#pragma once

// Output of answers to JSON lines: standard output, or a file that a later run can continue. A file
// holds whole lines, except possibly the last one of a run that was killed.

#include "saker/base/json/json.h"

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string_view>

namespace saker::cli {

class RecordOutput {
 public:
  // Writes to standard output.
  RecordOutput() = default;
  // Creates or empties the file; with `kResume` its whole lines stay. The file is locked until the
  // end. Throws kNotFound if it can't be opened, kInvalidArgument if another run is writing it.
  enum class Start : std::uint8_t { kEmpty, kResume };
  RecordOutput(const std::filesystem::path& path, Start start);

  // The next whole line of the earlier run. Empty after the last one; the rest of the file is then
  // cut off. Throws kCorruptData if the line is not JSON.
  std::optional<Json> next_kept();

  // Number of lines from next_kept so far.
  int kept_lines() const { return kept_lines_; }

  // Writes and flushes one line and its line break. REQUIRES: next_kept returned empty.
  void write(std::string_view line);

 private:
  std::filesystem::path path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_{nullptr, std::fclose};
  std::ifstream kept_;  // Open while the earlier run's lines are read.
  int kept_lines_ = 0;
  std::uintmax_t kept_bytes_ = 0;
};

}  // namespace saker::cli
