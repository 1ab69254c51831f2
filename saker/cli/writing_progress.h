// SPDX-License-Identifier: Apache-2.0
#pragma once

// Progress of a command that writes a new folder, which appears when it is complete: a bar, and
// Ctrl-C, SIGTERM and SIGHUP as an error that lets the writer take back what it began. One thread
// at a time.

#include "saker/cli/interrupt.h"
#include "saker/cli/progress.h"

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

namespace saker::cli {

class WritingProgress {
 public:
  explicit WritingProgress(std::string label, Progress::Unit unit = Progress::Unit::kPieces);

  // Throws kCancelled once a signal came.
  void set(std::uint64_t done, std::uint64_t total);

  // Takes the bar away: what follows is printed.
  void end() { bar_.reset(); }

 private:
  std::string label_;
  Progress::Unit unit_;
  std::optional<Progress> bar_;
  std::atomic<bool> interrupted_ = false;
  InterruptWatcher watcher_ = InterruptWatcher(WatchedSignals::kAllEnds);
};

}  // namespace saker::cli
