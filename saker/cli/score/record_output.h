// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where answers to JSON lines go: standard output, or a file that a later run can continue. A file
// holds whole lines, but for the last one of a run that was killed.

#include "saker/base/json.h"

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
  // Creates or empties the file; with `kResume` its whole lines stay. It is locked until the end.
  // Throws kNotFound when it can't be opened, kInvalidArgument when another run writes it.
  enum class Start : std::uint8_t { kEmpty, kResume };
  RecordOutput(const std::filesystem::path& path, Start start);

  // The next whole line of the earlier run; none when there is no further one, and what follows is
  // cut then. Throws kCorruptData when the line is no JSON.
  std::optional<Json> next_kept();

  // Of next_kept so far.
  int kept_lines() const { return kept_lines_; }

  // One line, with its line break, written and flushed. REQUIRES: next_kept gave none.
  void write(std::string_view line);

 private:
  std::filesystem::path path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_{nullptr, std::fclose};
  std::ifstream kept_;  // Open while the earlier run's lines are read.
  int kept_lines_ = 0;
  std::uintmax_t kept_bytes_ = 0;
};

}  // namespace saker::cli
