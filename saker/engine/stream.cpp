// SPDX-License-Identifier: Apache-2.0
#include "saker/engine/stream.h"

#include "saker/engine/stream_state.h"
#include "saker/kernels/gpu/device_turns.h"

#include <cstddef>
#include <exception>
#include <type_traits>
#include <utility>
#include <variant>

namespace saker::engine {

StreamState::StreamState(std::uint64_t id, int choices, std::function<void()> cancel)
    : id_(id),
      ends_(static_cast<std::size_t>(choices)),
      cancel_(std::move(cancel)),
      running_(choices) {}

void StreamState::push(Event event) {
  std::function<void()> unused;  // Destroyed without the lock.
  const std::lock_guard lock(mutex_);
  if (running_ == 0) {
    return;
  }
  if (event.is_end()) {
    ends_.at(static_cast<std::size_t>(event.choice)) = event;
    if (--running_ == 0) {
      unused = std::exchange(cancel_, nullptr);
    }
  }
  if (left_) {
    return;
  }
  const bool was_empty = events_.empty();
  if (!joins_last(event)) {
    events_.push_back(std::move(event));
  }
  changed_.notify_all();
  if (was_empty && ready_) {
    ready_();
  }
}

bool StreamState::joins_last(Event& event) {
  if (events_.empty() || events_.back().choice != event.choice ||
      events_.back().what.index() != event.what.index()) {
    return false;
  }
  return std::visit(
      [&](auto& last) {
        using Kind = std::remove_cvref_t<decltype(last)>;
        auto& more = std::get<Kind>(event.what);
        if constexpr (std::is_same_v<Kind, PromptProgress>) {
          last = more;
          return true;
        } else if constexpr (std::is_same_v<Kind, text::CallArguments>) {
          if (last.index != more.index) {
            return false;
          }
          last.text += more.text;
          return true;
        } else if constexpr (requires { last.text; }) {
          last.text += more.text;
          return true;
        } else {
          return false;
        }
      },
      events_.back().what
  );
}

std::optional<Event> StreamState::next(std::optional<std::chrono::nanoseconds> timeout) {
  const kernels::DeviceTurn::Pause pause;  // Other engines go on while this one's thread waits.
  std::unique_lock lock(mutex_);
  const auto can_go_on = [this] { return !events_.empty() || running_ == 0; };
  if (timeout) {
    changed_.wait_for(lock, *timeout, can_go_on);
  } else {
    changed_.wait(lock, can_go_on);
  }
  if (events_.empty()) {
    return std::nullopt;
  }
  std::optional<Event> event(std::move(events_.front()));
  events_.pop_front();
  if (events_.empty() && running_ == 0) {
    changed_.notify_all();  // Other readers have nothing to wait for.
  }
  return event;
}

bool StreamState::ended() const {
  const std::lock_guard lock(mutex_);
  return events_.empty() && running_ == 0;
}

bool StreamState::wait(std::optional<std::chrono::nanoseconds> timeout) const {
  const kernels::DeviceTurn::Pause pause;
  std::unique_lock lock(mutex_);
  const auto has_ended = [this] { return running_ == 0; };
  if (timeout) {
    return changed_.wait_for(lock, *timeout, has_ended);
  }
  changed_.wait(lock, has_ended);
  return true;
}

std::vector<GenerateResult> StreamState::results() const {
  wait(std::nullopt);
  const std::lock_guard lock(mutex_);
  std::vector<GenerateResult> results;
  for (const Event& end : ends_) {
    if (const Failure* failure = std::get_if<Failure>(&end.what)) {
      std::rethrow_exception(failure->error);
    }
    results.push_back(*std::get<End>(end.what).result);
  }
  return results;
}

void StreamState::cancel() {
  const std::lock_guard lock(mutex_);
  if (cancel_) {
    cancel_();
  }
}

void StreamState::on_ready(std::function<void()> ready) {
  const std::lock_guard lock(mutex_);
  ready_ = std::move(ready);
  if (ready_ && (!events_.empty() || running_ == 0)) {
    ready_();
  }
}

void StreamState::leave() {
  const std::lock_guard lock(mutex_);
  left_ = true;
  ready_ = nullptr;
  events_.clear();
  if (cancel_) {
    cancel_();
  }
}

Stream::Stream(std::shared_ptr<StreamState> state) : state_(std::move(state)) {}

Stream::Stream(Stream&&) noexcept = default;

Stream& Stream::operator=(Stream&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}

Stream::~Stream() {
  if (state_ != nullptr) {
    state_->leave();
  }
}

std::uint64_t Stream::id() const {
  return state_->id();
}

std::optional<Event> Stream::next() {
  return state_->next(std::nullopt);
}

std::optional<Event> Stream::next(std::chrono::nanoseconds timeout) {
  return state_->next(timeout);
}

bool Stream::ended() const {
  return state_->ended();
}

void Stream::cancel() {
  state_->cancel();
}

void Stream::on_ready(std::function<void()> ready) {
  state_->on_ready(std::move(ready));
}

bool Stream::wait(std::chrono::nanoseconds timeout) const {
  return state_->wait(timeout);
}

std::vector<GenerateResult> Stream::results() const {
  return state_->results();
}

GenerateResult Stream::result() const {
  return std::move(state_->results().front());
}

}  // namespace saker::engine
