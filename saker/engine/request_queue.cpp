// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/request_queue.h"

#include "saker/base/error.h"

#include <algorithm>
#include <cmath>

namespace saker::engine {
namespace {

// Weight of the latest request in the average of their seconds.
constexpr double kLatest = 0.1;

}  // namespace

void RequestQueue::Place::begin() {
  if (is_running_) {
    return;
  }
  is_running_ = true;
  begun_ = std::chrono::steady_clock::now();
  const std::lock_guard lock(queue_.mutex_);
  --queue_.stats_.waiting;
  queue_.stats_.waiting_tokens -= tokens_;
  ++queue_.stats_.running;
}

RequestQueue::Place::~Place() {
  const std::lock_guard lock(queue_.mutex_);
  if (!is_running_) {
    --queue_.stats_.waiting;
    queue_.stats_.waiting_tokens -= tokens_;
    return;
  }
  --queue_.stats_.running;
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begun_;
  double& average = queue_.request_s_;
  average = average == 0.0 ? seconds.count() : average + kLatest * (seconds.count() - average);
}

double RequestQueue::wait_s() const {
  const int rounds = (stats_.waiting + batch_ - 1) / batch_;
  return rounds * request_s_;
}

void RequestQueue::check(int choices) const {
  const std::lock_guard lock(mutex_);
  // Those that can run at once do not wait.
  const int places = std::max(0, batch_ - stats_.running) + most_waiting_;
  require(
      most_waiting_ == 0 || stats_.waiting + choices <= places,
      ErrorCode::kCapacity,
      "the queue is full: {} requests wait, expected {} at most; try again in about {:.0f} s",
      stats_.waiting,
      most_waiting_,
      std::max(1.0, std::ceil(wait_s()))
  );
}

std::unique_ptr<RequestQueue::Place> RequestQueue::enter(std::int64_t tokens) {
  auto place = std::make_unique<Place>(*this, tokens);
  const std::lock_guard lock(mutex_);
  ++stats_.waiting;
  stats_.waiting_tokens += tokens;
  return place;
}

QueueStats RequestQueue::stats() const {
  const std::lock_guard lock(mutex_);
  QueueStats result = stats_;
  result.wait_s = wait_s();
  return result;
}

}  // namespace saker::engine
