// SPDX-License-Identifier: Apache-2.0
#pragma once

// Turns Ctrl-C (SIGINT) into a call instead of the program's end.
//
// While an object lives, SIGINT is blocked in the thread that made it and in threads started
// afterwards; a thread of its own waits for the signal and calls the current handler. Make it
// before the engine.

#include <functional>
#include <mutex>
#include <thread>

namespace saker::cli {

class InterruptWatcher {
 public:
  InterruptWatcher();
  ~InterruptWatcher();
  InterruptWatcher(const InterruptWatcher&) = delete;
  InterruptWatcher& operator=(const InterruptWatcher&) = delete;

  // What Ctrl-C does from now on; empty: nothing. The handler runs on the watcher's thread.
  void set_handler(std::function<void()> handler);

 private:
  void watch();

  std::mutex mutex_;
  std::function<void()> handler_;
  std::thread thread_;
};

}  // namespace saker::cli
