// SPDX-License-Identifier: Apache-2.0
#include "saker/server/spans/span_queue.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>

namespace saker::server::spans {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr int kMostTries = 3;
constexpr milliseconds kFirstPause{1000};
constexpr milliseconds kFarewell{2000};  // For all that waits at the end.

}  // namespace

SpanQueue::SpanQueue(SpanQueueOptions options)
    : options_(std::move(options)), thread_([this](const std::stop_token& stop) { run(stop); }) {}

SpanQueue::~SpanQueue() = default;

void SpanQueue::add(std::vector<Span> spans) {
  bool is_batch = false;
  {
    const std::lock_guard lock(mutex_);
    const std::size_t room = options_.most_spans - std::min(waiting_.size(), options_.most_spans);
    const std::size_t taken = std::min(room, spans.size());
    dropped_ += spans.size() - taken;
    std::move(
        spans.begin(),
        spans.begin() + static_cast<std::ptrdiff_t>(taken),
        std::back_inserter(waiting_)
    );
    is_batch = waiting_.size() >= options_.batch;
  }
  if (is_batch) {
    changed_.notify_one();
  }
}

void SpanQueue::run(const std::stop_token& stop) {
  while (true) {
    const std::vector<Span> spans = take(stop);
    if (spans.empty()) {
      return;
    }
    try {
      send(spans, stop);
    } catch (const std::exception& error) {  // No memory for a body.
      dropped_ += spans.size();
      spdlog::warn("spans are dropped: {}", error.what());
    }
  }
}

std::vector<Span> SpanQueue::take(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    changed_.wait_for(lock, stop, options_.delay, [&] {
      return waiting_.size() >= options_.batch;
    });
    if (!waiting_.empty()) {
      break;
    }
  }
  const std::size_t count = std::min(waiting_.size(), options_.batch);
  const auto end = waiting_.begin() + static_cast<std::ptrdiff_t>(count);
  std::vector<Span> spans(std::make_move_iterator(waiting_.begin()), std::make_move_iterator(end));
  waiting_.erase(waiting_.begin(), end);
  return spans;
}

void SpanQueue::send(const std::vector<Span>& spans, const std::stop_token& stop) {
  const std::string body = otlp_json(options_.resource, spans);
  milliseconds wait = kFirstPause;
  for (int i = 0; i < kMostTries; ++i) {
    const bool is_farewell = stop.stop_requested();
    if (is_farewell && last_send_ == Clock::time_point()) {
      last_send_ = Clock::now() + kFarewell;
    }
    const auto left = std::chrono::duration_cast<milliseconds>(last_send_ - Clock::now());
    if (is_farewell && left <= milliseconds(0)) {
      break;
    }
    const Sent sent = is_farewell ? options_.send(body, std::min(left, options_.limit), {})
                                  : options_.send(body, options_.limit, stop);
    if (sent == Sent::kYes) {
      sent_ += spans.size();
      has_warned_ = false;
      return;
    }
    if (is_farewell || (sent == Sent::kNo && !stop.stop_requested())) {
      break;
    }
    pause(wait, stop);
    wait *= 2;
  }
  dropped_ += spans.size();
  if (!std::exchange(has_warned_, true)) {
    spdlog::warn("spans are dropped: the collector does not take them");
  }
}

void SpanQueue::pause(milliseconds time, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, stop, time, [] { return false; });
}

}  // namespace saker::server::spans
