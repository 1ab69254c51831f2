// SPDX-License-Identifier: Apache-2.0
#pragma once

// Spans on their way to a collector. A thread sends them in batches. Nobody waits for it: a full
// queue drops spans, and so does a collector that does not take them.

#include "saker/server/spans/span.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace saker::server::spans {

enum class Sent : std::uint8_t {
  kYes,
  kNo,
  kLater,  // The collector may take it if it is sent again.
};

struct SpanQueueOptions {
  // Sends a body within this time, or less if a stop is requested. Throws nothing.
  std::function<
      Sent(const std::string& body, std::chrono::milliseconds limit, const std::stop_token& stop)>
      send;
  Json resource = Json::object();
  std::size_t most_spans = 2048;            // That wait.
  std::size_t batch = 512;                  // Spans in one body at most.
  std::chrono::milliseconds delay{5000};    // Between two bodies.
  std::chrono::milliseconds limit{10'000};  // For one of them.
};

class SpanQueue {
 public:
  explicit SpanQueue(SpanQueueOptions options);
  SpanQueue(const SpanQueue&) = delete;
  SpanQueue& operator=(const SpanQueue&) = delete;
  // Sends what waits, for two seconds at most.
  ~SpanQueue();

  // From any thread.
  void add(std::vector<Span> spans);

  std::uint64_t sent() const { return sent_; }

  std::uint64_t dropped() const { return dropped_; }

 private:
  void run(const std::stop_token& stop);
  // Waits for the next batch. Empty: a stop is requested, and nothing waits.
  std::vector<Span> take(const std::stop_token& stop);
  void send(const std::vector<Span>& spans, const std::stop_token& stop);
  void pause(std::chrono::milliseconds time, const std::stop_token& stop);

  SpanQueueOptions options_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<Span> waiting_;
  std::atomic<std::uint64_t> sent_ = 0;
  std::atomic<std::uint64_t> dropped_ = 0;
  bool has_warned_ = false;                               // About the present failure.
  std::chrono::steady_clock::time_point last_send_ = {};  // After a stop is requested.
  std::jthread thread_;                                   // The last member: it uses the others.
};

}  // namespace saker::server::spans
