// SPDX-License-Identifier: Apache-2.0
#pragma once

// Turns Ctrl-C (SIGINT) into a call instead of the program's end.
//
// While an object lives, SIGINT is blocked in the thread that made it and in threads started later.
// A thread of its own waits for the signal and calls the current handler. Make it before the
// engine. Signals that the program inherited as ignored stay ignored, as `nohup` and shells'
// background jobs need.

#include <signal.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

namespace saker::cli {

enum class WatchedSignals : std::uint8_t {
  kInterrupt,
  kAllEnds,  // Also SIGTERM and SIGHUP: for work that must be undone.
};

class InterruptWatcher {
 public:
  explicit InterruptWatcher(WatchedSignals watched = WatchedSignals::kInterrupt);
  ~InterruptWatcher();
  InterruptWatcher(const InterruptWatcher&) = delete;
  InterruptWatcher& operator=(const InterruptWatcher&) = delete;

  // Sets the handler of Ctrl-C; empty: does nothing. It runs on the watcher's thread.
  void set_handler(std::function<void()> handler);

  // From now on Ctrl-C ends the program, as without a watcher. Not for a line editor that reads
  // keys itself: it would leave the terminal in its mode.
  void end_program();

  // Called before a signal ends the program here; SIGTERM and SIGHUP then end it through the
  // watcher too.
  void before_end(std::function<void()> last);

 private:
  void watch();
  void end_by(int signal);

  sigset_t signals_;  // Includes SIGUSR1, which ends the watcher.
  std::mutex mutex_;
  std::function<void()> handler_;
  std::function<void()> last_;
  std::thread thread_;
};

}  // namespace saker::cli
