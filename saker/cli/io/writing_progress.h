// SPDX-License-Identifier: Apache-2.0
#pragma once

// Progress of a command that writes a new folder, which appears when it is complete. Shows a bar,
// and turns Ctrl-C, SIGTERM and SIGHUP into an error that lets the writer undo its work. One thread
// at a time.

#include "saker/cli/io/interrupt.h"
#include "saker/cli/io/progress.h"

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

namespace saker::cli {

class WritingProgress {
 public:
  explicit WritingProgress(std::string label, Progress::Unit unit = Progress::Unit::kPieces);

  // Throws kCancelled once a signal has come.
  void set(std::uint64_t done, std::uint64_t total);

  // Removes the bar, so that other output can follow.
  void end() { bar_.reset(); }

 private:
  std::string label_;
  Progress::Unit unit_;
  std::optional<Progress> bar_;
  std::atomic<bool> interrupted_ = false;
  InterruptWatcher watcher_ = InterruptWatcher(WatchedSignals::kAllEnds);
};

}  // namespace saker::cli
