// SPDX-License-Identifier: Apache-2.0
#pragma once

// A first-in, first-out queue between any number of producers and consumers. After `close` nothing
// enters; consumers get the remaining values, then nothing. Any thread may call any member.

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace saker {

template <typename T>
class ThreadQueue {
 public:
  // False if the queue is closed; `value` is then dropped.
  bool push(T value) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_) {
        return false;
      }
      values_.push_back(std::move(value));
    }
    ready_.notify_one();
    return true;
  }

  // Waits for a value; empty once the queue is closed and has no more.
  std::optional<T> pop() {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [this] { return !values_.empty() || closed_; });
    return take();
  }

  // A value if one is there.
  std::optional<T> try_pop() {
    const std::lock_guard lock(mutex_);
    return take();
  }

  // The first value for which `wanted(value)` is true, if one is there.
  template <typename Wanted>
  std::optional<T> try_pop_if(Wanted wanted) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(values_.begin(), values_.end(), wanted);
    if (found == values_.end()) {
      return std::nullopt;
    }
    std::optional<T> value(std::move(*found));
    values_.erase(found);
    return value;
  }

  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    ready_.notify_all();
  }

  // Closes the queue with `last` as its last value.
  void close_after(T last) {
    {
      const std::lock_guard lock(mutex_);
      if (!closed_) {
        values_.push_back(std::move(last));
        closed_ = true;
      }
    }
    ready_.notify_all();
  }

 private:
  // REQUIRES: mutex_ is held.
  std::optional<T> take() {
    if (values_.empty()) {
      return std::nullopt;
    }
    std::optional<T> value(std::move(values_.front()));
    values_.pop_front();
    return value;
  }

  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<T> values_;
  bool closed_ = false;
};

}  // namespace saker
