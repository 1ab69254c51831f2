// SPDX-License-Identifier: Apache-2.0
#pragma once

// Counts the requests of an engine from submit to end, and refuses more than it may hold. Any thread
// may call any member.

#include "saker/engine/measurements.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>

namespace saker::engine {

class RequestQueue {
 public:
  // The place of one choice of a request; leaves when destroyed.
  class Place {
   public:
    Place(RequestQueue& queue, std::int64_t tokens) : queue_(queue), tokens_(tokens) {}

    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    ~Place();

    // Its prompt begins to run. Later calls do nothing.
    void begin();

   private:
    RequestQueue& queue_;
    std::int64_t tokens_;
    std::chrono::steady_clock::time_point begun_ = {};
    bool is_running_ = false;
  };

  // At most `most_waiting` requests wait behind the `batch` that run together; 0: any number.
  RequestQueue(int most_waiting, int batch) : most_waiting_(most_waiting), batch_(batch) {}

  // Throws kCapacity, with an estimate of the wait, unless `choices` more requests may wait.
  void check(int choices) const;
  // `tokens` of a prompt wait until it begins.
  std::unique_ptr<Place> enter(std::int64_t tokens);
  QueueStats stats() const;

 private:
  double wait_s() const;  // REQUIRES: mutex_ is held.

  const int most_waiting_;
  const int batch_;
  mutable std::mutex mutex_;
  QueueStats stats_;
  double request_s_ = 0.0;  // A recent request's seconds from its beginning to its end.
};

}  // namespace saker::engine
