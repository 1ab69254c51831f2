// SPDX-License-Identifier: Apache-2.0
#pragma once

// Turns Ctrl-C (SIGINT) into a call instead of the program's end.
//
// While an object lives, SIGINT is blocked in the thread that made it and in threads started
// afterwards; a thread of its own waits for the signal and calls the current handler. Make it
// before the engine. Signals that the program was started to ignore stay ignored, as `nohup` and
// shells' background jobs ask.

#include <signal.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

namespace saker::cli {

enum class WatchedSignals : std::uint8_t {
  kInterrupt,
  kAllEnds,  // SIGTERM and SIGHUP too: for work that must be taken back.
};

class InterruptWatcher {
 public:
  explicit InterruptWatcher(WatchedSignals watched = WatchedSignals::kInterrupt);
  ~InterruptWatcher();
  InterruptWatcher(const InterruptWatcher&) = delete;
  InterruptWatcher& operator=(const InterruptWatcher&) = delete;

  // What Ctrl-C does from now on; empty: nothing. The handler runs on the watcher's thread.
  void set_handler(std::function<void()> handler);

  // Ctrl-C ends the program from now on, as without a watcher; not where a line editor reads keys
  // itself, which would leave the terminal as it set it.
  void end_program();

  // Called first whenever a signal ends the program here: SIGTERM and SIGHUP end it then, too.
  void before_end(std::function<void()> last);

 private:
  void watch();
  void end_by(int signal);

  sigset_t signals_;  // And SIGUSR1, which ends the watcher.
  std::mutex mutex_;
  std::function<void()> handler_;
  std::function<void()> last_;
  std::thread thread_;
};

}  // namespace saker::cli
