// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a stream and the engine share. See stream.h for the promises.

#include "saker/engine/event.h"

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

namespace saker::engine {

class StreamState {
 public:
  // `cancel` reaches the engine; it is called under the lock, and not after all choices have ended.
  StreamState(std::uint64_t id, int choices, std::function<void()> cancel);

  std::uint64_t id() const { return id_; }

  // For the engine. Events after the last end are dropped.
  void push(Event event);

  // For readers.
  std::optional<Event> next(std::optional<std::chrono::nanoseconds> timeout);
  bool ended() const;
  bool wait(std::optional<std::chrono::nanoseconds> timeout) const;
  std::vector<GenerateResult> results() const;
  void cancel();
  void on_ready(std::function<void()> ready);
  // Nobody reads any more.
  void leave();

 private:
  // True if the event's text went into the last unread event. REQUIRES: mutex_ is held.
  bool joins_last(Event& event);

  const std::uint64_t id_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::deque<Event> events_;
  std::vector<Event> ends_;       // Of each choice that has ended, by its number.
  std::function<void()> cancel_;  // Empty once nothing runs.
  std::function<void()> ready_;
  int running_;  // Choices that have not ended.
  bool left_ = false;
};

}  // namespace saker::engine
