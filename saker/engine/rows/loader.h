// SPDX-License-Identifier: Apache-2.0
#pragma once

// A thread that reads files for the engine's thread, one job after the other, so that running answers
// never wait for a disk. It starts with its first job.

#include "saker/base/thread_queue.h"

#include <functional>
#include <thread>

namespace saker::engine {

class Loader {
 public:
  Loader() = default;
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;
  ~Loader();  // Waits for the jobs.

  // `job` must not throw. Throws if no thread can be started. One thread calls.
  void push(std::function<void()> job);

 private:
  ThreadQueue<std::function<void()>> jobs_;
  std::thread thread_;
};

}  // namespace saker::engine
