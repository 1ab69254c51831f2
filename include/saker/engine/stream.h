// SPDX-License-Identifier: Apache-2.0
#pragma once

// The events of one request. The engine adds them and never waits; pieces of text that nobody has
// read yet grow together, so that a stream is never longer than its answers. Any thread may call
// any member; each event goes to one reader.

#include "saker/engine/event.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace saker::engine {

class StreamState;

class Stream {
 public:
  // For the engine.
  explicit Stream(std::shared_ptr<StreamState> state);
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;
  // Cancels what still runs.
  ~Stream();

  // Unique among the requests of an engine.
  std::uint64_t id() const;

  // Waits for the next event; none once all choices have ended and their events are read.
  std::optional<Event> next();
  // Waits at most this long; none if no event came. Zero only looks.
  std::optional<Event> next(std::chrono::nanoseconds timeout);
  // True once next() has nothing more to give.
  bool ended() const;

  // Ends all choices with FinishReason::kCancelled and what they have so far, at the latest after
  // the pass that runs. May come at any time, more than once.
  void cancel();

  // Calls `ready` when there is an event to read after there was none: at once if there is one now.
  // It is called on any thread, one call at a time; it must not block, throw or use the stream.
  // Replaces the last one, which is not called any more once this returns.
  void on_ready(std::function<void()> ready);

  // Waits at most this long for the end of all choices; true if they have ended. Reads no event.
  bool wait(std::chrono::nanoseconds timeout) const;
  // Waits for the answers of all choices, whoever reads the events. Throws the error of the first
  // choice that failed.
  std::vector<GenerateResult> results() const;
  // The first choice's answer. Throws as results().
  GenerateResult result() const;

 private:
  std::shared_ptr<StreamState> state_;  // Null once moved away.
};

}  // namespace saker::engine
